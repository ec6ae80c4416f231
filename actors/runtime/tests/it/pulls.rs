//! The KV does not arrive.

use std::sync::atomic::Ordering;
use std::time::Duration;

use kv::{Fault, ReadError};
use observe::{RoomEvent, RoomWhat};
use room::{Happening, Span};

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

/// The worker says why, before the attempt fails for it.
fn check_said(events: &[RoomEvent]) {
    let why = "source lost: a test's, reading over in-process";
    let said = events
        .iter()
        .position(|event| matches!(&event.what, RoomWhat::WorkerSaid { why: said, .. } if **said == *why));
    let failed = events
        .iter()
        .position(|event| matches!(event.what, RoomWhat::Room(Happening::AttemptFailed { .. })));
    assert!(said.is_some() && said < failed, "{events:#?}");
}

/// However its end and the digests fall together: what the worker has ended by its own word was not lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_pull_is_no_lost_message() {
    let mut setup = Setup::pair();
    setup.heartbeat = Duration::from_millis(1);
    let cluster = Cluster::start(setup).await;
    let reader = cluster.workers[1].transfer();
    for seed in 0..20 {
        let lost = ReadError::SourceLost("a test's".into());
        reader.on_read(reader.reads_seen(), Fault::Fail(lost));
        let mut answer = cluster.submit(job(seed, 21, 5)).await;
        finish(&mut answer).await;
    }
    cluster.quiesce().await;
    assert_eq!(cluster.gateway.counts().retries, 20);
    assert_eq!(cluster.heard.healed(), 0);
    let mut of_first = cluster.heard.rooms();
    let first = of_first[0].room;
    of_first.retain(|event| event.room == first);
    check_said(&of_first);
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
    check_end(&cluster, "it panicked");
    // It is in the history of the room that was there.
    let said = cluster.heard.said();
    assert!(said.iter().any(|why| &**why == "it panicked"), "{said:?}");
}

/// The gateway was told of what the worker died of.
fn check_end(cluster: &Cluster, why: &str) {
    let ends = cluster.heard.ends();
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!(*ends[0], format!("closed by the peer: {why}"));
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
    check_end(&cluster, "its KV transfer is down: a test's fault");
}
