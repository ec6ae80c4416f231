//! The KV does not arrive.

use std::sync::atomic::Ordering;

use kv::{Fault, ReadError};
use room::Span;

use crate::cluster::{Cluster, Setup, completed, expected, finish, job};

async fn check(setup: Setup, fault: Fault) {
    let cluster = Cluster::start(setup).await;
    cluster.workers[1].transfer().on_read(0, fault);
    let wanted = job(1, 21, 20);
    let mut answer = cluster.submit(wanted.clone()).await;
    let tokens = expected(&cluster.setup.mock, &wanted, 0);
    assert_eq!(finish(&mut answer).await, [completed(tokens)], "INV-06");
    assert_eq!(cluster.gateway.counts().retries, 1);
    cluster.heal();
    cluster.quiesce().await;
    let pulled: u64 = cluster
        .gateway
        .counts()
        .pulled
        .values()
        .map(|pulled| pulled.2)
        .sum();
    assert_eq!(pulled, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_fails() {
    check(
        Setup::pair(),
        Fault::Fail(ReadError::SourceLost("a test's".into())),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_never_starts() {
    let mut setup = Setup::pair();
    setup.limits.pull = Span::from_millis(300);
    check(setup, Fault::HoldStart).await;
}

/// Its blocks stay pinned until it does; the room goes on without them.
#[tokio::test(flavor = "multi_thread")]
async fn a_pull_never_ends() {
    let mut setup = Setup::pair();
    setup.limits.pull = Span::from_millis(300);
    check(setup, Fault::HoldEnd).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_worker_panics_over_a_pull() {
    let cluster = Cluster::start(Setup::pair()).await;
    cluster.workers[1].panics_at_read.store(true, Ordering::SeqCst);
    let wanted = job(1, 21, 20);
    let mut answer = cluster.submit(wanted.clone()).await;
    let tokens = expected(&cluster.setup.mock, &wanted, 0);
    assert_eq!(finish(&mut answer).await, [completed(tokens)], "INV-06");
    cluster.quiesce().await;
    assert_eq!(cluster.workers[1].incarnations(), 2);
}

/// A worker whose transfer has died is built anew, with another one, and pulls again.
#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_that_dies_costs_its_incarnation() {
    let cluster = Cluster::start(Setup::pair()).await;
    let wanted = job(1, 21, 40);
    let mut answer = cluster.submit(wanted.clone()).await;
    cluster.workers[1].transfer().seem_down();
    let tokens = expected(&cluster.setup.mock, &wanted, 0);
    assert_eq!(finish(&mut answer).await, [completed(tokens)], "INV-06");
    cluster.quiesce().await;
    assert_eq!(cluster.workers[1].incarnations(), 2);
}
