//! F20: nine of ten requests are aborted at random times for a while. Then the cluster does what it did before.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::whole;
use crate::matrix::worlds::PATIENT;
use crate::stream::{Stream, answers};

/// Twice the lease.
const BOUND: Bound = Bound::ms(3_000, 3_000);

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F20.short",
        what: "90 % of requests aborted at random times for 8 s; client: until a batch begins that is as fast as before, but for 5 %",
        setup: &PATIENT,
        bound: BOUND,
        run: |ctx| Box::pin(storm(ctx, Duration::from_secs(8))),
    },
    Cell {
        id: "F20.minute",
        what: "the same for 60 s",
        setup: &PATIENT,
        bound: BOUND,
        run: |ctx| Box::pin(storm(ctx, Duration::from_secs(60))),
    },
];

/// Clients of the storm at a time.
const CLIENTS: usize = 12;
/// Those who abort do so within this time: from the queue to the last token.
const LATEST_MS: u64 = 600;
/// How often the throughput is measured before, and tried after.
const BEFORE: usize = 5;
const AFTER: usize = 12;

async fn storm(ctx: &mut Ctx, lasts: Duration) -> Measured {
    let mut before = Vec::new();
    for _ in 0..BEFORE {
        before.push(throughput(ctx).await);
    }
    // What a batch takes varies: after the storm none may be slower than the slowest of those before, by more than is allowed.
    let usual = before.into_iter().fold(f64::INFINITY, f64::min);
    let ends = Instant::now() + lasts;
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (to, beginning) = (ctx.cluster.ports().http, ctx.fresh());
        let random = StdRng::seed_from_u64(client as u64);
        clients.spawn(async move { come_and_go(to, &beginning, random, ends).await });
    }
    let counts = clients.join_all().await;
    ctx.injected();
    let back = ctx.back(ctx.workers).await;
    let mut after = Vec::new();
    while after.len() < AFTER {
        let since = ctx.since();
        after.push(throughput(ctx).await);
        if after.last().is_some_and(|rate| *rate >= usual * 0.95) {
            let (aborted, served) = counts
                .iter()
                .fold((0, 0), |(a, s), count| (a + count.0, s + count.1));
            return Measured::new(since, back).note(format!(
                "{aborted} aborted, {served} served; {usual:.0} tokens/s before, after: {after:.0?}"
            ));
        }
    }
    panic!("{usual:.0} tokens/s before the storm, and after it {after:.0?}");
}

/// One client of the storm: how often it left, and how often it stayed.
async fn come_and_go(
    to: std::net::SocketAddr,
    beginning: &str,
    mut random: StdRng,
    ends: Instant,
) -> (u32, u32) {
    let (mut aborted, mut served) = (0, 0);
    while Instant::now() < ends {
        let words = random.random_range(4..120);
        let prompt = format!("{beginning} {} {}", random.random::<u32>(), " word".repeat(words));
        let request = crate::stream::completion(&prompt, 16, 0.0, 0);
        let reading = async { Stream::open(to, &request).await?.finish().await };
        if random.random_bool(0.1) {
            whole(&reading.await.expect("an answer for one who stays"));
            served += 1;
        } else {
            let leaves = Duration::from_millis(random.random_range(0..LATEST_MS));
            // What it has heard by then does not matter.
            let _ = tokio::time::timeout(leaves, reading).await;
            aborted += 1;
        }
    }
    (aborted, served)
}

/// Tokens a second of a batch of new requests.
async fn throughput(ctx: &mut Ctx) -> f64 {
    let requests: Vec<Value> = (0..8).map(|_| ctx.request(24, 16)).collect();
    let started = Instant::now();
    let answers = answers(ctx.cluster.ports().http, &requests).await;
    let took = started.elapsed();
    answers.iter().for_each(whole);
    let tokens: usize = answers.iter().map(|answer| answer.tokens.len()).sum();
    tokens as f64 / took.as_secs_f64()
}
