//! F25: the owner of a request panics, an engine panics or fails, a transfer's thread dies. What is lost migrates or ends; the node
//! recovers. Blocks of a request that dies beside others: from their ends.

use serde_json::{Value, json};

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::guests::{Guests, serves_again};
use crate::matrix::load::{Guest, longest_gap, same};
use crate::matrix::setup::TWO;

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F25.request",
        what: "a request's actor panics: its client has a 5xx, its blocks come back, others do not notice",
        setup: &TWO,
        bound: Bound::ms(1_500, 4_000),
        run: |ctx| {
            Box::pin(request(
                ctx,
                json!({ "doom": { "at_birth": 1, "after_birth": 0 } }),
            ))
        },
    },
    Cell {
        id: "F25.request-and-heir",
        what: "a request's actor panics, and so does its first heir",
        setup: &TWO,
        bound: Bound::ms(1_500, 4_000),
        run: |ctx| {
            Box::pin(request(
                ctx,
                json!({ "doom": { "at_birth": 1, "after_birth": 1 } }),
            ))
        },
    },
    Cell {
        id: "F25.decode-panics",
        what: "decode's engine thread panics in a step: its streams migrate, the worker is built anew",
        setup: &TWO,
        bound: Bound::ms(4_000, 20_000),
        run: |ctx| Box::pin(engine(ctx, "decode-0", json!({ "engine": { "panic": true } }))),
    },
    Cell {
        id: "F25.decode-fails",
        what: "a step of decode's engine fails: the same",
        setup: &TWO,
        bound: Bound::ms(4_000, 20_000),
        run: |ctx| Box::pin(engine(ctx, "decode-0", json!({ "engine": { "fail": true } }))),
    },
    Cell {
        id: "F25.prefill-panics",
        what: "prefill's engine thread panics in a step: another computes the prompt",
        setup: &TWO,
        bound: Bound::ms(4_000, 20_000),
        run: |ctx| Box::pin(prefill(ctx)),
    },
    Cell {
        id: "F25.transfer-dies",
        what: "the thread of decode's KV transfer dies as a read ends: the room goes on elsewhere, the worker is built anew",
        setup: &TWO,
        bound: Bound::ms(6_000, 20_000),
        run: |ctx| Box::pin(transfer(ctx)),
    },
];

async fn request(ctx: &mut Ctx, doom: Value) -> Measured {
    let guests = Guests::at(ctx, "decode-0").await;
    ctx.fault("gateway-0", doom).await;
    let request = ctx.request(20, 8);
    ctx.injected();
    let answer = ctx.ask(&request).await;
    let client = ctx.since();
    assert!(
        answer.error.is_some() && !answer.done && (answer.status == 200 || answer.status >= 500),
        "{answer:?}"
    );
    let heard = guests.hear().await;
    let back = ctx.cluster.all_back(ctx.workers).await;
    heard.check(ctx).await;
    Measured::new(client, back).note(format!("status {}", answer.status))
}

async fn engine(ctx: &mut Ctx, victim: &str, switch: Value) -> Measured {
    let guests = Guests::at(ctx, victim).await;
    ctx.injected();
    ctx.fault(victim, switch).await;
    let heard = guests.hear().await;
    let client = longest_gap(&heard.answers);
    serves_again(ctx, victim).await;
    let back = ctx.back(ctx.workers).await;
    heard.check(ctx).await;
    Measured::new(client, back)
}

async fn prefill(ctx: &mut Ctx) -> Measured {
    for name in ["prefill-0", "prefill-1"] {
        ctx.fault(name, json!({ "engine": { "step_ms": 300 } })).await;
    }
    let request = ctx.request(150, 8);
    let guest = Guest::arrives(ctx, &request);
    let computing = || async {
        let rooms = ctx.cluster.rooms().await;
        let room = rooms.into_iter().find(|room| room.phase == "prefilling")?;
        let mut holders = room.held_by.into_iter().map(|held| held.worker);
        holders.find(|worker| worker.starts_with("prefill"))
    };
    let (victim, _) = ctx.cluster.until("a prompt is computed", computing).await;
    ctx.injected();
    ctx.fault(&victim, json!({ "engine": { "panic": true } })).await;
    for name in ["prefill-0", "prefill-1"] {
        ctx.fault(name, json!({ "engine": { "step_ms": 0 } })).await;
    }
    let answer = guest.leaves().await;
    let client = ctx.since();
    ctx.cluster.ready(ctx.workers).await;
    let back = ctx.back(ctx.workers).await;
    let expected = ctx.reference(&request).await;
    same(&expected, &answer);
    Measured::new(client, back)
}

async fn transfer(ctx: &mut Ctx) -> Measured {
    for name in ["decode-0", "decode-1"] {
        ctx.fault(name, json!({ "reads": { "does": "panic", "nth": 0 } }))
            .await;
    }
    let request = ctx.request(100, 8);
    ctx.injected();
    let guest = Guest::arrives(ctx, &request);
    let answer = guest.leaves().await;
    let client = ctx.since();
    for name in ["decode-0", "decode-1"] {
        ctx.fault(name, json!({ "reads": { "does": "pass" } })).await;
        serves_again(ctx, name).await;
    }
    let back = ctx.back(ctx.workers).await;
    let expected = ctx.reference(&request).await;
    same(&expected, &answer);
    Measured::new(client, back)
}
