//! Who gets a link, and what those hear who get none.

use mesh::{DevCa, DialError, DialState, Identity};
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
    assert!(gateway.listener.stats().failed > 0);
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
        (1, 3, 250, 2000)
    );
    assert_eq!(
        (link.id().epoch, link.node(), link.remote()),
        (3, "gateway", gateway_address())
    );
    assert!(matches!(&worker.dialer.status()[..], [one] if one.state == DialState::Up(link.id())));
}

#[tokio::test(start_paused = true)]
async fn a_worker_takes_the_gateways_lease() {
    let gateway = mesh::Config {
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
        "refused: the KV layouts differ",
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
        "refused: the worker speaks versions 8 to 9",
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
        "`decode.innkeeper` must be among",
    )
    .await;
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

#[tokio::test(start_paused = true)]
async fn one_incarnation_has_one_link() {
    let mut pair = Pair::new().await;
    let identity = pair.world.identity(&[Role::Decode]);
    let address = "10.0.1.2:9000".parse().unwrap();
    let mut second = pair
        .world
        .worker_as(&identity, address, hello("worker", 11), config());
    assert!(
        second
            .failure()
            .await
            .to_string()
            .contains("linked to this gateway already")
    );
    pair.gateway.heard.nothing().await;
    assert!(!pair.to_worker.is_down());
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
