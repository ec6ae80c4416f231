//! F31: descriptors or disk are exhausted. The requests concerned fail or go elsewhere; when there is room again everything is as before.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::guests::{Guests, serves_again};
use crate::matrix::load::{longest_gap, whole};
use crate::matrix::setup::TWO;
use crate::proc;
use crate::process::Signal;

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F31.gateway-descriptors",
        what: "the gateway has no descriptor left, 200 connections want one: streams go on; client: served again once they leave",
        setup: &TWO,
        bound: Bound::ms(2_000, 4_000),
        run: |ctx| Box::pin(gateway(ctx)),
    },
    Cell {
        id: "F31.decode-descriptors",
        what: "decode has no descriptor left for a new connection to prefill: its rooms go elsewhere; blocks: used again with some",
        setup: &TWO,
        bound: Bound::ms(8_000, 8_000),
        run: |ctx| Box::pin(decode(ctx)),
    },
    Cell {
        id: "F31.log-disk",
        what: "the disk that the logs of the gateway and a worker go to is full: they serve as before",
        setup: &TWO,
        bound: Bound::ms(3_000, 6_000),
        run: |ctx| Box::pin(log_disk(ctx)),
    },
];

const LIMIT: Duration = Duration::from_secs(20);

/// Lets a process have so many descriptors more than it has; returns what it might have before.
fn leave(pid: u32, more: usize) -> Rlimit {
    let open = u64::try_from(proc::descriptors(pid) + more).unwrap();
    set(pid, |old| Rlimit {
        current: Some(open),
        maximum: old.maximum,
    })
}

fn set(pid: u32, new: impl FnOnce(&Rlimit) -> Rlimit) -> Rlimit {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap());
    let old = rustix::process::getrlimit(Resource::Nofile);
    prlimit(pid, Resource::Nofile, new(&old)).expect("our own child")
}

async fn gateway(ctx: &mut Ctx) -> Measured {
    let guests = Guests::at(ctx, "decode-0").await;
    let pid = ctx.cluster.process("gateway-0").id();
    let before = leave(pid, 8);
    ctx.injected();
    let mut connections = Vec::new();
    for _ in 0..200 {
        let connecting = TcpStream::connect(ctx.cluster.ports().http);
        // Taken by the system, if not by the gateway.
        if let Ok(Ok(stream)) = timeout(Duration::from_millis(200), connecting).await {
            connections.push(stream);
        }
    }
    sleep(Duration::from_secs(1)).await;
    let used = proc::ticks(pid);
    sleep(Duration::from_secs(1)).await;
    let busy = proc::ticks(pid) - used;
    let waiting = connections.len();
    drop(connections);
    let free = Instant::now();
    let request = ctx.request(8, 4);
    whole(&ctx.ask(&request).await);
    let client = free.elapsed();
    let heard = guests.hear().await;
    set(pid, |_| before);
    let gap = longest_gap(&heard.answers);
    assert!(
        gap < Duration::from_secs(3),
        "streams beside it stood still for {gap:?}"
    );
    let back = ctx.cluster.all_back(ctx.workers).await;
    heard.check(ctx).await;
    Measured::new(client, back).note(format!(
        "{waiting} connections; streams' longest gap {} ms; the gateway used {busy} % of a core meanwhile",
        gap.as_millis()
    ))
}

async fn decode(ctx: &mut Ctx) -> Measured {
    let victim = "decode-0";
    let pid = ctx.cluster.process(victim).id();
    // Those that it has are closed: each prefill comes back as another.
    for name in ["prefill-0", "prefill-1"] {
        ctx.cluster.process(name).signal(Signal::Kill);
        ctx.cluster.process(name).ended(LIMIT).await;
    }
    sleep(Duration::from_secs(2)).await;
    let before = leave(pid, 0);
    for name in ["prefill-0", "prefill-1"] {
        ctx.cluster.start_worker("prefill", name, &[]);
    }
    ctx.cluster.ready(ctx.workers).await;
    ctx.injected();
    let heard = Guests::arrive(ctx, 4).await.hear().await;
    let client = ctx.since();
    let retried = ctx.metric("innkeeper_attempts_retried_total", "").await;
    ctx.cluster.all_back(ctx.workers).await;
    set(pid, |_| before);
    let restored = Instant::now();
    serves_again(ctx, victim).await;
    ctx.cluster.all_back(ctx.workers).await;
    let back = restored.elapsed();
    heard.check(ctx).await;
    Measured::new(client, back).note(format!("{retried} attempts went elsewhere"))
}

async fn log_disk(ctx: &mut Ctx) -> Measured {
    // A device on which nothing has room.
    let full = ["sh", "-c", "exec \"$@\" >/dev/full 2>&1", "sh"];
    restart(ctx, &full).await;
    ctx.injected();
    let guests = Guests::at(ctx, "decode-0").await;
    let heard = guests.hear().await;
    let back = ctx.cluster.all_back(ctx.workers).await;
    restart(ctx, &[]).await;
    heard.check(ctx).await;
    Measured::new(longest_gap(&heard.answers), back)
}

/// Ends the gateway and a worker in order, and starts them behind these words.
async fn restart(ctx: &mut Ctx, words: &[&str]) {
    for name in ["gateway-0", "decode-0"] {
        ctx.cluster.process(name).signal(Signal::Terminate);
        let status = ctx.cluster.process(name).ended(LIMIT).await;
        assert!(status.success(), "{name}: {status}");
        ctx.cluster.behind(name, words);
    }
    ctx.cluster.start_gateway(&[]);
    ctx.cluster.start_worker("decode", "decode-0", &[]);
    ctx.cluster.ready(ctx.workers).await;
}
