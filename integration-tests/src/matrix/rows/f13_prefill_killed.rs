//! F13: a prefill worker is killed in each phase. The request completes at another one, or is refused if there is none.

use serde_json::json;

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::{failed, longest_gap, same};
use crate::matrix::phases::{Phase, hold, let_go};
use crate::matrix::setup::{SMALL, TWO, TWO_SHM};
use crate::process::Signal;

/// The client's time is that until the death is known, 2 s as the row says; then comes the request's work anew.
const BOUND: Bound = Bound::ms(2_000, 6_000);

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F13.prefilling",
        what: "prefill killed while it computes: the answer comes from another, with the same tokens",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(killed(ctx, Phase::Prefilling)),
    },
    Cell {
        id: "F13.pulling",
        what: "prefill killed before its KV is read: the answer comes from another, with the same tokens",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(killed(ctx, Phase::Pulling)),
    },
    Cell {
        id: "F13.pulling-shm",
        what: "the same over shared memory",
        setup: &TWO_SHM,
        bound: BOUND,
        run: |ctx| Box::pin(killed(ctx, Phase::Pulling)),
    },
    Cell {
        id: "F13.decoding",
        what: "prefill killed after the hand-over: the stream does not notice; its longest gap, and all back after its end",
        setup: &TWO,
        bound: Bound::ms(1_500, 12_000),
        run: |ctx| Box::pin(decode_unaffected(ctx)),
    },
    Cell {
        id: "F13.none-left",
        what: "the only prefill worker killed while it computes: 503 when the loss is known",
        setup: &SMALL,
        bound: Bound::ms(2_000, 2_000),
        run: |ctx| Box::pin(none_left(ctx)),
    },
];

const TOKENS: u32 = 8;

async fn killed(ctx: &mut Ctx, phase: Phase) -> Measured {
    let request = ctx.request(150, TOKENS);
    let held = hold(ctx, phase, &request).await;
    let victim = held.worker("prefill");
    ctx.cluster.process(&victim).signal(Signal::Kill);
    ctx.injected();
    let_go(ctx, &victim).await;
    let client = ctx.known(&victim).await;
    let answer = held.guest.leaves().await;
    let back = ctx.back(ctx.workers - 1).await;
    ctx.again(&victim).await;
    let expected = ctx.reference(&request).await;
    same(&expected, &answer);
    Measured::new(client, back)
}

async fn decode_unaffected(ctx: &mut Ctx) -> Measured {
    let request = ctx.request(30, 24);
    let steps = ctx.steps("prefill-0").await;
    let held = hold(ctx, Phase::Decoding, &request).await;
    // Whoever computed the prompt.
    let victim = match ctx.steps("prefill-0").await > steps {
        true => "prefill-0",
        false => "prefill-1",
    };
    ctx.cluster.process(victim).signal(Signal::Kill);
    ctx.injected();
    let_go(ctx, victim).await;
    let answer = held.guest.leaves().await;
    let client = longest_gap([&answer]);
    let back = ctx.back(ctx.workers - 1).await;
    let ended = ctx.cluster.rooms_ended().await;
    let room = ended.iter().find(|room| room.room == held.room.room).unwrap();
    assert_eq!(
        room.generation, held.room.generation,
        "it did not need another attempt"
    );
    ctx.again(victim).await;
    let expected = ctx.reference(&request).await;
    same(&expected, &answer);
    Measured::new(client, back)
}

async fn none_left(ctx: &mut Ctx) -> Measured {
    let request = ctx.request(150, TOKENS);
    let held = hold(ctx, Phase::Prefilling, &request).await;
    ctx.cluster.process("prefill-0").signal(Signal::Kill);
    ctx.injected();
    let answer = held.guest.leaves().await;
    let client = ctx.since();
    failed(&answer, 503);
    let back = ctx.back(ctx.workers - 1).await;
    ctx.again("prefill-0").await;
    Measured::new(client, back).note(json!(answer.status).to_string())
}
