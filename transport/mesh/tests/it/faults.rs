//! The fault switches do what they say, and nothing else.

use std::collections::BTreeMap;
use std::time::Duration;

use mesh::{DownReason, Fault};
use wire::{Kind, ToWorker};

use crate::nodes::{Pair, config, key};

/// Sends Close 1, Release 2, Close 3 with this fault on Close; what arrives, by number.
async fn check(fault: Option<Fault>, expected: &[u64]) {
    let switched = config();
    let mut pair = Pair::with(switched.clone(), config()).await;
    switched.faults.set(Kind::Close, fault);
    pair.to_worker.send(&ToWorker::Close { key: key(1) }).unwrap();
    pair.to_worker.send(&ToWorker::Release { key: key(2) }).unwrap();
    pair.to_worker.send(&ToWorker::Close { key: key(3) }).unwrap();
    let mut arrived = Vec::new();
    for _ in expected {
        arrived.push(pair.worker.heard.frame().await.key().unwrap().seq);
    }
    assert_eq!(arrived, expected, "{fault:?}");
    pair.worker.heard.nothing().await;
    let struck = fault.map(|fault| ((Kind::Close, fault.name()), 2));
    assert_eq!(switched.faults.struck(), BTreeMap::from_iter(struck));
    assert_eq!(switched.faults.hits(), if fault.is_some() { 2 } else { 0 });
    switched.faults.set(Kind::Close, None);
    pair.to_worker.send(&ToWorker::Close { key: key(4) }).unwrap();
    assert_eq!(pair.worker.heard.frame().await, ToWorker::Close { key: key(4) });
}

#[tokio::test(start_paused = true)]
async fn by_kind() {
    check(None, &[1, 2, 3]).await;
    check(Some(Fault::Drop), &[2]).await;
    check(Some(Fault::Duplicate), &[1, 1, 2, 3, 3]).await;
    check(Some(Fault::Again(Duration::from_millis(100))), &[1, 2, 3, 1, 3]).await;
    check(Some(Fault::Delay(Duration::from_millis(100))), &[2, 1, 3]).await;
}

#[tokio::test(start_paused = true)]
async fn one_way() {
    for (out, r#in) in [(true, false), (false, true)] {
        let switched = config();
        let mut pair = Pair::with(config(), switched.clone()).await;
        switched.faults.cut(out, r#in);
        let (_, at_worker) = pair.worker.heard.down().await;
        let (_, at_gateway) = pair.gateway.heard.down().await;
        let (silent, told) = if out {
            (at_gateway, at_worker)
        } else {
            (at_worker, at_gateway)
        };
        assert!(matches!(silent, DownReason::Silent { .. }), "{silent}");
        // Who hears nothing answers nothing: the other one may find out by itself at the same time.
        let silent_too = !out && matches!(told, DownReason::Silent { .. });
        assert!(silent_too || matches!(told, DownReason::PeerClosed(_)), "{told}");
        switched.faults.cut(false, false);
        pair.worker.heard.up().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_lost_is_lost_at_a_stop_too() {
    let switched = config();
    let mut pair = Pair::with(switched.clone(), config()).await;
    switched.faults.set(Kind::Close, Some(Fault::Drop));
    for seq in 0..100 {
        pair.to_worker.send(&ToWorker::Close { key: key(seq) }).unwrap();
    }
    pair.to_worker.send(&ToWorker::Release { key: key(100) }).unwrap();
    pair.gateway.listener.stop().await;
    assert_eq!(
        pair.worker.heard.frame().await,
        ToWorker::Release { key: key(100) }
    );
    pair.worker.heard.down().await;
    assert_eq!(switched.faults.hits(), 100);
}
