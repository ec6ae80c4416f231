//! F12: the source's lease ends before and during a read, and reads that have no right to what they ask for. They are refused, or served
//! from blocks that are pinned; never is a block used for another under a read.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::{Guest, same, whole};
use crate::matrix::phases::{Phase, arrived, hold};
use crate::matrix::setup::{SMALL, TWO, TWO_SHM};

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F12.stale-generation",
        what: "a read asks for the generation before its own: refused, the answer comes from the next attempt",
        setup: &TWO,
        bound: Bound::ms(5_000, 6_000),
        run: |ctx| Box::pin(forged(ctx, "stale_generation")),
    },
    Cell {
        id: "F12.wrong-capability",
        what: "a read asks with a capability that nobody minted: refused, the answer comes from the next attempt",
        setup: &TWO_SHM,
        bound: Bound::ms(5_000, 6_000),
        run: |ctx| Box::pin(forged(ctx, "wrong_capability")),
    },
    Cell {
        id: "F12.ends-before",
        what: "the source loses its gateway and drops the room before the read begins; others use its blocks; then the read begins",
        setup: &TWO,
        bound: Bound::ms(8_000, 9_000),
        run: |ctx| Box::pin(ends_before(ctx)),
    },
    Cell {
        id: "F12.ends-during",
        what: "client leaves while a read's end is not told: decode's blocks are pinned until it is, others never get them",
        setup: &SMALL,
        bound: Bound::ms(500, 4_000),
        run: |ctx| Box::pin(ends_during(ctx, "decode-0", "hold_end")),
    },
    Cell {
        id: "F12.sends-unfinished",
        what: "client leaves while the source's sends are not over: its blocks are pinned until they are",
        setup: &SMALL,
        bound: Bound::ms(500, 4_000),
        run: |ctx| Box::pin(ends_during(ctx, "prefill-0", "hold_withdrawn")),
    },
];

/// How long what is held stays held.
const HELD: Duration = Duration::from_millis(2_500);

async fn forged(ctx: &mut Ctx, how: &str) -> Measured {
    let retried = ctx.metric("innkeeper_attempts_retried_total", "").await;
    for name in ["decode-0", "decode-1"] {
        ctx.fault(name, json!({ "reads": { "does": how, "nth": 0 } }))
            .await;
    }
    let request = ctx.request(60, 8);
    ctx.injected();
    let answer = ctx.ask(&request).await;
    let client = ctx.since();
    let back = ctx.back(ctx.workers).await;
    ctx.calm("decode-0").await;
    ctx.calm("decode-1").await;
    assert!(
        ctx.metric("innkeeper_attempts_retried_total", "").await > retried,
        "it was not refused"
    );
    let expected = ctx.reference(&request).await;
    same(&expected, &answer);
    Measured::new(client, back)
}

async fn ends_before(ctx: &mut Ctx) -> Measured {
    let request = ctx.request(150, 8);
    let held = hold(ctx, Phase::Pulling, &request).await;
    let (source, reader) = (held.worker("prefill"), held.worker("decode"));
    ctx.fault(&source, json!({ "cut": { "out": true, "in": true } }))
        .await;
    ctx.injected();
    // The lease is over; the link is not.
    sleep(Duration::from_millis(1_800)).await;
    ctx.fault(&source, json!({ "cut": { "out": false, "in": false } }))
        .await;
    ctx.calm(&reader).await;
    for name in ctx.cluster.names() {
        ctx.calm(&name).await;
    }
    let answer = held.guest.leaves().await;
    let client = ctx.since();
    ctx.cluster.ready(ctx.workers).await;
    let back = ctx.back(ctx.workers).await;
    let expected = ctx.reference(&request).await;
    same(&expected, &answer);
    Measured::new(client, back)
}

async fn ends_during(ctx: &mut Ctx, holder: &str, how: &str) -> Measured {
    ctx.fault(holder, json!({ "reads": { "does": how } })).await;
    let (request, other) = (ctx.request(150, 200), ctx.request(40, 6));
    let guest = Guest::arrives(ctx, &request);
    let phase = if how == "hold_end" {
        Phase::Pulling
    } else {
        Phase::Decoding
    };
    let room = arrived(ctx, phase).await;
    ctx.injected();
    guest.runs_away().await;
    assert_eq!(ctx.outcome(&room.room).await, "aborted");
    let client = ctx.since();
    let pinned = || async {
        let workers = ctx.cluster.workers().await;
        let worker = workers.iter().find(|worker| worker.name == holder)?;
        (worker.blocks_quarantined > 0).then_some(worker.blocks_quarantined)
    };
    let (blocks, _) = ctx.cluster.until("blocks that are pinned", pinned).await;
    // Others are served meanwhile, out of what is left.
    ctx.fault(holder, json!({ "reads": { "does": "later_pass" } }))
        .await;
    let served = ctx.ask(&other).await;
    whole(&served);
    sleep(HELD.saturating_sub(ctx.since())).await;
    assert!(
        pinned().await >= Some(blocks),
        "blocks came back under a transfer"
    );
    ctx.calm(holder).await;
    let back = ctx.back(ctx.workers).await;
    let expected = ctx.reference(&other).await;
    same(&expected, &served);
    Measured::new(client, back).note(format!("{blocks} blocks pinned until the callback"))
}
