//! A peer that keeps to nothing: packets of anything, a stranger's certificate, or a worker's with frames made by hand.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use mesh::{DevCa, client_config, dial_endpoint};
use quinn::{Connection, Endpoint, RecvStream, SendStream};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::net::UdpSocket;
use tokio::time::{sleep, timeout};
use wire::{HELLO_VERSION, Header, Hello, Message, Role, VERSION};

/// What gateways are called in certificates.
const GATEWAY: &str = "gateway.innkeeper";
const PATIENCE: Duration = Duration::from_secs(10);
/// A frame's header, of which bytes 8 to 12 are the length.
const LENGTH: std::ops::Range<usize> = 8..12;

/// A connection to a gateway's mesh port, with whatever certificate.
pub(crate) struct Intruder {
    _endpoint: Endpoint,
    connection: Connection,
}

impl Intruder {
    /// Connects with a certificate of the authority in this folder, which is made if there is none.
    pub(crate) async fn connect(to: SocketAddr, authority: &Path) -> Result<Self, String> {
        let why = |error: &dyn std::error::Error| error.to_string();
        let authority = DevCa::open_or_create(authority).map_err(|error| why(&error))?;
        let identity = authority
            .issue("intruder", &[Role::Decode])
            .map_err(|error| why(&error))?;
        let client = client_config(&identity, &mesh::Config::default()).map_err(|error| why(&error))?;
        let endpoint = dial_endpoint((Ipv4Addr::LOCALHOST, 0).into()).map_err(|error| why(&error))?;
        let connecting = endpoint.connect_with(client, to, GATEWAY);
        let connecting = connecting.map_err(|error| why(&error))?;
        let connected = timeout(PATIENCE, connecting).await;
        let connection = connected.map_err(|_| "no answer")?.map_err(|error| why(&error))?;
        Ok(Self {
            _endpoint: endpoint,
            connection,
        })
    }

    /// Says hello.
    pub(crate) async fn greet(&self, hello: &Hello) -> (SendStream, RecvStream) {
        let (mut send, recv) = self.connection.open_bi().await.unwrap();
        let bytes = hello.encode(HELLO_VERSION).unwrap();
        send.write_all(bytes.as_bytes()).await.unwrap();
        (send, recv)
    }

    /// Waits until the gateway ends the connection; its reason.
    pub(crate) async fn thrown_out(&self) -> String {
        let closed = timeout(PATIENCE, self.connection.closed()).await;
        closed.map_or_else(|_| "it is not".to_owned(), |error| error.to_string())
    }

    /// Whether the gateway has ended the connection.
    pub(crate) fn is_out(&self) -> bool {
        self.connection.close_reason().is_some()
    }
}

/// What a decode worker of this layout would say.
pub(crate) fn hello(model: &str, layout_hash: u64) -> Hello {
    Hello {
        min_version: wire::MIN_VERSION,
        max_version: VERSION,
        node: "intruder".to_owned(),
        epoch: u64::MAX / 2,
        role: Role::Decode,
        model: model.to_owned(),
        layout_hash,
        block_tokens: 16,
        blocks: 64,
        slots: 4,
        context_tokens: 8_192,
        kv_address: b"ucx:127.0.0.1:9".to_vec(),
        numerics: "none".to_owned(),
        faults: true,
    }
}

/// What a worker would say that fits those of this gateway: each refusal tells what would be right.
pub(crate) async fn fitting(to: SocketAddr, authority: &Path) -> Hello {
    let told = refused(to, authority, &hello("none", 1)).await;
    let model = told
        .split("this gateway ")
        .nth(1)
        .unwrap_or_else(|| panic!("{told}"));
    let model: String = model
        .chars()
        .take_while(|c| !c.is_control() && *c != ' ' && *c != '"')
        .collect();
    let told = refused(to, authority, &hello(&model, 1)).await;
    let hash = told
        .split("that of ")
        .nth(1)
        .and_then(|rest| rest.split(" is ").nth(1));
    let hash = hash.and_then(|hash| u64::from_str_radix(hash.get(..16)?, 16).ok());
    hello(
        &model,
        hash.unwrap_or_else(|| panic!("the refusal does not say what would be right: {told}")),
    )
}

/// Why a gateway does not take a worker that says this.
pub(crate) async fn refused(to: SocketAddr, authority: &Path, hello: &Hello) -> String {
    let intruder = Intruder::connect(to, authority).await.unwrap();
    let (_send, mut recv) = intruder.greet(hello).await;
    let said = timeout(PATIENCE, recv.read_to_end(4_096)).await;
    let said = said.map(Result::unwrap_or_default).unwrap_or_default();
    // Who has been told why leaves: the gateway waits for that before it ends the connection.
    if said.is_empty() {
        return intruder.thrown_out().await;
    }
    String::from_utf8_lossy(&said).into_owned()
}

/// A frame of this kind around these bytes.
fn frame(kind: u16, payload: &[u8]) -> Vec<u8> {
    let header = Header {
        version: VERSION,
        kind,
        length: u32::try_from(payload.len()).unwrap(),
    };
    [header.to_bytes().as_slice(), payload].concat()
}

/// Frames that a gateway must drop, each by itself: unknown kinds, bytes that are no archive, nothing at all, another version; and some
/// good ones of rooms that it does not have, twice.
pub(crate) fn bad_frames() -> Vec<Vec<u8>> {
    let mut frames = vec![frame(999, b"unknown")];
    for kind in wire::Kind::ALL {
        let kind = kind.number();
        frames.push(frame(kind, &[0xff; 64]));
        frames.push(frame(kind, &[]));
        frames.push(frame(kind, &[0; 32]));
    }
    let mut other_version = frame(40, &[1; 64]);
    other_version[4] = 7;
    frames.push(other_version);
    let key = wire::RoomKey {
        seq: 999_999,
        generation: 1,
    };
    let closed = wire::ToGateway::Closed { key }.encode(VERSION).unwrap();
    frames.push(closed.as_bytes().to_vec());
    frames.push(closed.as_bytes().to_vec());
    frames
}

/// A header that announces more than any frame may have.
pub(crate) fn oversized() -> Vec<u8> {
    let mut header = frame(40, &[]);
    header[LENGTH].copy_from_slice(&u32::MAX.to_le_bytes());
    header
}

/// So many packets of anything, some of which begin as a QUIC connection does.
pub(crate) async fn packets(to: SocketAddr, count: usize, seed: u64) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    socket.writable().await.unwrap();
    let mut random = StdRng::seed_from_u64(seed);
    for n in 0..count {
        let length = [1, 20, 1_200, 1_452][n % 4];
        let mut packet: Vec<u8> = (0..length).map(|_| random.random()).collect();
        if length >= 1_200 && n % 8 < 4 {
            // A long header of version 1, an eight-byte connection id.
            packet[..6].copy_from_slice(&[0xc3, 0, 0, 0, 1, 8]);
        }
        // A full queue loses it, as a network may.
        let _ = socket.try_send_to(&packet, to);
        if n % 50 == 0 {
            sleep(Duration::from_millis(1)).await;
        }
    }
}
