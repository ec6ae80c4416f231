//! Who gets a link, and what those hear who get none.

use mesh::{Config, DevCa, DialError, DialState, DownReason, Identity};
use wire::{Hello, Role};

use crate::nodes::{Pair, Worker, World, config, gateway_address, hello, worker_address};

/// The worker gets no link, and hears this; the gateway hears nothing, and a fitting worker is linked afterwards.
async fn check(world: World, identity: &Identity, hello_of: Hello, expected: &str) {
    let mut gateway = world.gateway(1, config());
    let mut worker = world.worker_as(identity, worker_address(), hello_of, config());
    let error = worker.failure().await;
    assert!(error.to_string().contains(expected), "{error} lacks {expected}");
    assert!(matches!(&worker.dialer.status()[..], [one] if !matches!(one.state, DialState::Up(_))));
    gateway.heard.nothing().await;
    let stats = gateway.listener.stats();
    assert_eq!(stats.refused > 0, expected.starts_with("refused"), "{stats:?}");
    assert_eq!(stats.failed > 0, !expected.starts_with("refused"), "{stats:?}");
    drop(worker);
    let fitting = world.identity(&[Role::Decode]);
    let address = "10.0.1.9:9000".parse().unwrap();
    let _fitting: Worker = world.worker_as(&fitting, address, hello("fitting", 5), config());
    assert_eq!(gateway.heard.up().await.1.node, "fitting");
}

#[tokio::test(start_paused = true)]
async fn both_ends_know_each_other() {
    let world = World::new();
    let mut gateway = world.gateway(3, config());
    let mut worker = world.worker(hello("worker", 11), config());
    let (link, peer) = gateway.heard.up().await;
    assert_eq!(peer, hello("worker", 11));
    assert_eq!(
        (link.id().epoch, link.node(), link.remote()),
        (11, "worker", worker_address())
    );
    let (link, peer) = worker.heard.up().await;
    assert_eq!(
        (peer.version, peer.epoch, peer.heartbeat_ms, peer.lease_ms),
        (wire::VERSION, 3, 250, 2000)
    );
    assert_eq!(
        (link.id().epoch, link.node(), link.remote()),
        (3, "gateway", gateway_address())
    );
    assert!(matches!(&worker.dialer.status()[..], [one] if one.state == DialState::Up(link.id())));
}

#[tokio::test(start_paused = true)]
async fn a_worker_takes_the_gateways_lease() {
    let gateway = Config {
        lease: std::time::Duration::from_secs(1),
        ..config()
    };
    let pair = Pair::with(gateway, config()).await;
    assert_eq!(pair.to_gateway.lease().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_layout_is_refused() {
    let world = World::new();
    let identity = world.identity(&[Role::Decode]);
    check(
        world,
        &identity,
        Hello {
            layout_hash: 8,
            ..hello("w", 1)
        },
        "refused: w (decode): the KV layouts differ",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn another_version_is_refused() {
    let world = World::new();
    let identity = world.identity(&[Role::Decode]);
    let strange = Hello {
        min_version: 8,
        max_version: 9,
        ..hello("w", 1)
    };
    check(
        world,
        &identity,
        strange,
        "refused: w (decode): the worker speaks versions 8 to 9",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_role_that_the_certificate_does_not_name_is_refused() {
    let world = World::new();
    let identity = world.identity(&[Role::Prefill, Role::Gateway]);
    check(
        world,
        &identity,
        hello("w", 1),
        "refused: w (decode): the certificate does not name the role: `decode.innkeeper` must be among",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_does_not_come_under_anothers_name() {
    let world = World::new();
    let identity = world.ca.issue("mallory", &[Role::Decode]).unwrap();
    check(
        world,
        &identity,
        hello("decode-0", 1),
        "refused: decode-0 (decode): the certificate does not name the node: `decode-0.node.innkeeper` must be among",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_gateway_does_not_come_under_anothers_name() {
    let world = World::new();
    let identity = world.ca.issue("mallory", &[Role::Gateway]).unwrap();
    let mut gateway = world.gateway_as(&identity, 1, config());
    let mut worker = world.worker(hello("w", 1), config());
    let error = worker.failure().await.to_string();
    assert!(
        error.contains("`gateway.node.innkeeper` must be among"),
        "{error}"
    );
    gateway.heard.up().await;
    let (_, why) = gateway.heard.down().await;
    assert!(
        matches!(&why, DownReason::PeerClosed(why) if *why == error),
        "{why}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_worker_of_another_authority_is_not_let_in() {
    let world = World::new();
    let mut identity = DevCa::new().unwrap().issue("w", &[Role::Decode]).unwrap();
    identity.roots = world.identity(&[]).roots;
    check(world, &identity, hello("w", 1), "connection lost").await;
}

#[tokio::test(start_paused = true)]
async fn a_gateway_of_another_authority_is_not_believed() {
    let world = World::new();
    let mut identity = world.identity(&[Role::Decode]);
    identity.roots = DevCa::new().unwrap().issue("w", &[]).unwrap().roots;
    check(world, &identity, hello("w", 1), "cannot connect").await;
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_is_none_is_not_believed() {
    let world = World::new();
    let mut gateway = world.gateway_as(&world.identity(&[Role::Decode]), 1, config());
    let mut worker = world.worker(hello("w", 1), config());
    assert!(matches!(worker.failure().await, DialError::Connect(_)));
    gateway.heard.nothing().await;
}

/// With a worker of name `worker` and incarnation 11 linked, another one is refused and costs it nothing.
async fn check_beside(name: &str, epoch: u64, expected: &str) {
    let config = Config {
        max_links: 2,
        ..config()
    };
    let mut pair = Pair::with(config.clone(), config.clone()).await;
    let identity = pair.world.identity(&[Role::Decode]);
    let beside = |n: u8, hello| {
        let address = format!("10.0.2.{n}:9000").parse().unwrap();
        pair.world.worker_as(&identity, address, hello, config.clone())
    };
    let _second = beside(2, hello("second", 5));
    assert_eq!(pair.gateway.heard.up().await.1.node, "second");
    let mut refused = beside(3, hello(name, epoch));
    let error = refused.failure().await.to_string();
    assert!(error.contains(expected), "{error} lacks {expected}");
    pair.gateway.heard.nothing().await;
    assert!(!pair.to_worker.is_down() && !pair.to_gateway.is_down());
}

#[tokio::test(start_paused = true)]
async fn what_would_take_a_living_links_place_is_refused() {
    check_beside("worker", 11, "linked to this gateway already").await;
    check_beside("worker", 10, "a newer incarnation of this name is linked").await;
    check_beside("other", 11, "worker is linked with this incarnation").await;
    check_beside("other", 12, "has 2 links, and takes no more").await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_clock_went_back_is_let_in_once_the_old_link_is_silent() {
    let mut pair = Pair::new().await;
    // Killed: it says nothing any more.
    let (from, to) = (worker_address(), gateway_address());
    pair.world.net.cut(from, to, true);
    let identity = pair.world.identity(&[Role::Decode]);
    let address = "10.0.1.2:9000".parse().unwrap();
    let mut restarted = pair
        .world
        .worker_as(&identity, address, hello("worker", 10), config());
    assert!(matches!(
        pair.gateway.heard.down().await.1,
        DownReason::Silent { .. }
    ));
    assert_eq!(pair.gateway.heard.up().await.1.epoch, 10);
    restarted.heard.up().await;
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_comes_later_is_found() {
    let world = World::new();
    let mut worker = world.worker(hello("w", 1), config());
    assert!(matches!(worker.failure().await, DialError::Deadline(_)));
    let mut gateway = world.gateway(1, config());
    gateway.heard.up().await;
    worker.heard.up().await;
}
