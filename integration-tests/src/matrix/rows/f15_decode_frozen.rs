//! F15: a decode worker is frozen mid-stream, for long and for less than a lease.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::longest_gap;
use crate::matrix::phases::let_go;
use crate::matrix::setup::{TWO, TWO_SHM};
use crate::matrix::streams::Streams;
use crate::process::Signal;

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F15.eight",
        what: "decode frozen with eight streams open: each goes on at the other, with the same tokens; once thawed it has nothing",
        setup: &TWO,
        bound: Bound::ms(5_000, 12_000),
        run: |ctx| Box::pin(frozen(ctx)),
    },
    Cell {
        id: "F15.eight-shm",
        what: "the same over shared memory",
        setup: &TWO_SHM,
        bound: Bound::ms(5_000, 12_000),
        run: |ctx| Box::pin(frozen(ctx)),
    },
    Cell {
        id: "F15.short",
        what: "decode frozen for 600 ms, less than a lease: its streams wait and go on where they are",
        setup: &TWO,
        bound: Bound::ms(1_500, 12_000),
        run: |ctx| Box::pin(short(ctx)),
    },
    Cell {
        id: "F15.engine",
        what: "a decode engine is stuck, its process lives: after the stall deadline of 5 s its streams go on at the other",
        setup: &TWO,
        bound: Bound::ms(8_000, 25_000),
        run: |ctx| Box::pin(engine(ctx)),
    },
];

async fn frozen(ctx: &mut Ctx) -> Measured {
    let streams = Streams::open(ctx, 8).await;
    let (victim, count) = streams.busiest(ctx).await;
    ctx.cluster.process(&victim).signal(Signal::Stop);
    ctx.injected();
    let_go(ctx, &victim).await;
    let answers = streams.finish().await;
    let gap = longest_gap(answers.iter().map(|(_, answer)| answer));
    let back = ctx.back(ctx.workers - 1).await;
    ctx.cluster.process(&victim).signal(Signal::Continue);
    let thawed = ctx.cluster.all_back(ctx.workers).await;
    ctx.calm(&victim).await;
    ctx.check_same(&answers).await;
    let note = format!(
        "{count} of 8 streams were there; linked again with nothing after {} ms",
        thawed.as_millis()
    );
    Measured::new(gap, back).note(note)
}

async fn short(ctx: &mut Ctx) -> Measured {
    let streams = Streams::open(ctx, 4).await;
    let (victim, _) = streams.busiest(ctx).await;
    let generations = streams.generations(ctx).await;
    ctx.cluster.process(&victim).signal(Signal::Stop);
    ctx.injected();
    sleep(Duration::from_millis(600)).await;
    ctx.cluster.process(&victim).signal(Signal::Continue);
    let_go(ctx, "").await;
    let answers = streams.finish().await;
    let gap = longest_gap(answers.iter().map(|(_, answer)| answer));
    let back = ctx.back(ctx.workers).await;
    let ended = ctx.cluster.rooms_ended().await;
    for (room, generation) in generations {
        let end = ended.iter().find(|end| end.room == room).unwrap();
        assert_eq!(end.generation, generation, "it did not go on where it was");
    }
    ctx.check_same(&answers).await;
    Measured::new(gap, back)
}

async fn engine(ctx: &mut Ctx) -> Measured {
    let streams = Streams::open(ctx, 4).await;
    let (victim, count) = streams.busiest(ctx).await;
    ctx.fault(&victim, json!({ "engine": { "stuck": true } })).await;
    ctx.injected();
    let_go(ctx, &victim).await;
    let answers = streams.finish().await;
    let gap = longest_gap(answers.iter().map(|(_, answer)| answer));
    let back = ctx.back(ctx.workers).await;
    ctx.calm(&victim).await;
    ctx.check_same(&answers).await;
    Measured::new(gap, back).note(format!("{count} of 4 streams were there"))
}
