//! More than can be served is refused by type, and at once.

use std::time::Duration;

use room::{Failure, Finish, Outcome, PhaseKind, Span};
use runtime::{Job, Refused, WorkerState};

use crate::cluster::{Cluster, PATIENCE, Setup, Stuck, completed, expected, finish, job};

async fn outcome(cluster: &Cluster, job: Job) -> Option<Outcome> {
    let mut answer = cluster.submit(job).await;
    finish(&mut answer).await[0].outcome
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_requests() {
    let mut setup = Setup::pair();
    setup.max_requests = 1;
    let mut stuck = Stuck::reach(setup, PhaseKind::Decoding, job(1, 5, 20)).await;
    let refused = stuck.cluster.gateway.submit(job(2, 5, 5)).await.err();
    assert_eq!(refused, Some(Refused::TooManyRequests { limit: 1 }));
    stuck.heal();
    assert_eq!(
        finish(&mut stuck.answer).await[0].outcome,
        Some(Outcome::Completed(Finish::Length))
    );
    stuck.cluster.quiesce().await;
    assert_eq!(
        outcome(&stuck.cluster, job(2, 5, 5)).await,
        Some(Outcome::Completed(Finish::Length))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queue_is_full() {
    let mut setup = Setup::pair();
    setup.slots = 1;
    setup.desk.queue_rooms = 3;
    let mut stuck = Stuck::reach(setup, PhaseKind::Decoding, job(1, 5, 20)).await;
    let mut waiting = Vec::new();
    for seed in 2..5 {
        let answer = stuck.cluster.submit(job(seed, 5, 5)).await;
        let rooms = waiting.len() + 1;
        stuck
            .cluster
            .until("it waits", |c| c.gateway.waiting() == rooms)
            .await;
        waiting.push(answer);
    }
    let full = outcome(&stuck.cluster, job(9, 5, 5)).await;
    assert_eq!(full, Some(Outcome::Failed(Failure::QueueFull)));
    stuck.heal();
    for mut answer in waiting {
        assert_eq!(
            finish(&mut answer).await[0].outcome,
            Some(Outcome::Completed(Finish::Length))
        );
    }
    finish(&mut stuck.answer).await;
    stuck.cluster.quiesce().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_credit_in_time() {
    let mut setup = Setup::pair();
    setup.slots = 1;
    setup.limits.queue = Span::from_millis(300);
    let mut stuck = Stuck::reach(setup, PhaseKind::Decoding, job(1, 5, 20)).await;
    let late = outcome(&stuck.cluster, job(2, 5, 5)).await;
    assert_eq!(late, Some(Outcome::Failed(Failure::NoCredit)));
    stuck.heal();
    finish(&mut stuck.answer).await;
    stuck.cluster.quiesce().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_worker() {
    let mut setup = Setup::of(&[]);
    setup.desk.no_worker_grace = Span::from_millis(100);
    let cluster = Cluster::start(setup).await;
    assert_eq!(
        outcome(&cluster, job(1, 5, 5)).await,
        Some(Outcome::Failed(Failure::NoWorker))
    );
    assert!(cluster.gateway.ready().is_err());
    cluster.quiesce().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_large_for_any_pool() {
    let cluster = Cluster::start(Setup::pair()).await;
    let positions = cluster.setup.mock.shape.blocks * 4;
    let large = outcome(&cluster, job(1, positions, 1)).await;
    assert_eq!(large, Some(Outcome::Failed(Failure::TooLarge)));
    cluster.quiesce().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_gateway_finishes_what_it_has() {
    let wanted = job(1, 5, 20);
    let mut stuck = Stuck::reach(Setup::mixed(), PhaseKind::Decoding, wanted.clone()).await;
    stuck.cluster.gateway.close();
    let refused = stuck.cluster.gateway.submit(job(2, 5, 5)).await.err();
    assert_eq!(refused, Some(Refused::ShuttingDown));
    stuck.heal();
    let tokens = expected(&stuck.cluster.setup.mock, &wanted, 0);
    assert_eq!(finish(&mut stuck.answer).await, [completed(tokens)]);
    stuck.cluster.quiesce().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn draining_workers_finish_what_they_have() {
    for setup in [Setup::mixed(), Setup::pair()] {
        let mut setup = setup;
        setup.desk.no_worker_grace = Span::from_millis(100);
        let wanted = job(1, 5, 20);
        let mut stuck = Stuck::reach(setup, PhaseKind::Decoding, wanted.clone()).await;
        assert!(!stuck.cluster.node.drain_within(Duration::from_millis(50)).await);
        let refused = outcome(&stuck.cluster, job(2, 5, 5)).await;
        assert_eq!(refused, Some(Outcome::Failed(Failure::NoWorker)));
        stuck.heal();
        let tokens = expected(&stuck.cluster.setup.mock, &wanted, 0);
        assert_eq!(finish(&mut stuck.answer).await, [completed(tokens)]);
        assert!(stuck.cluster.node.drain_within(PATIENCE).await);
        stuck.cluster.quiesce().await;
        stuck.cluster.node.leave().await;
        let left = |c: &Cluster| c.gateway.workers().is_empty();
        stuck.cluster.until("the workers have left", left).await;
    }
}

/// Without waiting for the next heartbeat, which is far beyond this test's patience.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_told_to_drain_is_given_nothing_more() {
    for mut setup in [Setup::mixed(), Setup::pair()] {
        setup.heartbeat = PATIENCE * 4;
        setup.lease = PATIENCE * 9;
        setup.desk.no_worker_grace = Span::from_millis(100);
        let mut stuck = Stuck::reach(setup, PhaseKind::Decoding, job(1, 5, 20)).await;
        assert!(!stuck.cluster.node.drain_within(Duration::from_millis(50)).await);
        let leaves = |worker: &WorkerState| worker.peer.stats.draining;
        stuck
            .cluster
            .until("it is known", |c| c.gateway.workers().iter().all(leaves))
            .await;
        let why = stuck.cluster.gateway.ready().err();
        assert!(why.is_some_and(|why| why.contains("is leaving")));
        let refused = outcome(&stuck.cluster, job(2, 5, 5)).await;
        assert_eq!(refused, Some(Outcome::Failed(Failure::NoWorker)));
        assert_eq!(
            stuck.cluster.gateway.counts().retries,
            0,
            "nobody was asked in vain"
        );
        stuck.heal();
        let whole = Some(Outcome::Completed(Finish::Length));
        assert_eq!(finish(&mut stuck.answer).await[0].outcome, whole);
        assert!(stuck.cluster.node.drain_within(PATIENCE).await);
    }
}
