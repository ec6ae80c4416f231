//! What no model can answer fails by itself: no worker, and no other room, is the worse for it.

use room::{AttemptError, Failure, Finish, Outcome};
use runtime::Job;

use crate::cluster::{Cluster, Setup, finish, job};

async fn check(unanswerable: Job, outcome: Outcome) {
    for setup in [Setup::mixed(), Setup::pair()] {
        let mut setup = setup;
        setup.mock.context_tokens = 64;
        let cluster = Cluster::start(setup).await;
        let mut bystander = cluster.submit(job(7, 9, 40)).await;
        let mut answer = cluster.submit(unanswerable.clone()).await;
        assert_eq!(finish(&mut answer).await[0].outcome, Some(outcome));
        let whole = Some(Outcome::Completed(Finish::Length));
        assert_eq!(finish(&mut bystander).await[0].outcome, whole);
        cluster.quiesce().await;
        assert!(cluster.workers.iter().all(|worker| worker.incarnations() == 1));
    }
}

const REFUSED_BY_THE_ENGINE: Outcome = Outcome::Failed(Failure::Attempts(AttemptError::EngineFailed));

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_none() {
    let mut wanted = job(1, 9, 5);
    wanted.prompt[4] = 1_000_000;
    check(wanted, REFUSED_BY_THE_ENGINE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_beyond_the_context() {
    check(job(1, 80, 5), REFUSED_BY_THE_ENGINE).await;
}

/// The wire does not even carry it: whoever sends such an order hears that nobody has it.
#[tokio::test(flavor = "multi_thread")]
async fn no_prompt() {
    let unsent = Outcome::Failed(Failure::Attempts(AttemptError::UnknownAttempt));
    check(job(1, 0, 5), unsent).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer() {
    let cluster = Cluster::start(Setup::pair()).await;
    let mut wanted = job(1, 5, 5);
    wanted.n = 0;
    let mut answer = cluster.submit(wanted).await;
    assert_eq!(finish(&mut answer).await, []);
    cluster.quiesce().await;
}
