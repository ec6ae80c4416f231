//! Silence ends a link at both ends, each by itself; what comes after is another link.

use std::sync::atomic::Ordering;
use std::time::Duration;

use mesh::{Config, DownReason};
use wire::{ToGateway, ToWorker};

use crate::nodes::{Pair, config, gateway_address, key, worker_address};

/// After the fault is gone: new links at both ends, of the same incarnations, and what was queued before is not carried over.
async fn check_again(pair: &mut Pair) {
    let (to_worker, peer) = pair.gateway.heard.up().await;
    let (to_gateway, _) = pair.worker.heard.up().await;
    assert_eq!(peer.epoch, pair.to_worker.id().epoch);
    assert!(to_worker.id().number > pair.to_worker.id().number);
    assert!(to_gateway.id().number > pair.to_gateway.id().number);
    to_worker.send(&ToWorker::Close { key: key(99) }).unwrap();
    to_gateway.send(&ToGateway::Closed { key: key(98) }).unwrap();
    assert_eq!(pair.worker.heard.frame().await, ToWorker::Close { key: key(99) });
    assert_eq!(
        pair.gateway.heard.frame().await,
        ToGateway::Closed { key: key(98) }
    );
}

fn assert_silent(why: &DownReason) {
    let DownReason::Silent { silence, lease } = why else {
        panic!("silence expected, not {why}")
    };
    assert!(silence > lease && *silence < *lease * 2, "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_link_stays() {
    let mut pair = Pair::new().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    pair.gateway.heard.nothing().await;
    pair.worker.heard.nothing().await;
    assert!(!pair.to_worker.is_down() && !pair.to_gateway.is_down());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_only_the_gateway_knows_holds() {
    let gateway = Config {
        heartbeat: Duration::from_secs(20),
        lease: Duration::from_secs(90),
        ..config()
    };
    let mut pair = Pair::with(gateway, config()).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    pair.gateway.heard.nothing().await;
    pair.worker.heard.nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_cut_network_is_silence_at_both_ends() {
    let mut pair = Pair::new().await;
    let ends = [
        (gateway_address(), worker_address()),
        (worker_address(), gateway_address()),
    ];
    ends.iter()
        .for_each(|(from, to)| pair.world.net.cut(*from, *to, true));
    pair.to_worker.send(&ToWorker::Close { key: key(1) }).unwrap();
    assert_silent(&pair.gateway.heard.down().await.1);
    assert_silent(&pair.worker.heard.down().await.1);
    tokio::time::sleep(Duration::from_secs(30)).await;
    ends.iter()
        .for_each(|(from, to)| pair.world.net.cut(*from, *to, false));
    check_again(&mut pair).await;
}

#[tokio::test(start_paused = true)]
async fn a_network_cut_towards_the_worker_ends_both_ends() {
    let mut pair = Pair::new().await;
    pair.world.net.cut(gateway_address(), worker_address(), true);
    assert_silent(&pair.worker.heard.down().await.1);
    // The gateway hears the worker's farewell, or nothing: it depends on who notices first.
    let (_, why) = pair.gateway.heard.down().await;
    assert!(
        matches!(why, DownReason::Silent { .. } | DownReason::PeerClosed(_)),
        "{why}"
    );
    pair.world.net.cut(gateway_address(), worker_address(), false);
    check_again(&mut pair).await;
}

#[tokio::test(start_paused = true)]
async fn a_network_cut_towards_the_gateway_ends_both_ends() {
    let mut pair = Pair::new().await;
    pair.world.net.cut(worker_address(), gateway_address(), true);
    assert_silent(&pair.gateway.heard.down().await.1);
    pair.worker.heard.down().await;
    pair.world.net.cut(worker_address(), gateway_address(), false);
    check_again(&mut pair).await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_does_not_answer_is_silent_though_its_quic_lives() {
    let mut pair = Pair::new().await;
    pair.worker.owner.answers.store(false, Ordering::Relaxed);
    assert_silent(&pair.gateway.heard.down().await.1);
    let (_, why) = pair.worker.heard.down().await;
    assert!(
        matches!(&why, DownReason::PeerClosed(reason) if reason.starts_with("silent for")),
        "{why}"
    );
    pair.worker.owner.answers.store(true, Ordering::Relaxed);
    check_again(&mut pair).await;
}

#[tokio::test(start_paused = true)]
async fn a_gateway_without_heartbeats_is_silent() {
    let mut pair = Pair::new().await;
    pair.gateway.owner.beats.store(false, Ordering::Relaxed);
    assert_silent(&pair.worker.heard.down().await.1);
    pair.gateway.owner.beats.store(true, Ordering::Relaxed);
    pair.gateway.heard.down().await;
    check_again(&mut pair).await;
}

#[tokio::test(start_paused = true)]
async fn who_was_frozen_beyond_the_lease_believes_nothing_that_waited() {
    let mut pair = Pair::new().await;
    // All tasks of both ends stand still while time goes on: then the frame that waited is late.
    pair.to_worker.send(&ToWorker::Close { key: key(1) }).unwrap();
    pair.to_gateway.send(&ToGateway::Closed { key: key(1) }).unwrap();
    tokio::time::advance(Duration::from_secs(10)).await;
    let (_, at_worker) = pair.worker.heard.down().await;
    let (_, at_gateway) = pair.gateway.heard.down().await;
    for why in [&at_worker, &at_gateway] {
        assert!(
            matches!(
                why,
                DownReason::Silent { .. } | DownReason::PeerClosed(_) | DownReason::Lost(_)
            ),
            "{why}"
        );
    }
    check_again(&mut pair).await;
}
