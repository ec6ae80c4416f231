//! Peers that keep to nothing.

use std::net::SocketAddr;
use std::time::Duration;

use mesh::{Config, DownReason, client_config};
use quinn::{Connecting, Connection, ConnectionError, Endpoint, RecvStream, SendStream};
use wire::{HELLO_VERSION, Header, Message, Role, ToGateway, VERSION};

use crate::nodes::{Gateway, World, config, gateway_address, hello, key};

/// Connects as a worker would, certificate and all.
async fn connect(world: &World) -> (Endpoint, Connection) {
    let (endpoint, connecting) = call(world, 66);
    (endpoint, connecting.await.unwrap())
}

/// The first packet of a connection, from 10.0.6.`n`.
fn call(world: &World, n: u8) -> (Endpoint, Connecting) {
    let client = client_config(&world.identity(&[Role::Decode]), &config()).unwrap();
    let endpoint = world.net.endpoint(caller(n), None);
    let connecting = endpoint
        .connect_with(client, gateway_address(), "gateway.innkeeper")
        .unwrap();
    (endpoint, connecting)
}

fn caller(n: u8) -> SocketAddr {
    ([10, 0, 6, n], 9000).into()
}

/// How the other end closed: its code, and the reason.
async fn closed_with(connection: &Connection) -> (u64, String) {
    match connection.closed().await {
        ConnectionError::ApplicationClosed(close) => (
            close.error_code.into_inner(),
            String::from_utf8(close.reason.to_vec()).unwrap(),
        ),
        other => panic!("{other}"),
    }
}

/// An accepted worker whose frames are made by hand.
async fn linked(world: &World, gateway: &mut Gateway) -> (Connection, RecvStream, SendStream) {
    let (_, connection) = connect(world).await;
    let (mut send, recv) = connection.open_bi().await.unwrap();
    let hello = hello("hostile", 66).encode(HELLO_VERSION).unwrap();
    send.write_all(hello.as_bytes()).await.unwrap();
    gateway.heard.up().await;
    (connection, recv, send)
}

fn frame(kind: u16, payload: &[u8]) -> Vec<u8> {
    frame_of(VERSION, kind, payload)
}

fn frame_of(version: u16, kind: u16, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    let mut bytes = Header {
        version,
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
    let (_connection, _recv, mut send) = linked(&world, &mut gateway).await;
    let mut header = frame(40, &[]);
    header[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    send.write_all(&header).await.unwrap();
    assert!(matches!(gateway.heard.down().await.1, DownReason::Framing(_)));
}

#[tokio::test(start_paused = true)]
async fn half_a_frame_is_silence() {
    let world = World::new();
    let mut gateway = world.gateway(1, config());
    let (_connection, _recv, mut send) = linked(&world, &mut gateway).await;
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
    assert_eq!(closed_with(&connection).await, (3, "no hello in time".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_hello_that_is_none_is_dropped() {
    let world = World::new();
    let mut gateway = world.gateway(1, config());
    let (_endpoint, connection) = connect(&world).await;
    let (mut send, _recv) = connection.open_bi().await.unwrap();
    send.write_all(&frame_of(HELLO_VERSION, 1, &[0xee; 200]))
        .await
        .unwrap();
    check_ignored(&world, &mut gateway, 1).await;
    let (code, why) = closed_with(&connection).await;
    assert!(
        code == 3 && why.starts_with("no hello: hello: not an archive"),
        "{why}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_caller_without_a_word_does_not_hold_up_a_stop() {
    let world = World::new();
    let gateway = world.gateway(1, config());
    let (_endpoint, connection) = connect(&world).await;
    // Until the gateway has its certificate.
    tokio::time::sleep(Duration::from_millis(100)).await;
    gateway.listener.stop().await;
    assert_eq!(
        closed_with(&connection).await,
        (1, "the gateway stops".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_is_never_understood_is_silent() {
    let world = World::new();
    let mut gateway = world.gateway(1, config());
    let (connection, _recv, mut send) = linked(&world, &mut gateway).await;
    let babble = async {
        while send.write_all(&frame(40, &[0xff; 64])).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let (down, ()) = tokio::join!(gateway.heard.down(), babble);
    assert!(matches!(down.1, DownReason::Silent { .. }), "{}", down.1);
    let (code, why) = closed_with(&connection).await;
    assert!(code == 4 && why.starts_with("silent for"), "{code}: {why}");
}

/// What the hostile end does after a hello, and how its link ends.
async fn check_ending(expected: DownReason, act: impl AsyncFnOnce(&Connection, &mut SendStream)) {
    let world = World::new();
    let mut gateway = world.gateway(1, config());
    let (connection, _recv, mut send) = linked(&world, &mut gateway).await;
    act(&connection, &mut send).await;
    assert_eq!(gateway.heard.down().await.1, expected);
}

#[tokio::test(start_paused = true)]
async fn an_end_is_what_the_peer_made_of_it() {
    let peer = |why: &str| DownReason::PeerClosed(why.to_owned());
    check_ending(DownReason::PeerStopped, async |_, send| send.finish().unwrap()).await;
    // In a header, behind it, and in a payload.
    for bytes in [5, Header::BYTES, 20] {
        check_ending(peer("it ended its stream within a frame"), async |_, send| {
            send.write_all(&frame(40, &[1; 64])[..bytes]).await.unwrap();
            send.finish().unwrap();
        })
        .await;
    }
    check_ending(DownReason::PeerStopped, async |connection, _| {
        connection.close(1u8.into(), b"whatever");
    })
    .await;
    check_ending(
        peer("it is gone without a reason, code 0"),
        async |connection, _| {
            connection.close(0u8.into(), b"");
        },
    )
    .await;
    // A log keeps its lines.
    check_ending(peer("a\u{fffd}b\u{fffd}[31m\u{fffd}"), async |connection, _| {
        connection.close(99u8.into(), b"a\nb\x1b[31m\xff");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn callers_that_are_not_where_they_say_do_not_keep_workers_out() {
    let world = World::new();
    let config = Config {
        max_pending: 4,
        ..config()
    };
    let mut gateway = world.gateway(1, config.clone());
    let mut callers = Vec::new();
    for n in 1..=20 {
        world.net.cut(gateway_address(), caller(n), true);
        callers.push(call(&world, n));
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut worker = world.worker(hello("worker", 1), config);
    worker.heard.up().await;
    assert_eq!(gateway.heard.up().await.1.node, "worker");
    assert_eq!(gateway.listener.stats().turned_away, 0);
}

#[tokio::test(start_paused = true)]
async fn too_many_callers_are_turned_away() {
    let world = World::new();
    let config = Config {
        max_pending: 1,
        ..config()
    };
    let gateway = world.gateway(1, config);
    let (_endpoint, _connection) = connect(&world).await;
    let (_endpoint, second) = call(&world, 67);
    assert!(second.await.is_err());
    assert_eq!(gateway.listener.stats().turned_away, 1);
}
