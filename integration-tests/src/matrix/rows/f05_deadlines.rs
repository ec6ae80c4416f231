//! F05: the client's deadline of 2 s passes, in each phase.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::{Guest, failed, whole};
use crate::matrix::phases::{Phase, hold, set};
use crate::matrix::setup::{SMALL, TWO};

/// From the request: 2 s and 100 ms, as the row says; the blocks within two leases.
const BOUND: Bound = Bound::ms(2_100, 4_100);

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F05.queued",
        what: "deadline of 2 s while it waits for a slot: 504 that names the phase",
        setup: &SMALL,
        bound: BOUND,
        run: |ctx| Box::pin(queued(ctx)),
    },
    Cell {
        id: "F05.reserving",
        what: "deadline of 2 s while decode is asked for blocks: 504 that names the phase",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(expires(ctx, Phase::Reserving)),
    },
    Cell {
        id: "F05.prefilling",
        what: "deadline of 2 s while the prompt is computed: 504 that names the phase",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(expires(ctx, Phase::Prefilling)),
    },
    Cell {
        id: "F05.pulling",
        what: "deadline of 2 s while the KV is pulled: an error that names the phase",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(expires(ctx, Phase::Pulling)),
    },
    Cell {
        id: "F05.decoding",
        what: "deadline of 2 s while tokens come: an error that names the phase, and no [DONE]",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(expires(ctx, Phase::Decoding)),
    },
];

async fn expires(ctx: &mut Ctx, phase: Phase) -> Measured {
    // Short enough to get there in time, and long enough to stay.
    let words = if phase == Phase::Prefilling { 400 } else { 10 };
    let mut request = ctx.request(words, 64);
    request["timeout"] = json!(2);
    ctx.injected();
    let held = hold(ctx, phase, &request).await;
    let answer = held.guest.leaves().await;
    let client = ctx.since();
    failed(&answer, 504);
    let error = answer.error.as_ref().unwrap();
    // While it reserves, its own deadline and the phase's are about the same: it may be in its next attempt.
    let is_next = phase == Phase::Reserving && error["phase"] == "queued";
    assert!(is_next || error["phase"] == phase.name(), "{answer:?}");
    Measured::new(client, ctx.back(ctx.workers).await)
}

async fn queued(ctx: &mut Ctx) -> Measured {
    let mut streams = Vec::new();
    for _ in 0..2 {
        let request = ctx.request(10, 24);
        streams.push(Guest::streams(ctx, &request, 2).await);
        set(ctx, Phase::Decoding).await;
    }
    let mut request = ctx.request(10, 4);
    request["timeout"] = json!(2);
    ctx.injected();
    let answer = ctx.ask(&request).await;
    let client = ctx.since();
    failed(&answer, 504);
    assert_eq!(answer.error.as_ref().unwrap()["phase"], "queued", "{answer:?}");
    // It never had a block: what is back is its place in the queue.
    let left = || async { (ctx.cluster.rooms().await.len() == streams.len()).then_some(()) };
    ctx.cluster.until("it is out of the queue", left).await;
    let back = ctx.since();
    ctx.calm("decode-0").await;
    sleep(Duration::from_millis(100)).await;
    for stream in streams {
        whole(&stream.leaves().await);
    }
    Measured::new(client, back)
}
