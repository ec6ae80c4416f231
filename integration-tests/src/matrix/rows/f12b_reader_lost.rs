//! F12b: decode is killed or frozen in the middle of a pull, and the source is asked to free. Its blocks are pinned until its sends are
//! over, and it goes on serving others.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::same;
use crate::matrix::phases::{Phase, hold, let_go};
use crate::matrix::setup::{TWO, TWO_SHM};
use crate::process::Signal;

/// The lease, the transfer's deadline for lack of progress (2 s), and the request's work anew, which is longer here.
const BOUND: Bound = Bound::ms(10_000, 10_000);

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F12b.killed",
        what: "decode killed while bytes come to it over tcp: the source serves the next decode, with the same tokens",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(lost(ctx, Signal::Kill)),
    },
    Cell {
        id: "F12b.killed-shm",
        what: "the same over shared memory",
        setup: &TWO_SHM,
        bound: BOUND,
        run: |ctx| Box::pin(lost(ctx, Signal::Kill)),
    },
    Cell {
        id: "F12b.frozen",
        what: "decode frozen while bytes come to it over tcp, for 5 s: the source serves the next decode, with the same tokens",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(lost(ctx, Signal::Stop)),
    },
    Cell {
        id: "F12b.frozen-shm",
        what: "the same over shared memory",
        setup: &TWO_SHM,
        bound: BOUND,
        run: |ctx| Box::pin(lost(ctx, Signal::Stop)),
    },
];

async fn lost(ctx: &mut Ctx, signal: Signal) -> Measured {
    let request = ctx.request(300, 8);
    let held = hold(ctx, Phase::Pulling, &request).await;
    let (source, reader) = (held.worker("prefill"), held.worker("decode"));
    ctx.fault(&reader, json!({ "reads": { "does": "pass" } })).await;
    // Some of it is on its way.
    sleep(Duration::from_millis(6)).await;
    ctx.cluster.process(&reader).signal(signal);
    ctx.injected();
    let_go(ctx, &reader).await;
    let answer = held.guest.leaves().await;
    let client = ctx.since();
    let back = ctx.back(ctx.workers - 1).await;
    match signal {
        Signal::Stop => {
            sleep(Duration::from_millis(5_000).saturating_sub(ctx.since())).await;
            ctx.cluster.process(&reader).signal(Signal::Continue);
        }
        _ => ctx.again(&reader).await,
    }
    ctx.cluster.ready(ctx.workers).await;
    ctx.cluster.all_back(ctx.workers).await;
    assert!(
        !ctx.cluster.process(&source).is_lost(),
        "the source has ended with its reader"
    );
    let expected = ctx.reference(&request).await;
    same(&expected, &answer);
    Measured::new(client, back)
}
