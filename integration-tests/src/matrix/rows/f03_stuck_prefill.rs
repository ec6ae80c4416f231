//! F03: prefill never publishes: its engine is stuck, its process lives and answers heartbeats.

use std::time::Duration;

use serde_json::json;

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::{failed, same};
use crate::matrix::phases::{Phase, hold, let_go};
use crate::matrix::setup::{SMALL, TWO};

/// A worker that sees its engine hang for as long as its deadlines allow (5 s and a lease), twice, is made anew.
const RENEWED_MS: u64 = 18_000;

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F03.another",
        what: "a prefill engine is stuck: after its progress deadline of 5 s the answer comes from another; the worker is made anew",
        setup: &TWO,
        bound: Bound::ms(8_000, RENEWED_MS),
        run: |ctx| Box::pin(another(ctx)),
    },
    Cell {
        id: "F03.only",
        what: "the only prefill engine is stuck, the client's deadline is 4 s: 504 that names the phase",
        setup: &SMALL,
        bound: Bound::ms(4_100, RENEWED_MS),
        run: |ctx| Box::pin(only(ctx)),
    },
    Cell {
        id: "F03.silent",
        what: "a prefill worker computes and its Published is lost every time: after 5 s the answer comes from another",
        setup: &TWO,
        bound: Bound::ms(8_000, 10_000),
        run: |ctx| Box::pin(silent(ctx)),
    },
];

async fn another(ctx: &mut Ctx) -> Measured {
    let request = ctx.request(150, 8);
    let held = hold(ctx, Phase::Prefilling, &request).await;
    let victim = held.worker("prefill");
    ctx.fault(&victim, json!({ "engine": { "stuck": true } })).await;
    ctx.injected();
    let_go(ctx, &victim).await;
    let answer = held.guest.leaves().await;
    let client = ctx.since();
    let back = ctx.back(ctx.workers).await;
    ctx.calm(&victim).await;
    let expected = ctx.reference(&request).await;
    same(&expected, &answer);
    Measured::new(client, back)
}

async fn only(ctx: &mut Ctx) -> Measured {
    ctx.fault("prefill-0", json!({ "engine": { "stuck": true } }))
        .await;
    let mut request = ctx.request(60, 8);
    request["timeout"] = json!(4);
    ctx.injected();
    let answer = ctx.ask(&request).await;
    let client = ctx.since();
    failed(&answer, 504);
    let phase = answer.error.as_ref().unwrap()["phase"].clone();
    assert_eq!(phase, "prefilling", "{answer:?}");
    Measured::new(client, ctx.back(ctx.workers).await)
}

async fn silent(ctx: &mut Ctx) -> Measured {
    let request = ctx.request(30, 8);
    let held = hold(ctx, Phase::Prefilling, &request).await;
    let victim = held.worker("prefill");
    ctx.fault(
        &victim,
        json!({ "calm": true, "frames": { "published": "drop" } }),
    )
    .await;
    ctx.injected();
    let_go(ctx, &victim).await;
    let answer = held.guest.leaves().await;
    let client = ctx.since();
    let back = ctx.back(ctx.workers).await;
    assert!(
        client > Duration::from_millis(3_000),
        "it was found by its deadline: {client:?}"
    );
    ctx.calm(&victim).await;
    let expected = ctx.reference(&request).await;
    same(&expected, &answer);
    Measured::new(client, back)
}
