//! F04: decode never grants. The client is told at the queue's deadline, and prefill never computed its prompt.

use serde_json::json;

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::{Guest, failed, whole};
use crate::matrix::phases::{Phase, set};
use crate::matrix::setup::{SMALL, TWO};

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F04.full",
        what: "decode is full for ever: 429 at the queue's deadline of 3 s, nothing was computed",
        setup: &SMALL,
        bound: Bound::ms(3_100, 3_100),
        run: |ctx| Box::pin(full(ctx)),
    },
    Cell {
        id: "F04.silent",
        what: "decode's answers to Reserve are lost for ever: an error within three attempts of 2 s, nothing was computed",
        setup: &TWO,
        bound: Bound::ms(6_500, 8_000),
        run: |ctx| Box::pin(silent(ctx)),
    },
];

/// The blocks' time is that of the refused room: its own, as those who fill decode go on.
async fn full(ctx: &mut Ctx) -> Measured {
    let mut streams = Vec::new();
    for _ in 0..2 {
        let request = ctx.request(10, 30);
        streams.push(Guest::streams(ctx, &request, 2).await);
        set(ctx, Phase::Decoding).await;
    }
    let steps = ctx.steps("prefill-0").await;
    let request = ctx.request(60, 8);
    ctx.injected();
    let answer = ctx.ask(&request).await;
    let client = ctx.since();
    failed(&answer, 429);
    assert_eq!(
        ctx.steps("prefill-0").await,
        steps,
        "prefill computed what nobody could decode"
    );
    let open = ctx.cluster.rooms().await;
    let back = ctx.since();
    assert_eq!(open.len(), streams.len(), "{open:#?}");
    ctx.calm("decode-0").await;
    for stream in streams {
        whole(&stream.leaves().await);
    }
    Measured::new(client, back)
}

async fn silent(ctx: &mut Ctx) -> Measured {
    for name in ["decode-0", "decode-1"] {
        ctx.fault(name, json!({ "frames": { "reserved": "drop" } })).await;
    }
    let computed = async |ctx: &Ctx| ctx.steps("prefill-0").await + ctx.steps("prefill-1").await;
    let steps = computed(ctx).await;
    let request = ctx.request(60, 8);
    ctx.injected();
    let answer = ctx.ask(&request).await;
    let client = ctx.since();
    assert!([429, 503, 504].contains(&answer.status), "{answer:?}");
    failed(&answer, answer.status);
    assert_eq!(computed(ctx).await, steps, "prefill computed what nobody granted");
    let back = ctx.back(ctx.workers).await;
    Measured::new(client, back).note(format!("{}", answer.status))
}
