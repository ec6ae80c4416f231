//! F14: a decode worker is killed, in each phase. The stream goes on at another, with the tokens it would have had.

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::{longest_gap, same};
use crate::matrix::phases::{Phase, hold, let_go};
use crate::matrix::setup::{TWO, TWO_SHM};
use crate::matrix::streams::Streams;
use crate::process::Signal;

/// The lease, in which the death is known, and prompt and delivered tokens computed again.
const BOUND: Bound = Bound::ms(5_000, 12_000);

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F14.eight",
        what: "decode killed with eight streams open: each goes on at the other, with the same tokens; the longest gap",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(eight(ctx)),
    },
    Cell {
        id: "F14.eight-shm",
        what: "the same over shared memory",
        setup: &TWO_SHM,
        bound: BOUND,
        run: |ctx| Box::pin(eight(ctx)),
    },
    Cell {
        id: "F14.reserving",
        what: "decode killed as it is asked for blocks: the answer comes from the other",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(killed(ctx, Phase::Reserving)),
    },
    Cell {
        id: "F14.prefilling",
        what: "decode killed while it keeps blocks for a prompt that is being computed: the answer comes from the other",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(killed(ctx, Phase::Prefilling)),
    },
    Cell {
        id: "F14.pulling",
        what: "decode killed before its read begins: the answer comes from the other",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(killed(ctx, Phase::Pulling)),
    },
];

async fn killed(ctx: &mut Ctx, phase: Phase) -> Measured {
    let request = ctx.request(150, 8);
    let held = hold(ctx, phase, &request).await;
    let victim = held.worker("decode");
    ctx.cluster.process(&victim).signal(Signal::Kill);
    ctx.injected();
    let_go(ctx, &victim).await;
    let answer = held.guest.leaves().await;
    let client = ctx.since();
    let back = ctx.back(ctx.workers - 1).await;
    ctx.again(&victim).await;
    let expected = ctx.reference(&request).await;
    same(&expected, &answer);
    Measured::new(client, back)
}

/// The client's time is the longest gap in a stream.
async fn eight(ctx: &mut Ctx) -> Measured {
    let streams = Streams::open(ctx, 8).await;
    let (victim, count) = streams.busiest(ctx).await;
    ctx.cluster.process(&victim).signal(Signal::Kill);
    ctx.injected();
    let_go(ctx, &victim).await;
    let answers = streams.finish().await;
    let gap = longest_gap(answers.iter().map(|(_, answer)| answer));
    let back = ctx.back(ctx.workers - 1).await;
    ctx.again(&victim).await;
    for (request, answer) in &answers {
        let expected = ctx.reference(request).await;
        same(&expected, answer);
    }
    Measured::new(gap, back).note(format!("{count} of 8 streams were there"))
}
