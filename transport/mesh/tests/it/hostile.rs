//! Peers that keep to nothing.

use std::time::Duration;

use mesh::{DownReason, client_config};
use quinn::{Connection, Endpoint, RecvStream, SendStream};
use wire::{HELLO_VERSION, Header, Message, Role, ToGateway, VERSION};

use crate::nodes::{Gateway, World, config, gateway_address, hello, key};

/// Connects as a worker would, certificate and all.
async fn connect(world: &World) -> (Endpoint, Connection) {
    let client = client_config(&world.identity(&[Role::Decode]), &config()).unwrap();
    let endpoint = world.net.endpoint("10.0.1.66:9000".parse().unwrap(), None);
    let connecting = endpoint
        .connect_with(client, gateway_address(), "gateway.innkeeper")
        .unwrap();
    let connection = connecting.await.unwrap();
    (endpoint, connection)
}

/// An accepted worker whose frames are made by hand.
async fn linked(world: &World, gateway: &mut Gateway) -> (Endpoint, RecvStream, SendStream) {
    let (endpoint, connection) = connect(world).await;
    let (mut send, recv) = connection.open_bi().await.unwrap();
    let hello = hello("hostile", 66).encode(HELLO_VERSION).unwrap();
    send.write_all(hello.as_bytes()).await.unwrap();
    gateway.heard.up().await;
    (endpoint, recv, send)
}

fn frame(kind: u16, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    let mut bytes = Header {
        version: VERSION,
        kind,
        length,
    }
    .to_bytes()
    .to_vec();
    bytes.extend_from_slice(payload);
    bytes
}

fn closed(seq: u64) -> ToGateway {
    ToGateway::Closed { key: key(seq) }
}

#[tokio::test(start_paused = true)]
async fn bad_frames_cost_themselves_and_lost_framing_the_link() {
    let world = World::new();
    let mut gateway = world.gateway(1, config());
    let (_endpoint, connection) = connect(&world).await;
    let (mut send, _recv) = connection.open_bi().await.unwrap();
    let hello = hello("hostile", 66).encode(HELLO_VERSION).unwrap();
    send.write_all(hello.as_bytes()).await.unwrap();
    let (link, _) = gateway.heard.up().await;

    let good = closed(1).encode(VERSION).unwrap();
    let mut other_version = good.as_bytes().to_vec();
    other_version[4] = 7;
    for bad in [
        frame(999, b"unknown"),
        frame(40, &[0xff; 64]),
        frame(40, &[]),
        frame(16, &[0; 32]),
        other_version,
    ] {
        send.write_all(&bad).await.unwrap();
    }
    send.write_all(good.as_bytes()).await.unwrap();
    assert_eq!(gateway.heard.frame().await, closed(1));
    assert_eq!(link.stats().dropped_in, 5);

    send.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(matches!(gateway.heard.down().await.1, DownReason::Framing(_)));
}

#[tokio::test(start_paused = true)]
async fn an_oversized_frame_is_not_waited_for() {
    let world = World::new();
    let mut gateway = world.gateway(1, config());
    let (_endpoint, _recv, mut send) = linked(&world, &mut gateway).await;
    let mut header = frame(40, &[]);
    header[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    send.write_all(&header).await.unwrap();
    assert!(matches!(gateway.heard.down().await.1, DownReason::Framing(_)));
}

#[tokio::test(start_paused = true)]
async fn half_a_frame_is_silence() {
    let world = World::new();
    let mut gateway = world.gateway(1, config());
    let (_endpoint, _recv, mut send) = linked(&world, &mut gateway).await;
    let good = closed(1).encode(VERSION).unwrap();
    send.write_all(&good.as_bytes()[..20]).await.unwrap();
    assert!(matches!(gateway.heard.down().await.1, DownReason::Silent { .. }));
}

/// Nothing comes of the caller; a worker is linked while it is at it.
async fn check_ignored(world: &World, gateway: &mut Gateway, failed: u64) {
    let mut worker = world.worker(hello("worker", 1), config());
    worker.heard.up().await;
    assert_eq!(gateway.heard.up().await.1.node, "worker");
    tokio::time::sleep(config().hello_deadline * 2).await;
    assert_eq!(
        (gateway.listener.stats().failed, gateway.listener.stats().links),
        (failed, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn packets_from_anyone_are_ignored() {
    let world = World::new();
    let mut gateway = world.gateway(1, config());
    let from = "10.6.6.6:666".parse().unwrap();
    for n in 0..200u8 {
        let packet = (0..1200u32)
            .map(|i| n.wrapping_mul(31) ^ (i % 251) as u8)
            .collect();
        world.net.inject(from, gateway_address(), packet);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    check_ignored(&world, &mut gateway, 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_without_a_word_is_dropped() {
    let world = World::new();
    let mut gateway = world.gateway(1, config());
    let (_endpoint, connection) = connect(&world).await;
    check_ignored(&world, &mut gateway, 1).await;
    assert!(connection.close_reason().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_hello_that_is_none_is_dropped() {
    let world = World::new();
    let mut gateway = world.gateway(1, config());
    let (_endpoint, connection) = connect(&world).await;
    let (mut send, _recv) = connection.open_bi().await.unwrap();
    send.write_all(&frame(1, &[0xee; 200])).await.unwrap();
    check_ignored(&world, &mut gateway, 1).await;
}

#[tokio::test(start_paused = true)]
async fn too_many_callers_are_turned_away() {
    let world = World::new();
    let config = mesh::Config {
        max_pending: 1,
        ..config()
    };
    let gateway = world.gateway(1, config.clone());
    let (_endpoint, _connection) = connect(&world).await;
    let client = client_config(&world.identity(&[Role::Decode]), &config).unwrap();
    let endpoint = world.net.endpoint("10.0.1.67:9000".parse().unwrap(), None);
    let second = endpoint
        .connect_with(client, gateway_address(), "gateway.innkeeper")
        .unwrap()
        .await;
    assert!(second.is_err());
    assert_eq!(gateway.listener.stats().turned_away, 1);
}
