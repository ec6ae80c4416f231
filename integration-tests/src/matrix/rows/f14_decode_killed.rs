//! F14: a decode worker is killed, in each phase. The stream goes on at another, with the tokens it would have had.

use crate::admin::Room;
use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::{failed, longest_gap, same};
use crate::matrix::phases::{Phase, hold, let_go};
use crate::matrix::setup::{TWO, TWO_SHM};
use crate::matrix::streams::Streams;
use crate::process::Signal;

/// For streams, the longest gap: the lease, in which the death is known, and prompt and delivered tokens computed again.
const STREAMS: Bound = Bound::ms(5_000, 12_000);
/// For one that has no token yet, the time until the death is known; then comes the request's work anew.
const BOUND: Bound = Bound::ms(2_000, 6_000);

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F14.eight",
        what: "decode killed with eight streams open: each goes on at the other, with the same tokens; the longest gap",
        setup: &TWO,
        bound: STREAMS,
        run: |ctx| Box::pin(eight(ctx)),
    },
    Cell {
        id: "F14.eight-shm",
        what: "the same over shared memory",
        setup: &TWO_SHM,
        bound: STREAMS,
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
    Cell {
        id: "F14.none-left",
        what: "every decode killed with four streams open: who is new is refused with 503 once that is known; the streams wait for a new one",
        setup: &TWO,
        bound: Bound::ms(2_000, 15_000),
        run: |ctx| Box::pin(none_left(ctx)),
    },
];

async fn killed(ctx: &mut Ctx, phase: Phase) -> Measured {
    let request = ctx.request(150, 8);
    let held = hold(ctx, phase, &request).await;
    let victim = held.worker("decode");
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

/// The client's time is that of the refusal.
async fn none_left(ctx: &mut Ctx) -> Measured {
    let streams = Streams::open(ctx, 4).await;
    for name in ["decode-0", "decode-1"] {
        ctx.cluster.process(name).signal(Signal::Kill);
    }
    ctx.injected();
    let request = ctx.request(4, 4);
    let refused = ctx.ask(&request).await;
    let client = ctx.since();
    failed(&refused, 503);
    let rooms = ctx.cluster.rooms().await;
    let waiting: Vec<&Room> = rooms.iter().filter(|room| room.phase == "queued").collect();
    assert!(!waiting.is_empty(), "no stream is open any more");
    assert!(
        waiting.iter().all(|room| room.waits_for.contains("none of")),
        "{waiting:?}"
    );
    for name in ["decode-0", "decode-1"] {
        ctx.cluster.start_worker("decode", name, &[]);
    }
    let answers = streams.finish().await;
    ctx.cluster.ready(ctx.workers).await;
    let back = ctx.back(ctx.workers).await;
    ctx.check_same(&answers).await;
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
    ctx.check_same(&answers).await;
    Measured::new(gap, back).note(format!("{count} of 8 streams were there"))
}
