//! F21: clients leave at random moments around a pull, very often; nothing is left of it, on any worker. (Ten thousand cancels of single reads
//! at random offsets are in the tests of the transport itself.)

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::guests::Guests;
use crate::matrix::setup::{TWO, TWO_SHM};
use crate::proc;
use crate::stream::Stream;

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F21.tcp",
        what: "500 clients leave at random moments around a pull: no block, no descriptor is left",
        setup: &TWO,
        bound: Bound::ms(3_000, 3_000),
        run: |ctx| Box::pin(cancelled(ctx)),
    },
    Cell {
        id: "F21.shm",
        what: "the same over shared memory",
        setup: &TWO_SHM,
        bound: Bound::ms(3_000, 3_000),
        run: |ctx| Box::pin(cancelled(ctx)),
    },
];

const CLIENTS: usize = 500;
const AT_A_TIME: usize = 6;
/// Beside what it had: a link or two that come and go on their own, and files of the runtime.
const DESCRIPTORS: usize = 6;

async fn cancelled(ctx: &mut Ctx) -> Measured {
    // Every pair meets first: a connection stays, and keeps its descriptors.
    Guests::arrive(ctx, 12).await.leave(ctx).await;
    let first = time_to_second_token(ctx).await;
    ctx.cluster.all_back(ctx.workers).await;
    let before = open(ctx);
    let mut random = StdRng::seed_from_u64(21);
    let mut leaving = JoinSet::new();
    for _ in 0..CLIENTS {
        let request = ctx.request(60, 200);
        let (to, stays) = (
            ctx.cluster.ports().http,
            first.mul_f64(random.random_range(0.2..1.6)),
        );
        leaving.spawn(async move { leaves(to, request, stays).await });
        if leaving.len() >= AT_A_TIME {
            leaving.join_next().await;
        }
    }
    while leaving.join_next().await.is_some() {}
    ctx.injected();
    let gone = || async { ctx.cluster.rooms().await.is_empty().then_some(()) };
    ctx.cluster.until("no room is left", gone).await;
    let client = ctx.since();
    let back = ctx.back(ctx.workers).await;
    let after = open(ctx);
    for ((name, before), (_, after)) in before.iter().zip(&after) {
        assert!(
            *after <= before + DESCRIPTORS,
            "{name} had {before} descriptors, and has {after}"
        );
    }
    let pulls = ctx.metric("innkeeper_kv_pulls_total", "").await;
    Measured::new(client, back).note(format!(
        "descriptors {before:?}, then {after:?}; {pulls} pulls in all"
    ))
}

async fn leaves(to: std::net::SocketAddr, request: Value, stays: Duration) {
    let reading = async { Stream::open(to, &request).await?.finish().await };
    let _ = tokio::time::timeout(stays, reading).await;
}

/// When a pull is over, of one client alone.
async fn time_to_second_token(ctx: &mut Ctx) -> Duration {
    let started = std::time::Instant::now();
    let request = ctx.request(60, 4);
    let mut stream = Stream::open(ctx.cluster.ports().http, &request).await.unwrap();
    stream.read_tokens(2).await.unwrap();
    started.elapsed()
}

fn open(ctx: &mut Ctx) -> Vec<(String, usize)> {
    let names = ctx.cluster.names();
    let count = |name: String| {
        let open = proc::descriptors(ctx.cluster.process(&name).id());
        (name, open)
    };
    names.into_iter().map(count).collect()
}
