//! F06: the client disconnects, in each phase. The engine stops within one chunk.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::{Guest, whole};
use crate::matrix::phases::{Phase, hold, set};
use crate::matrix::setup::{SMALL, TWO, TWO_SHM};

/// The room has its outcome at once; a chunk and a heartbeat later all is back.
const BOUND: Bound = Bound::ms(500, 1_500);

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F06.queued",
        what: "client leaves while it waits for a slot",
        setup: &SMALL,
        bound: BOUND,
        run: |ctx| Box::pin(queued(ctx)),
    },
    Cell {
        id: "F06.reserving",
        what: "client leaves while decode is asked for blocks",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(leaves(ctx, Phase::Reserving)),
    },
    Cell {
        id: "F06.prefilling",
        what: "client leaves while its prompt is computed: no further chunk is",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(leaves(ctx, Phase::Prefilling)),
    },
    Cell {
        id: "F06.pulling",
        what: "client leaves while its KV is pulled",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(leaves(ctx, Phase::Pulling)),
    },
    Cell {
        id: "F06.pulling-shm",
        what: "the same over shared memory",
        setup: &TWO_SHM,
        bound: BOUND,
        run: |ctx| Box::pin(leaves(ctx, Phase::Pulling)),
    },
    Cell {
        id: "F06.decoding",
        what: "client leaves while tokens come: no further step is made for it",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(leaves(ctx, Phase::Decoding)),
    },
    Cell {
        id: "F06.ten-long",
        what: "ten long prompts are left, then a short one is asked: its first token comes as if alone",
        setup: &SMALL,
        bound: Bound::ms(1_500, 3_000),
        run: |ctx| Box::pin(ten_long(ctx)),
    },
];

async fn leaves(ctx: &mut Ctx, phase: Phase) -> Measured {
    let request = ctx.request(300, 64);
    let held = hold(ctx, phase, &request).await;
    ctx.injected();
    held.guest.runs_away().await;
    let outcome = ctx.outcome(&held.room.room).await;
    let client = ctx.since();
    assert_eq!(outcome, "aborted");
    let back = ctx.back(ctx.workers).await;
    // All is back: whoever works now, works for nobody.
    let steps = all_steps(ctx).await;
    sleep(Duration::from_millis(600)).await;
    assert_eq!(all_steps(ctx).await, steps, "steps are made for nobody");
    Measured::new(client, back)
}

async fn all_steps(ctx: &Ctx) -> u64 {
    let mut steps = 0;
    for name in ctx.cluster.names().iter().filter(|name| *name != "gateway-0") {
        steps += ctx.steps(name).await;
    }
    steps
}

async fn queued(ctx: &mut Ctx) -> Measured {
    let mut streams = Vec::new();
    for _ in 0..2 {
        let request = ctx.request(10, 24);
        streams.push(Guest::streams(ctx, &request, 2).await);
        set(ctx, Phase::Decoding).await;
    }
    let request = ctx.request(10, 4);
    let guest = Guest::arrives(ctx, &request);
    let waits = || async {
        let rooms = ctx.cluster.rooms().await;
        rooms.into_iter().find(|room| room.phase == "queued")
    };
    let (room, _) = ctx.cluster.until("a room that waits", waits).await;
    ctx.injected();
    guest.runs_away().await;
    let outcome = ctx.outcome(&room.room).await;
    let client = ctx.since();
    assert_eq!(outcome, "aborted");
    // It never had a block: what is back is its place in the queue.
    let left = || async { (ctx.cluster.rooms().await.len() == streams.len()).then_some(()) };
    ctx.cluster.until("it is out of the queue", left).await;
    let back = ctx.since();
    ctx.calm("decode-0").await;
    for stream in streams {
        whole(&stream.leaves().await);
    }
    Measured::new(client, back)
}

/// The client's time is that of the short one's first token, from its request.
async fn ten_long(ctx: &mut Ctx) -> Measured {
    let short = ctx.request(4, 2);
    let idle = ctx.ask(&short).await;
    whole(&idle);
    let mut guests = Vec::new();
    for _ in 0..10 {
        let request = ctx.request(1_500, 8);
        guests.push(Guest::arrives(ctx, &request));
    }
    let at_work = || async {
        let rooms = ctx.cluster.rooms().await;
        let working = rooms.iter().any(|room| room.phase == "prefilling");
        (rooms.len() == 10 && working).then_some(())
    };
    ctx.cluster.until("ten long prompts", at_work).await;
    ctx.injected();
    for guest in guests {
        guest.runs_away().await;
    }
    let short = ctx.request(4, 2);
    let answer = ctx.ask(&short).await;
    whole(&answer);
    let back = ctx.back(ctx.workers).await;
    let note = json!({ "idle_ms": idle.first.as_millis(), "behind_ms": answer.first.as_millis() });
    Measured::new(answer.first, back).note(note.to_string())
}
