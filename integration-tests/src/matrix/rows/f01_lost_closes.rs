//! F01: every `Close` is lost, for ever, its repetitions too. The client has its answer at once; the blocks come back by the digest.

use serde_json::json;

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::{failed, same};
use crate::matrix::phases::{Phase, hold};
use crate::matrix::setup::{TWO, TWO_SHM};

/// Twice the lease of 2 s that the row counts with.
const BACK_MS: u64 = 4_000;

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F01.decoding",
        what: "every Close lost, client leaves while its answer is decoded",
        setup: &TWO,
        bound: Bound::ms(1_000, BACK_MS),
        run: |ctx| Box::pin(client_leaves(ctx, Phase::Decoding)),
    },
    Cell {
        id: "F01.prefilling",
        what: "every Close lost, client leaves while its prompt is computed",
        setup: &TWO,
        bound: Bound::ms(1_000, BACK_MS),
        run: |ctx| Box::pin(client_leaves(ctx, Phase::Prefilling)),
    },
    Cell {
        id: "F01.pulling-shm",
        what: "every Close lost, client leaves while its KV is pulled over shared memory",
        setup: &TWO_SHM,
        bound: Bound::ms(1_000, BACK_MS),
        run: |ctx| Box::pin(client_leaves(ctx, Phase::Pulling)),
    },
    Cell {
        id: "F01.deadline",
        what: "every Close lost, the client's deadline of 1 s passes while its prompt is computed: 504 at once",
        setup: &TWO,
        bound: Bound::ms(1_100, 1_000 + BACK_MS),
        run: |ctx| Box::pin(deadline(ctx)),
    },
    Cell {
        id: "F01.release",
        what: "every Close and Release lost, an answer completes: the source's blocks come back too",
        setup: &TWO,
        bound: Bound::ms(10_000, 10_000 + BACK_MS),
        run: |ctx| Box::pin(completes(ctx, &["close", "release"])),
    },
    Cell {
        id: "F01.closed",
        what: "every Closed of a worker lost, an answer completes: its leases are proven returned by heartbeats",
        setup: &TWO,
        bound: Bound::ms(10_000, 10_000 + BACK_MS),
        run: |ctx| Box::pin(proofs_lost(ctx)),
    },
];

const TOKENS: u32 = 200;

async fn client_leaves(ctx: &mut Ctx, phase: Phase) -> Measured {
    ctx.fault("gateway-0", json!({ "frames": { "close": "drop" } }))
        .await;
    let request = ctx.request(150, TOKENS);
    let held = hold(ctx, phase, &request).await;
    ctx.injected();
    held.guest.runs_away().await;
    let outcome = ctx.outcome(&held.room.room).await;
    let client = ctx.since();
    assert_eq!(outcome, "aborted");
    // The switches that held it stay as they are: nothing helps it along.
    let back = ctx.back(ctx.workers).await;
    let lost = &ctx.cluster.hits("gateway-0").await["frames"];
    assert!(lost.as_u64() > Some(0), "no Close was lost");
    Measured::new(client, back)
}

async fn deadline(ctx: &mut Ctx) -> Measured {
    ctx.fault("gateway-0", json!({ "frames": { "close": "drop" } }))
        .await;
    let mut request = ctx.request(400, 4);
    request["timeout"] = json!(1);
    ctx.injected();
    let held = hold(ctx, Phase::Prefilling, &request).await;
    let answer = held.guest.leaves().await;
    let client = ctx.since();
    failed(&answer, 504);
    Measured::new(client, ctx.back(ctx.workers).await)
}

async fn completes(ctx: &mut Ctx, lost: &[&str]) -> Measured {
    for kind in lost {
        ctx.fault("gateway-0", json!({ "frames": { *kind: "drop" } }))
            .await;
    }
    one_answer(ctx).await
}

async fn proofs_lost(ctx: &mut Ctx) -> Measured {
    for name in ctx.cluster.names().iter().filter(|name| *name != "gateway-0") {
        ctx.fault(name, json!({ "frames": { "closed": "drop" } })).await;
    }
    one_answer(ctx).await
}

/// The bound of the blocks is counted from the request: it has the answer's time in it.
async fn one_answer(ctx: &mut Ctx) -> Measured {
    let request = ctx.request(30, 12);
    ctx.injected();
    let answer = ctx.ask(&request).await;
    let client = ctx.since();
    let back = ctx.back(ctx.workers).await;
    for name in ctx.cluster.names() {
        ctx.calm(&name).await;
    }
    let expected = ctx.reference(&request).await;
    same(&expected, &answer);
    Measured::new(client, back)
}
