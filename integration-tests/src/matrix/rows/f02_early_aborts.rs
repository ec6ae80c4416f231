//! F02: an abort arrives before the room exists on the worker, or after it ended. No state is made of it, nothing waits for it.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use crate::http::post;
use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::{Guest, whole};
use crate::matrix::phases::{Phase, arrived};
use crate::matrix::setup::TWO;

/// How much later the overtaken order arrives.
const LATE_MS: u64 = 700;
const BOUND: Bound = Bound::ms(1_000, 2_000 + LATE_MS);

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F02.before-reserve",
        what: "a Close overtakes the Reserve that opens the attempt at decode: the Reserve opens nothing",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(overtaken(ctx, "reserve", Phase::Reserving)),
    },
    Cell {
        id: "F02.before-prefill",
        what: "a Close overtakes the Prefill that opens the attempt at prefill: what that opens is closed by the next digest",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(overtaken(ctx, "prefill", Phase::Prefilling)),
    },
    Cell {
        id: "F02.after-end",
        what: "every Close arrives late and twice, when its room is long gone; an operator aborts rooms that ended: 404",
        setup: &TWO,
        bound: Bound::ms(10_000, 12_000),
        run: |ctx| Box::pin(after_the_end(ctx)),
    },
];

async fn overtaken(ctx: &mut Ctx, kind: &str, phase: Phase) -> Measured {
    ctx.fault(
        "gateway-0",
        json!({ "frames": { kind: { "delay_ms": LATE_MS } } }),
    )
    .await;
    for name in ["prefill-0", "prefill-1"] {
        ctx.fault(name, json!({ "engine": { "step_ms": 100 } })).await;
    }
    let steps = computed(ctx).await;
    let request = ctx.request(400, 8);
    let guest = Guest::arrives(ctx, &request);
    let room = arrived(ctx, phase).await;
    ctx.injected();
    guest.runs_away().await;
    assert_eq!(ctx.outcome(&room.room).await, "aborted");
    let client = ctx.since();
    // The order has arrived by then, and everything is still as it was.
    sleep(Duration::from_millis(LATE_MS)).await;
    let back = ctx.back(ctx.workers).await;
    sleep(Duration::from_millis(500)).await;
    ctx.cluster.all_back(ctx.workers).await;
    // Of thirteen chunks, those of one heartbeat at most.
    let computed = computed(ctx).await - steps;
    assert!(computed <= 5, "{computed} steps were made for nobody");
    Measured::new(client, back).note(format!("{computed} steps for nobody"))
}

/// Steps of both prefill workers.
async fn computed(ctx: &Ctx) -> u64 {
    ctx.steps("prefill-0").await + ctx.steps("prefill-1").await
}

async fn after_the_end(ctx: &mut Ctx) -> Measured {
    ctx.fault(
        "gateway-0",
        json!({ "frames": { "close": { "delay_ms": 1_500 } } }),
    )
    .await;
    let request = ctx.request(20, 6);
    ctx.injected();
    whole(&ctx.ask(&request).await);
    let client = ctx.since();
    let back = ctx.back(ctx.workers).await;
    let rooms = ctx.cluster.rooms_ended().await;
    let admin = ctx.cluster.ports().admin;
    for room in [rooms[0].room.as_str(), "0-0", "nonsense"] {
        let answer = post(admin, &format!("/rooms/{room}/abort"), &json!({}))
            .await
            .unwrap();
        assert_eq!(answer.status, 404, "{room}");
    }
    sleep(Duration::from_millis(1_500)).await;
    ctx.cluster.all_back(ctx.workers).await;
    Measured::new(client, back)
}
