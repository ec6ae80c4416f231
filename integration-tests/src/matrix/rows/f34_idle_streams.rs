//! F34: very many streams are opened and left, and connections without a word.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::h2::Http2;
use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::whole;
use crate::matrix::setup::TWO;
use crate::proc;

pub(super) const CELLS: &[Cell] = &[Cell {
    id: "F34.streams",
    what: "20,000 HTTP/2 requests whose bodies never come, 200 connections without a word: those that wait for longest give way to others, who are served; the rest is ended by limits (30 s, 75 s); memory bounded",
    setup: &TWO,
    bound: Bound::ms(90_000, 95_000),
    run: |ctx| Box::pin(idle(ctx)),
}];

const CONNECTIONS: usize = 100;
const STREAMS: usize = 200;
const SILENT: usize = 200;
/// Between two connections: what is opened at once is a flood, and another matter.
const BETWEEN: Duration = Duration::from_millis(100);
/// What all of them may take in the gateway: some 50 KiB each.
const MEMORY_KIB: u64 = 1 << 20;

async fn idle(ctx: &mut Ctx) -> Measured {
    let pid = ctx.cluster.process("gateway-0").id();
    let (memory, descriptors) = (proc::memory_kib(pid), proc::descriptors(pid));
    let to = ctx.cluster.ports().http;
    let open = Arc::new(AtomicUsize::new(0));
    let mut all = JoinSet::new();
    ctx.injected();
    for _ in 0..CONNECTIONS {
        let open = Arc::clone(&open);
        all.spawn(async move { left_alone(to, &open).await });
        sleep(BETWEEN).await;
    }
    for _ in 0..SILENT {
        all.spawn(async move { without_a_word(to).await });
    }
    // Others are served meanwhile.
    let mut most = (0, 0);
    while !all.is_empty() {
        let request = ctx.request(8, 4);
        whole(&ctx.ask(&request).await);
        most.0 = most.0.max(open.load(Ordering::Relaxed));
        most.1 = most.1.max(proc::memory_kib(pid));
        while let Some(ended) = all.try_join_next() {
            ended.expect("a client does not panic");
        }
        sleep(Duration::from_millis(200)).await;
    }
    let client = ctx.since();
    let more = most.1.saturating_sub(memory);
    assert!(most.0 > 1_000, "{} streams were open at a time", most.0);
    assert!(more < MEMORY_KIB, "the gateway took {more} KiB more");
    let closed = || async { (proc::descriptors(pid) <= descriptors + 16).then_some(()) };
    ctx.cluster
        .until("the gateway has its descriptors back", closed)
        .await;
    let back = ctx.back(ctx.workers).await;
    Measured::new(client, back).note(format!("{} streams at a time, {} MiB more", most.0, more / 1_024))
}

/// One connection with streams whose bodies never come, until the server has ended all of them.
async fn left_alone(to: std::net::SocketAddr, open: &Arc<AtomicUsize>) {
    let connection = Arc::new(Http2::connect(to, 65_535).await.expect("a connection"));
    let mut streams = JoinSet::new();
    for _ in 0..STREAMS {
        let (connection, open) = (Arc::clone(&connection), Arc::clone(open));
        streams.spawn(async move {
            open.fetch_add(1, Ordering::Relaxed);
            let ended = connection.post_nothing("/v1/completions").await;
            open.fetch_sub(1, Ordering::Relaxed);
            // A refusal, a timeout, or the end of the stream: all but success.
            if let Ok(answer) = ended {
                assert!(answer.status().is_client_error(), "{}", answer.status());
            }
        });
    }
    while let Some(ended) = streams.join_next().await {
        ended.expect("a stream's reader does not panic");
    }
}

async fn without_a_word(to: std::net::SocketAddr) {
    let mut stream = TcpStream::connect(to).await.expect("a connection");
    let mut buffer = [0; 1_024];
    let limit = Duration::from_secs(120);
    // An end, or the last words before it.
    while !matches!(
        timeout(limit, stream.read(&mut buffer))
            .await
            .expect("an idle limit"),
        Ok(0) | Err(_)
    ) {}
}
