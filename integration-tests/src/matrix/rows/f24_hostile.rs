//! F24: garbage from anybody at every port, and frames that are none from a peer whose certificate is good. It is dropped, or its sender is
//! refused; guests do not notice.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use wire::Hello;

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::guests::Guests;
use crate::matrix::intruder::{Intruder, bad_frames, fitting, oversized, packets};
use crate::matrix::load::longest_gap;
use crate::matrix::setup::TWO;
use crate::proc;

/// The client's time is the longest gap of a stream beside it, and the blocks' time is from the ends of those streams.
const BOUND: Bound = Bound::ms(2_000, 4_000);

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F24.mesh-garbage",
        what: "4,000 packets of anything at the mesh port, and a peer whose certificate is of another authority: refused, streams go on",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(mesh_garbage(ctx)),
    },
    Cell {
        id: "F24.mesh-frames",
        what: "a peer with a good certificate sends unknown, malformed, repeated and oversized frames: dropped, its link ends, streams go on",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(mesh_frames(ctx)),
    },
    Cell {
        id: "F24.doors-garbage",
        what: "garbage at the clients' and the operators' TCP ports: streams go on",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(doors_garbage(ctx)),
    },
    Cell {
        id: "F24.kv-garbage",
        what: "garbage at every TCP port of the workers' KV: streams go on, new ones are served (UCX keeps such connections: the note counts them)",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(kv_garbage(ctx)),
    },
];

async fn mesh_garbage(ctx: &mut Ctx) -> Measured {
    let to = ctx.cluster.ports().mesh;
    let strange = tempfile::TempDir::with_prefix("innkeeper-stranger").unwrap();
    let guests = Guests::at(ctx, "decode-0").await;
    ctx.injected();
    packets(to, 4_000, 24).await;
    let refused = match Intruder::connect(to, strange.path()).await {
        // TLS 1.3: the client may think that it is connected until the server has looked at its certificate.
        Ok(intruder) => intruder.thrown_out().await,
        Err(why) => why,
    };
    assert!(
        refused.contains("certificate") || refused.contains("UnknownCA") || refused.contains("Issuer"),
        "a stranger's end: {refused}"
    );
    quiet(ctx, guests, "").await
}

async fn mesh_frames(ctx: &mut Ctx) -> Measured {
    let to = ctx.cluster.ports().mesh;
    let authority = ctx.cluster.cache().join("dev-ca");
    let guests = Guests::at(ctx, "decode-0").await;
    ctx.injected();
    let hello = fitting(to, &authority).await;
    let mut ends = Vec::new();
    for last in [oversized(), b"GET / HTTP/1.1\r\n\r\n".to_vec()] {
        let (intruder, mut send, _recv) = linked(ctx, to, &authority, &hello).await;
        for frame in bad_frames() {
            send.write_all(&frame).await.unwrap();
        }
        // They cost themselves, and not the link.
        sleep(Duration::from_millis(300)).await;
        assert!(!intruder.is_out(), "{}", intruder.thrown_out().await);
        send.write_all(&last).await.unwrap();
        ends.push(intruder.thrown_out().await);
    }
    // Half a frame, for ever.
    let (intruder, mut send, _recv) = linked(ctx, to, &authority, &hello).await;
    send.write_all(&bad_frames()[1][..20]).await.unwrap();
    ends.push(intruder.thrown_out().await);
    assert!(ends.iter().all(|end| end != "it is not"), "{ends:?}");
    quiet(ctx, guests, &format!("its ends: {}", ends.join("; "))).await
}

/// An intruder that a gateway has taken for a worker.
async fn linked(
    ctx: &Ctx,
    to: SocketAddr,
    authority: &Path,
    hello: &Hello,
) -> (Intruder, quinn::SendStream, quinn::RecvStream) {
    let intruder = Intruder::connect(to, authority).await.unwrap();
    let (send, recv) = intruder.greet(hello).await;
    let there = || async {
        let workers = ctx.cluster.workers().await;
        workers
            .iter()
            .any(|worker| worker.name == hello.node)
            .then_some(())
    };
    ctx.cluster.until("the intruder is linked", there).await;
    (intruder, send, recv)
}

async fn doors_garbage(ctx: &mut Ctx) -> Measured {
    let ports = ctx.cluster.ports();
    let guests = Guests::at(ctx, "decode-0").await;
    ctx.injected();
    for port in [ports.http, ports.https, ports.admin] {
        feed(port).await;
    }
    packets(ports.https, 1_000, 24).await;
    quiet(ctx, guests, "").await
}

async fn kv_garbage(ctx: &mut Ctx) -> Measured {
    let mut ports = Vec::new();
    let mut before = Vec::new();
    for name in ctx.cluster.names().into_iter().filter(|name| name != "gateway-0") {
        let pid = ctx.cluster.process(&name).id();
        let own_door = ctx.cluster.door(&name).port();
        let all = proc::listening(pid);
        ports.extend(all.into_iter().filter(|port| *port != own_door));
        before.push((pid, proc::descriptors(pid)));
    }
    assert!(ports.len() >= 4, "every worker listens: {ports:?}");
    let guests = Guests::at(ctx, "decode-0").await;
    ctx.injected();
    for port in &ports {
        feed((std::net::Ipv4Addr::LOCALHOST, *port).into()).await;
    }
    let heard = guests.hear().await;
    let back = ctx.cluster.all_back(ctx.workers).await;
    let after = Guests::arrive(ctx, 4).await.hear().await;
    let (ticks, started) = (used(&before), Instant::now());
    sleep(Duration::from_secs(1)).await;
    let busy = (used(&before) - ticks) as f64 / 100.0 / started.elapsed().as_secs_f64();
    let more: Vec<usize> = before
        .iter()
        .map(|(pid, open)| proc::descriptors(*pid).saturating_sub(*open))
        .collect();
    replace_workers(ctx).await;
    heard.check(ctx).await;
    after.check(ctx).await;
    // Known: UCX keeps a connection whose first bytes it cannot read, and goes on looking at it.
    Measured::new(longest_gap(&heard.answers), back).note(format!(
        "{} ports; descriptors left by it {more:?}; the idle workers then use {busy:.1} cores",
        ports.len()
    ))
}

fn used(processes: &[(u32, usize)]) -> u64 {
    processes.iter().map(|(pid, _)| proc::ticks(*pid)).sum()
}

/// What garbage left in them does not disturb the next cell.
async fn replace_workers(ctx: &mut Ctx) {
    for name in ctx.cluster.names().into_iter().filter(|name| name != "gateway-0") {
        ctx.cluster.process(&name).signal(crate::Signal::Kill);
        let role = name.split('-').next().unwrap_or_default().to_owned();
        ctx.cluster.process(&name).ended(Duration::from_secs(10)).await;
        ctx.cluster.start_worker(&role, &name, &[]);
    }
    // The dead ones are gone when their leases are.
    sleep(Duration::from_secs(2)).await;
    ctx.cluster.ready(ctx.workers).await;
}

/// Writes different garbage to a port, connection after connection, some of them kept open for a moment.
async fn feed(port: SocketAddr) {
    let mut tasks = JoinSet::new();
    for n in 0..20usize {
        let bytes = match n % 5 {
            0 => vec![0xff; 64],
            1 => vec![0; 64],
            2 => (1u64 << 62).to_le_bytes().repeat(20),
            3 => b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            _ => (0..5_000usize)
                .map(|i| u8::try_from((i * i + n) % 251).unwrap_or(0))
                .collect(),
        };
        tasks.spawn(async move {
            let connected = timeout(Duration::from_secs(2), TcpStream::connect(port)).await;
            let Ok(Ok(mut stream)) = connected else { return };
            // It may be cut at any byte.
            let _ = stream.write_all(&bytes).await;
            sleep(Duration::from_millis(100)).await;
        });
    }
    while tasks.join_next().await.is_some() {}
}

/// The guests beside it had what they would have had.
async fn quiet(ctx: &mut Ctx, guests: Guests, note: &str) -> Measured {
    let heard = guests.hear().await;
    let gone = || async { (ctx.cluster.workers().await.len() == ctx.workers).then_some(()) };
    ctx.cluster.until("only the workers are linked", gone).await;
    let back = ctx.cluster.all_back(ctx.workers).await;
    heard.check(ctx).await;
    Measured::new(longest_gap(&heard.answers), back).note(note)
}
