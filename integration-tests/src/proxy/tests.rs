//! Each rule, with a server that sends everything back.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::{TcpProxy, TcpRule, UdpProxy, UdpRule, Way};

/// Passing it means that something never comes.
const PATIENCE: Duration = Duration::from_secs(20);
/// Long enough for what is on its way on one machine.
const NOTHING_COMES: Duration = Duration::from_millis(200);

/// A server that sends everything back, and a peer that dials it through a proxy.
struct Packets {
    proxy: UdpProxy,
    peer: UdpSocket,
    _server: JoinSet<()>,
}

impl Packets {
    async fn start(seed: u64) -> Self {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let to = server.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut buffer = [0; 64];
            loop {
                let (length, from) = server.recv_from(&mut buffer).await.unwrap();
                server.send_to(&buffer[..length], from).await.unwrap();
            }
        });
        let proxy = UdpProxy::start(to, seed).await;
        let peer = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        peer.connect(proxy.address()).await.unwrap();
        Self {
            proxy,
            peer,
            _server: tasks,
        }
    }

    async fn send(&self, numbers: std::ops::Range<u8>) {
        for number in numbers {
            self.peer.send(&[number]).await.unwrap();
            // Sockets' queues are short.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// So many packets, in the order in which they came back.
    async fn receive(&self, count: usize) -> Vec<u8> {
        let mut got = Vec::new();
        let mut buffer = [0; 64];
        while got.len() < count {
            let length = timeout(PATIENCE, self.peer.recv(&mut buffer)).await;
            assert_eq!(length.expect("a packet").unwrap(), 1);
            got.push(buffer[0]);
        }
        got
    }

    async fn nothing_comes(&self) {
        let mut buffer = [0; 64];
        let came = timeout(NOTHING_COMES, self.peer.recv(&mut buffer)).await;
        assert!(came.is_err(), "{came:?}: {}", buffer[0]);
    }
}

#[tokio::test]
async fn packets_pass_unless_their_way_is_cut() {
    let packets = Packets::start(1).await;
    packets.send(0..20).await;
    assert_eq!(packets.receive(20).await, (0..20).collect::<Vec<_>>());
    for way in Way::BOTH {
        let before = packets.proxy.counts(way);
        packets.proxy.set(way, UdpRule::CUT);
        packets.send(0..5).await;
        packets.nothing_comes().await;
        let after = packets.proxy.counts(way);
        assert_eq!(
            (after.came, after.lost),
            (before.came + 5, before.lost + 5),
            "{way:?}"
        );
        packets.proxy.set(way, UdpRule::PASS);
        packets.send(7..8).await;
        assert_eq!(packets.receive(1).await, [7]);
    }
}

#[tokio::test]
async fn held_packets_come_when_they_are_released() {
    for way in Way::BOTH {
        let packets = Packets::start(1).await;
        packets.proxy.set(way, UdpRule::HOLD);
        packets.send(0..20).await;
        packets.nothing_comes().await;
        packets.proxy.set(way, UdpRule::PASS);
        assert_eq!(packets.receive(20).await, (0..20).collect::<Vec<_>>(), "{way:?}");
    }
}

#[tokio::test]
async fn late_packets_overtake_each_other() {
    let packets = Packets::start(1).await;
    let rule = UdpRule {
        delay: Duration::from_millis(20),
        jitter: Duration::from_millis(100),
        ..UdpRule::PASS
    };
    packets.proxy.set(Way::Out, rule);
    let started = Instant::now();
    packets.send(0..50).await;
    let got = packets.receive(50).await;
    assert!(started.elapsed() >= rule.delay);
    assert!(!got.is_sorted(), "{got:?}");
    assert_eq!(got.into_iter().collect::<BTreeSet<_>>(), (0..50).collect());
}

#[tokio::test]
async fn packets_come_twice() {
    let packets = Packets::start(1).await;
    let rule = UdpRule {
        duplicate_percent: 100,
        ..UdpRule::PASS
    };
    packets.proxy.set(Way::Back, rule);
    packets.send(0..3).await;
    assert_eq!(packets.receive(6).await, [0, 0, 1, 1, 2, 2]);
    assert_eq!(packets.proxy.counts(Way::Back).twice, 3);
}

#[test]
fn chance_follows_from_the_seed() {
    let rule = UdpRule {
        loss_percent: 30,
        duplicate_percent: 20,
        jitter: Duration::from_millis(5),
        ..UdpRule::PASS
    };
    let fates = |seed| {
        let mut random = StdRng::seed_from_u64(seed);
        (0..1_000).map(|_| rule.fates(&mut random)).collect::<Vec<_>>()
    };
    assert_eq!(fates(1), fates(1));
    assert_ne!(fates(1), fates(2));
    let copies = |count| fates(1).iter().filter(|fate| fate.len() == count).count();
    assert!((250..350).contains(&copies(0)), "{} lost", copies(0));
    assert!((110..170).contains(&copies(2)), "{} twice", copies(2));
}

/// A server that sends everything back.
async fn echo() -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut open = JoinSet::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            open.spawn(async move {
                let (mut from, mut to) = stream.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
    (address, tasks)
}

/// Everything goes through, and its end too.
async fn check_whole(proxy: &TcpProxy, bytes: usize) {
    let sent: Vec<u8> = (0..=250).cycle().take(bytes).collect();
    let (mut from, mut to) = TcpStream::connect(proxy.address()).await.unwrap().into_split();
    let write = async {
        to.write_all(&sent).await.unwrap();
        to.shutdown().await.unwrap();
    };
    let mut got = Vec::new();
    let read = async { from.read_to_end(&mut got).await.unwrap() };
    timeout(PATIENCE, async { tokio::join!(write, read) })
        .await
        .unwrap();
    assert!(got == sent, "{} of {bytes} bytes", got.len());
}

#[tokio::test]
async fn a_stream_passes_whole() {
    let (server, _tasks) = echo().await;
    let proxy = TcpProxy::start(server).await;
    check_whole(&proxy, 3 << 20).await;
    let slow = TcpRule {
        delay: Duration::from_millis(5),
        bytes_per_s: 200_000,
        ..TcpRule::PASS
    };
    proxy.set(Way::Back, slow);
    let started = Instant::now();
    check_whole(&proxy, 40_000).await;
    assert!(started.elapsed() >= Duration::from_millis(200));
}

#[tokio::test]
async fn a_held_stream_goes_on_when_it_is_released() {
    let (server, _tasks) = echo().await;
    for way in Way::BOTH {
        let proxy = TcpProxy::start(server).await;
        let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
        let mut buffer = [0; 4];
        stream.write_all(b"ping").await.unwrap();
        stream.read_exact(&mut buffer).await.unwrap();
        proxy.set(way, TcpRule::HOLD);
        stream.write_all(b"pong").await.unwrap();
        let came = timeout(NOTHING_COMES, stream.read_exact(&mut buffer)).await;
        assert!(came.is_err(), "{way:?}");
        proxy.set(way, TcpRule::PASS);
        timeout(PATIENCE, stream.read_exact(&mut buffer))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(&buffer, b"pong");
    }
}

/// Nothing comes on this stream any more.
async fn check_cut(mut stream: TcpStream) {
    let mut buffer = [0; 4];
    let read = timeout(PATIENCE, stream.read(&mut buffer)).await.expect("an end");
    assert!(!matches!(read, Ok(1..)), "{read:?}");
}

#[tokio::test]
async fn streams_are_cut_and_refused() {
    let (server, _tasks) = echo().await;
    let proxy = TcpProxy::start(server).await;
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    let mut buffer = [0; 4];
    stream.write_all(b"ping").await.unwrap();
    stream.read_exact(&mut buffer).await.unwrap();
    assert_eq!(proxy.open(), 1);
    proxy.sever();
    check_cut(stream).await;
    check_whole(&proxy, 1_000).await;
    proxy.refuse(true);
    check_cut(TcpStream::connect(proxy.address()).await.unwrap()).await;
    proxy.refuse(false);
    check_whole(&proxy, 1_000).await;
    // A server that is not there.
    let nobody = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let proxy = TcpProxy::start(nobody).await;
    check_cut(TcpStream::connect(proxy.address()).await.unwrap()).await;
}
