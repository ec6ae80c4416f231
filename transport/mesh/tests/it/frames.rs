//! What is sent arrives, in order, and what is too much is refused.

use mesh::{Config, DownReason, LinkEvent, SendError};
use wire::{RoomKey, Sampling, ToGateway, ToWorker, Work};

use crate::nodes::{Pair, config, gateway_address, kept, key, worker_address};

fn work(tokens: usize) -> Work {
    let sampling = Sampling {
        temperature: 0.0,
        top_p: 1.0,
        top_k: 0,
        min_p: 0.0,
        seed: 0,
        presence_penalty: 0.0,
        frequency_penalty: 0.0,
        logprobs: None,
    };
    Work {
        tokens: vec![7; tokens],
        prompt_tokens: 1,
        max_new: 1,
        ignore_eos: false,
        priority: 0,
        sampling,
        salt: 0,
        trace: None,
    }
}

#[tokio::test(start_paused = true)]
async fn frames_arrive_in_order_both_ways() {
    let mut pair = Pair::new().await;
    for seq in 0..1000 {
        pair.to_worker.send(&ToWorker::Release { key: key(seq) }).unwrap();
        pair.to_gateway
            .send(&ToGateway::Closed { key: key(seq) })
            .unwrap();
    }
    for seq in 0..1000 {
        assert_eq!(
            pair.worker.heard.frame().await,
            ToWorker::Release { key: key(seq) }
        );
        assert_eq!(
            pair.gateway.heard.frame().await,
            ToGateway::Closed { key: key(seq) }
        );
    }
    let stats = pair.to_worker.stats();
    assert!(stats.frames_out >= 1000 && stats.frames_in >= 1000, "{stats:?}");
    assert!(stats.bytes_out > 16_000 && stats.rtt.as_millis() > 0, "{stats:?}");
    assert_eq!(
        (stats.dropped_in, stats.queued_frames, stats.queued_bytes),
        (0, 0, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn the_longest_prompt_fits() {
    let mut pair = Pair::new().await;
    for tokens in [131_072, 262_144] {
        let frame = ToWorker::Prefill {
            key: key(1),
            work: work(tokens),
            until: 9,
            deadline_ms: 1,
        };
        pair.to_worker.send(&frame).unwrap();
        assert_eq!(pair.worker.heard.frame().await, frame);
    }
}

#[tokio::test(start_paused = true)]
async fn a_frame_beyond_a_limit_costs_nothing_but_itself() {
    let mut pair = Pair::new().await;
    let frame = ToWorker::Prefill {
        key: key(1),
        work: work(0),
        until: 9,
        deadline_ms: 1,
    };
    assert!(matches!(pair.to_worker.send(&frame), Err(SendError::Invalid(_))));
    pair.to_worker.send(&ToWorker::Close { key: key(2) }).unwrap();
    assert_eq!(pair.worker.heard.frame().await, ToWorker::Close { key: key(2) });
}

/// Sends into a network that is cut until the queue is full; then the link ends by itself.
async fn check_bound(config: Config, frame: &ToWorker) -> SendError {
    let mut pair = Pair::with(config.clone(), config).await;
    let (from, to) = (gateway_address(), worker_address());
    pair.world.net.cut(from, to, true);
    let error = loop {
        if let Err(error) = pair.to_worker.send(frame) {
            break error;
        }
        tokio::task::yield_now().await;
    };
    let (link, why) = pair.gateway.heard.down().await;
    assert_eq!(link, pair.to_worker.id());
    assert!(
        matches!(why, DownReason::Silent { .. } | DownReason::NotReading { .. }),
        "{why}"
    );
    assert_eq!(pair.to_worker.send(frame), Err(SendError::Down));
    error
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_bounded_in_frames() {
    let config = Config {
        queue_frames: 10,
        ..config()
    };
    let keys = (0..30_000).map(|seq| kept(RoomKey { seq, generation: 1 }));
    let error = check_bound(
        config,
        &ToWorker::Heartbeat {
            n: 1,
            open: keys.collect(),
        },
    )
    .await;
    assert!(matches!(error, SendError::Full { frames: 10, .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_bounded_in_bytes() {
    let config = Config {
        queue_bytes: 1_000_000,
        ..config()
    };
    let frame = ToWorker::Reserve {
        key: key(1),
        work: work(100_000),
        until: 9,
        deadline_ms: 1,
    };
    let error = check_bound(config, &frame).await;
    assert!(
        matches!(
            error,
            SendError::Full {
                bytes: 600_000..=1_000_000,
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_takes_nothing_loses_its_link() {
    // Shorter than the lease, so that it is the writer who finds out.
    let config = Config {
        stall_deadline: std::time::Duration::from_millis(500),
        ..config()
    };
    let mut pair = Pair::with(config.clone(), config).await;
    pair.world.net.cut(gateway_address(), worker_address(), true);
    let frame = ToWorker::Reserve {
        key: key(1),
        work: work(200_000),
        until: 9,
        deadline_ms: 1,
    };
    while pair.to_worker.send(&frame).is_ok() {}
    let (_, why) = pair.gateway.heard.down().await;
    assert!(matches!(why, DownReason::NotReading { .. }), "{why}");
}

/// The worker's owner deals with no frame: what it is given is bounded, and then the link ends.
async fn check_unread(config: Config, frame: &ToWorker, expected: usize) {
    let mut pair = Pair::with(config.clone(), config).await;
    while pair.to_worker.send(frame).is_ok() {
        tokio::task::yield_now().await;
    }
    let (mut given, mut unread) = (0, Vec::new());
    let why = loop {
        match pair.worker.heard.next().await {
            LinkEvent::Frame { unread: one, .. } => {
                given += 1;
                unread.push(one);
            }
            LinkEvent::Down { why, .. } => break why,
            other @ LinkEvent::Up { .. } => panic!("{other:?}"),
        }
    };
    assert_eq!(given, expected);
    // Both ends notice at about the same time.
    assert!(
        matches!(why, DownReason::Behind { .. } | DownReason::PeerClosed(_)),
        "{why}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_owner_has_not_dealt_with_is_bounded() {
    let config = Config {
        queue_frames: 100,
        queue_bytes: 1_000_000,
        ..config()
    };
    check_unread(config.clone(), &ToWorker::Release { key: key(1) }, 100).await;
    let long = ToWorker::Reserve {
        key: key(1),
        work: work(50_000),
        until: 9,
        deadline_ms: 1,
    };
    check_unread(config, &long, 4).await;
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_behind_many_long_prompts_is_in_time() {
    let mut pair = Pair::new().await;
    let long = ToWorker::Reserve {
        key: key(1),
        work: work(262_144),
        until: 9,
        deadline_ms: 1,
    };
    for _ in 0..24 {
        pair.to_worker.send(&long).unwrap();
    }
    for _ in 0..24 {
        assert_eq!(pair.worker.heard.frame().await, long);
    }
    assert!(!pair.to_worker.is_down() && !pair.to_gateway.is_down());
}
