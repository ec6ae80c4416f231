//! Links that end on purpose, by a restart, or by a fault of their owner.

use std::sync::atomic::Ordering;

use mesh::{DownReason, SendError};
use wire::{Role, ToGateway, ToWorker};

use crate::nodes::{Pair, config, gateway_address, hello, key, worker_address};

#[tokio::test(start_paused = true)]
async fn a_restarted_worker_replaces_its_old_link() {
    let mut pair = Pair::new().await;
    let identity = pair.world.identity(&[Role::Decode]);
    let address = "10.0.1.2:9000".parse().unwrap();
    let mut restarted = pair
        .world
        .worker_as(&identity, address, hello("worker", 12), config());
    assert_eq!(
        pair.gateway.heard.down().await,
        (pair.to_worker.id(), DownReason::Replaced)
    );
    assert_eq!(pair.gateway.heard.up().await.1.epoch, 12);
    restarted.heard.up().await;
    let told = DownReason::PeerClosed("replaced by a new incarnation".to_owned());
    assert_eq!(pair.worker.heard.down().await.1, told);
}

#[tokio::test(start_paused = true)]
async fn a_restarted_gateway_is_another_one() {
    let mut pair = Pair::new().await;
    drop(pair.gateway);
    let mut gateway = pair.world.gateway(2, config());
    pair.worker.heard.down().await;
    assert_eq!(pair.worker.heard.up().await.1.epoch, 2);
    gateway.heard.up().await;
}

#[tokio::test(start_paused = true)]
async fn a_fence_is_at_once_and_its_reason_is_told() {
    let mut pair = Pair::new().await;
    pair.to_gateway.send(&ToGateway::Closed { key: key(1) }).unwrap();
    pair.to_worker.close("it proved nothing");
    pair.to_worker.close("a second reason");
    assert_eq!(
        pair.to_worker.send(&ToWorker::Close { key: key(1) }),
        Err(SendError::Down)
    );
    let why = DownReason::Closed("it proved nothing".to_owned());
    assert_eq!(pair.gateway.heard.down().await, (pair.to_worker.id(), why));
    let (_, why) = pair.worker.heard.down().await;
    assert_eq!(why, DownReason::PeerClosed("it proved nothing".to_owned()));
    pair.worker.heard.up().await;
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_stops_delivers_what_is_queued() {
    let mut pair = Pair::new().await;
    for seq in 0..500 {
        pair.to_worker.send(&ToWorker::Close { key: key(seq) }).unwrap();
    }
    pair.to_worker
        .send(&ToWorker::Goodbye {
            reason: "drained".to_owned(),
        })
        .unwrap();
    pair.gateway.listener.stop().await;
    assert_eq!(
        pair.gateway.heard.down().await,
        (pair.to_worker.id(), DownReason::Stopped)
    );
    for seq in 0..500 {
        assert_eq!(pair.worker.heard.frame().await, ToWorker::Close { key: key(seq) });
    }
    assert!(matches!(
        pair.worker.heard.frame().await,
        ToWorker::Goodbye { .. }
    ));
    assert_eq!(pair.worker.heard.down().await.1, DownReason::PeerStopped);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_stops_delivers_what_is_queued_and_dials_no_more() {
    let mut pair = Pair::new().await;
    for seq in 0..500 {
        pair.to_gateway
            .send(&ToGateway::Closed { key: key(seq) })
            .unwrap();
    }
    pair.worker.dialer.stop().await;
    assert_eq!(
        pair.worker.heard.down().await,
        (pair.to_gateway.id(), DownReason::Stopped)
    );
    for seq in 0..500 {
        assert_eq!(
            pair.gateway.heard.frame().await,
            ToGateway::Closed { key: key(seq) }
        );
    }
    assert_eq!(pair.gateway.heard.down().await.1, DownReason::PeerStopped);
    pair.gateway.heard.nothing().await;
}

/// Ends a gateway that its peer takes nothing from, in order: that is bounded, and the link's end is said.
#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_a_peer_that_takes_nothing() {
    let mut pair = Pair::new().await;
    let flush = config().flush_deadline;
    pair.world.net.cut(gateway_address(), worker_address(), true);
    for seq in 0..500 {
        pair.to_worker.send(&ToWorker::Close { key: key(seq) }).unwrap();
    }
    // By the simulation's own clock.
    tokio::time::timeout(flush * 2, pair.gateway.listener.stop())
        .await
        .unwrap();
    assert_eq!(pair.gateway.heard.down().await.1, DownReason::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_stops_takes_no_more_workers() {
    let mut pair = Pair::new().await;
    pair.world.net.cut(gateway_address(), worker_address(), true);
    let stopping = tokio::spawn(pair.gateway.listener.stop());
    tokio::task::yield_now().await;
    assert_eq!(
        pair.to_worker.send(&ToWorker::Close { key: key(1) }),
        Err(SendError::Down)
    );
    let identity = pair.world.identity(&[Role::Decode]);
    let address = "10.0.1.2:9000".parse().unwrap();
    let mut late = pair
        .world
        .worker_as(&identity, address, hello("late", 12), config());
    // While the other link is being flushed, by the simulation's own clock.
    let error = tokio::time::timeout(config().flush_deadline / 2, late.failure()).await;
    let error = error.unwrap().to_string();
    assert!(error.contains("refused to accept"), "{error}");
    stopping.await.unwrap();
    assert_eq!(pair.gateway.heard.down().await.1, DownReason::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_dropped_says_down_too() {
    let mut pair = Pair::new().await;
    drop(pair.worker.dialer);
    assert_eq!(
        pair.worker.heard.down().await,
        (pair.to_gateway.id(), DownReason::Stopped)
    );
    let gone = DownReason::PeerClosed("the worker is gone".to_owned());
    assert_eq!(pair.gateway.heard.down().await.1, gone);
}

#[tokio::test(start_paused = true)]
async fn what_a_worker_dies_of_is_told() {
    for (words, told) in [
        (Some("its engine hangs"), "its engine hangs"),
        (None, "the worker is gone"),
    ] {
        let mut pair = Pair::new().await;
        pair.worker.dialer.last_words(Some("its actor panicked".into()));
        pair.worker.dialer.last_words(words.map(Into::into));
        drop(pair.worker.dialer);
        let told = DownReason::PeerClosed(told.to_owned());
        assert_eq!(pair.gateway.heard.down().await.1, told);
    }
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_is_dropped_is_gone_and_has_not_stopped() {
    let mut pair = Pair::new().await;
    drop(pair.gateway.listener);
    let (link, why) = pair.gateway.heard.down().await;
    assert_eq!((link, why), (pair.to_worker.id(), DownReason::Stopped));
    let gone = DownReason::PeerClosed("the gateway is gone".to_owned());
    assert_eq!(pair.worker.heard.down().await.1, gone);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_panics_costs_one_link() {
    let mut pair = Pair::new().await;
    pair.worker.owner.panics.store(true, Ordering::Relaxed);
    let why = DownReason::Closed("its owner failed".to_owned());
    assert_eq!(pair.worker.heard.down().await, (pair.to_gateway.id(), why));
    let told = DownReason::PeerClosed("its owner failed".to_owned());
    assert_eq!(pair.gateway.heard.down().await.1, told);
    pair.worker.heard.up().await;
    pair.gateway.heard.up().await;
}
