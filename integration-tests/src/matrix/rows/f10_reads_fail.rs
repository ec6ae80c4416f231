//! F10: a read of a pull fails. It has one outcome, its attempt fails closed, and the room is tried again.

use serde_json::{Value, json};

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::{Guest, failed};
use crate::matrix::setup::TWO;
use crate::stream::Answer;

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F10.one",
        what: "one read fails: the answer comes from the next attempt, with the same tokens",
        setup: &TWO,
        bound: Bound::ms(5_000, 6_000),
        run: |ctx| Box::pin(some_fail(ctx, 1, &[0])),
    },
    Cell {
        id: "F10.some-of-eight",
        what: "of the reads of eight rooms at a time, several fail at each worker: eight answers with the right tokens",
        setup: &TWO,
        bound: Bound::ms(20_000, 21_000),
        run: |ctx| Box::pin(some_fail(ctx, 8, &[0, 2, 3, 5])),
    },
    Cell {
        id: "F10.every",
        what: "every read fails: an error after as many attempts as are allowed, and everything is back",
        setup: &TWO,
        bound: Bound::ms(8_000, 10_000),
        run: |ctx| Box::pin(every(ctx)),
    },
];

async fn set(ctx: &Ctx, reads: Value) {
    for name in ["decode-0", "decode-1"] {
        ctx.fault(name, json!({ "reads": reads })).await;
    }
}

async fn some_fail(ctx: &mut Ctx, rooms: usize, which: &[u64]) -> Measured {
    let retried = ctx.metric("innkeeper_attempts_retried_total", "").await;
    for nth in which {
        set(ctx, json!({ "does": "fail", "nth": nth })).await;
    }
    let requests: Vec<Value> = (0..rooms).map(|_| ctx.request(60, 8)).collect();
    ctx.injected();
    let guests: Vec<Guest> = requests
        .iter()
        .map(|request| Guest::arrives(ctx, request))
        .collect();
    let mut answers = Vec::new();
    for guest in guests {
        answers.push(guest.leaves().await);
    }
    let client = ctx.since();
    let back = ctx.back(ctx.workers).await;
    // Those that were not used up would hit a later cell.
    for _ in 0..2 {
        ctx.calm("decode-0").await;
        ctx.calm("decode-1").await;
    }
    let again = ctx.metric("innkeeper_attempts_retried_total", "").await - retried;
    assert!(again >= 1.0, "no read has failed");
    let answers: Vec<(Value, Answer)> = requests.into_iter().zip(answers).collect();
    ctx.check_same(&answers).await;
    Measured::new(client, back).note(format!("{again} attempts failed"))
}

async fn every(ctx: &mut Ctx) -> Measured {
    set(ctx, json!({ "does": "fail" })).await;
    let request = ctx.request(60, 8);
    ctx.injected();
    let answer = ctx.ask(&request).await;
    let client = ctx.since();
    failed(&answer, 503);
    Measured::new(client, ctx.back(ctx.workers).await).note(format!("{}", answer.status))
}
