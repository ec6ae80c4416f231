//! F33: a worker's engine stands still for 30 s, while everything else of it lives.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::time::sleep;

use crate::http::get;
use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::guests::{Guests, serves_again};
use crate::matrix::load::{Guest, longest_gap, whole};
use crate::matrix::setup::{SMALL, TWO};

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F33.one-of-two",
        what: "decode's engine blocked 30 s: its streams move at the stall deadline (5 s); blocks: when it lives again, used again",
        setup: &TWO,
        bound: Bound::ms(8_000, 15_000),
        run: |ctx| Box::pin(one_of_two(ctx)),
    },
    Cell {
        id: "F33.the-only-one",
        what: "the only decode's engine blocked 30 s: client: readiness is false; blocks: when it lives again, ready and serving",
        setup: &SMALL,
        bound: Bound::ms(15_000, 15_000),
        run: |ctx| Box::pin(only_one(ctx)),
    },
];

const BLOCKED: Duration = Duration::from_secs(30);

async fn one_of_two(ctx: &mut Ctx) -> Measured {
    let victim = "decode-0";
    let guests = Guests::at(ctx, victim).await;
    ctx.injected();
    let ends = Instant::now() + BLOCKED;
    ctx.fault(victim, json!({ "engine": { "stuck": true } })).await;
    let heard = guests.hear().await;
    let client = longest_gap(&heard.answers);
    // New guests are served all the time.
    let mut served = 0;
    let mut slowest = Duration::ZERO;
    while Instant::now() < ends {
        let request = ctx.request(8, 4);
        let started = Instant::now();
        whole(&ctx.ask(&request).await);
        slowest = slowest.max(started.elapsed());
        served += 1;
        sleep(Duration::from_millis(500)).await;
    }
    ctx.fault(victim, json!({ "engine": { "stuck": false } })).await;
    let alive = Instant::now();
    serves_again(ctx, victim).await;
    ctx.cluster.all_back(ctx.workers).await;
    let back = alive.elapsed();
    heard.check(ctx).await;
    Measured::new(client, back).note(format!(
        "{served} served meanwhile, the slowest in {} ms",
        slowest.as_millis()
    ))
}

async fn only_one(ctx: &mut Ctx) -> Measured {
    let victim = "decode-0";
    let request = ctx.request(8, 400);
    let guest = Guest::streams(ctx, &request, 3).await;
    ctx.injected();
    let ends = Instant::now() + BLOCKED;
    ctx.fault(victim, json!({ "engine": { "stuck": true } })).await;
    let not_ready = || async {
        let ready = get(ctx.cluster.ports().http, "/health/ready").await.ok()?;
        (ready.status == 503).then_some(())
    };
    ctx.cluster.until("readiness is false", not_ready).await;
    let client = ctx.since();
    // It begins again and again, and each time it is blocked again: it is no lie only if it does not say ready in between for long.
    let mut lies = 0;
    while Instant::now() < ends {
        let ready = get(ctx.cluster.ports().http, "/health/ready").await;
        lies += u32::from(matches!(ready, Ok(ready) if ready.status == 200));
        sleep(Duration::from_millis(100)).await;
    }
    ctx.fault(victim, json!({ "engine": { "stuck": false } })).await;
    let alive = Instant::now();
    guest.runs_away().await;
    ctx.cluster.ready(ctx.workers).await;
    let request = ctx.request(8, 4);
    whole(&ctx.ask(&request).await);
    ctx.cluster.all_back(ctx.workers).await;
    Measured::new(client, alive.elapsed()).note(format!("it said ready for {} ms of the rest", lies * 100))
}
