//! Answers are what an undisturbed run gives, whichever way they take.

use mock::Answer as Ends;
use room::{Finish, Outcome, PhaseKind};
use runtime::Job;

use crate::cluster::{Cluster, Setup, Stuck, completed, expected, finish, job, next_tokens};

/// All at once; each answer is compared with a run of its own.
async fn check(setup: Setup, jobs: Vec<Job>) -> Cluster {
    let cluster = Cluster::start(setup).await;
    let mut answers = Vec::new();
    for job in &jobs {
        answers.push(cluster.submit(job.clone()).await);
    }
    for (job, mut answer) in jobs.iter().zip(answers) {
        for (index, got) in finish(&mut answer).await.into_iter().enumerate() {
            let wanted = expected(&cluster.setup.mock, job, index as u64);
            assert_eq!(got.tokens, wanted, "INV-06: {job:?}");
            let length = wanted.len() == job.max_new as usize;
            let how = if length { Finish::Length } else { Finish::Stop };
            assert_eq!(got.outcome, Some(Outcome::Completed(how)));
        }
    }
    cluster.quiesce().await;
    let rooms: u64 = jobs.iter().map(|job| u64::from(job.n)).sum();
    let counts = cluster.gateway.counts();
    assert_eq!((counts.opened, counts.outcomes.values().sum()), (rooms, rooms));
    cluster
}

/// Around the edges of blocks (4 tokens) and chunks (8).
fn of_all_lengths() -> Vec<Job> {
    let lengths = [1, 3, 4, 5, 8, 9, 16, 17, 33];
    let jobs = lengths
        .iter()
        .zip(0..)
        .flat_map(|(prompt, seed)| [1, 2, 9].map(|max_new| job(seed * 10 + max_new, *prompt, max_new)));
    jobs.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn through_a_mixed_worker() {
    check(Setup::mixed(), of_all_lengths()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn through_prefill_and_decode() {
    check(Setup::pair(), of_all_lengths()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn siblings_have_seeds_of_their_own() {
    for setup in [Setup::mixed(), Setup::pair()] {
        let mut wanted = job(1, 13, 12);
        wanted.n = 4;
        wanted.sampling.temperature = 1.0;
        wanted.sampling.seed = 7;
        check(setup, vec![wanted]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_ends_where_the_model_ends_it() {
    for mut setup in [Setup::mixed(), Setup::pair()] {
        setup.mock.answer = Ends::Between(0, 12);
        let mut jobs: Vec<Job> = (0..12).map(|seed| job(seed, 5, 10)).collect();
        jobs[3].ignore_eos = true;
        check(setup, jobs).await;
    }
}

/// The second time, all full blocks (of 4) of the prompt are found but what its last token needs.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_prompt_again_is_answered_the_same_with_less_work() {
    for setup in [Setup::mixed(), Setup::pair()] {
        for (prompt, found) in [(3, 0), (5, 4), (23, 20), (24, 20), (25, 24)] {
            let cluster = Cluster::start(setup.clone()).await;
            let wanted = job(5, prompt, 9);
            let tokens = expected(&cluster.setup.mock, &wanted, 0);
            for cached in [0, found, found] {
                let mut answer = cluster.submit(wanted.clone()).await;
                assert_eq!(finish(&mut answer).await, [completed(tokens.clone())]);
                assert_eq!(answer.cached_tokens(0), cached, "of {prompt}");
                assert_eq!(answer.cached_tokens(1), 0, "there is no such answer");
                cluster.quiesce().await;
            }
        }
    }
}

/// What the host says of stays may be lost; what was kept for them goes nevertheless, or the workers would find that it does not.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_sees_the_stays_come_and_go() {
    for mut setup in [Setup::mixed(), Setup::pair()] {
        setup.host_limits.transitions = 1;
        let cluster = check(setup, of_all_lengths()).await;
        assert!(cluster.workers.iter().all(|worker| worker.incarnations() == 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_string_ends_one_answer_as_whole() {
    for setup in [Setup::mixed(), Setup::pair()] {
        let mut stuck = Stuck::reach(setup, PhaseKind::Decoding, job(1, 6, 40)).await;
        let first = next_tokens(&mut stuck.answer).await;
        assert!(!first.is_empty());
        stuck.answer.stop_string_found(0);
        let got = finish(&mut stuck.answer).await;
        assert_eq!(got[0].outcome, Some(Outcome::Completed(Finish::Stop)));
        stuck.heal();
        stuck.cluster.quiesce().await;
    }
}

/// They say so first of all.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_knows_where_operators_find_its_workers() {
    let cluster = Cluster::start(Setup::pair()).await;
    for worker in cluster.linked() {
        assert_eq!(worker.peer.admin, Some(cluster.setup.admin));
    }
}
