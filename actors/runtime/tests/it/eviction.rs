//! A pool too small for all that was let in: who gives way goes on later, as if nothing had been.

use wire::Role;

use crate::cluster::{Cluster, Setup, completed, expected, finish, job};

/// Six rooms that start together, and grow to nine blocks each; the pool has so many.
async fn check(roles: &[Role], blocks: u32) {
    let mut setup = Setup::of(roles);
    setup.mock.shape.blocks = blocks;
    setup.desk.promised_answer_tokens = 1;
    setup.desk.prefills_per_worker = 8;
    let cluster = Cluster::start(setup).await;
    for worker in &cluster.workers {
        worker.gate.close_after(0);
    }
    let jobs: Vec<_> = (0..6).map(|seed| job(seed, 4, 30)).collect();
    let mut answers = Vec::new();
    for job in &jobs {
        answers.push(cluster.submit(job.clone()).await);
    }
    let queued = room::PhaseKind::Queued;
    cluster
        .until("all have credit", |c| {
            c.gateway.rooms().iter().all(|view| view.phase != queued)
        })
        .await;
    cluster.heal();
    for (job, mut answer) in jobs.iter().zip(answers) {
        let tokens = expected(&cluster.setup.mock, job, 0);
        assert_eq!(finish(&mut answer).await, [completed(tokens)], "INV-06");
    }
    assert!(cluster.gateway.counts().retries > 0, "somebody gave way");
    cluster.quiesce().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_mixed_worker() {
    check(&[Role::Mixed], 14).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_decode_worker() {
    check(&[Role::Prefill, Role::Decode], 14).await;
}
