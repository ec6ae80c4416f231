//! F11: the source of a pull is frozen for longer than the lease, and continued. The request is retried elsewhere; the destination's
//! blocks stay pinned until nothing can land in them; and the source, once awake, has dropped the room.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::same;
use crate::matrix::phases::{Phase, hold, let_go};
use crate::matrix::setup::{TWO, TWO_SHM};
use crate::process::Signal;

/// The lease, the transfer's deadline for lack of progress (2 s), and the request's work anew.
const BOUND: Bound = Bound::ms(6_000, 6_000);

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F11.before",
        what: "source frozen as a read over tcp begins, for 4 s: the answer comes from another source, with the same tokens",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(frozen(ctx, None)),
    },
    Cell {
        id: "F11.before-shm",
        what: "the same over shared memory",
        setup: &TWO_SHM,
        bound: BOUND,
        run: |ctx| Box::pin(frozen(ctx, None)),
    },
    Cell {
        id: "F11.during",
        what: "source frozen while the bytes of a read over tcp are on their way",
        setup: &TWO,
        bound: Bound::ms(12_000, 12_000),
        run: |ctx| Box::pin(frozen(ctx, Some(Duration::from_millis(4)))),
    },
    Cell {
        id: "F11.during-shm",
        what: "the same over shared memory",
        setup: &TWO_SHM,
        bound: Bound::ms(12_000, 12_000),
        run: |ctx| Box::pin(frozen(ctx, Some(Duration::from_millis(4)))),
    },
];

/// With a head start the read has begun; the prompt is long then, so that it has not ended.
async fn frozen(ctx: &mut Ctx, head_start: Option<Duration>) -> Measured {
    let request = ctx.request(if head_start.is_some() { 400 } else { 150 }, 8);
    let held = hold(ctx, Phase::Pulling, &request).await;
    let (source, reader) = (held.worker("prefill"), held.worker("decode"));
    if let Some(head_start) = head_start {
        ctx.fault(&reader, json!({ "reads": { "does": "pass" } })).await;
        sleep(head_start).await;
    }
    ctx.cluster.process(&source).signal(Signal::Stop);
    ctx.injected();
    let_go(ctx, &source).await;
    let answer = held.guest.leaves().await;
    let client = ctx.since();
    let back = ctx.back(ctx.workers - 1).await;
    sleep(Duration::from_millis(4_000).saturating_sub(ctx.since())).await;
    ctx.cluster.process(&source).signal(Signal::Continue);
    // It is linked again, as the same incarnation, with nothing of before.
    ctx.cluster.ready(ctx.workers).await;
    let awake = ctx.cluster.all_back(ctx.workers).await;
    let expected = ctx.reference(&request).await;
    same(&expected, &answer);
    Measured::new(client, back).note(format!(
        "the source has nothing {} ms after it is linked again",
        awake.as_millis()
    ))
}
