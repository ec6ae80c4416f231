//! What is true after every cell, whatever it did: nothing open, nothing held, nothing quarantined, one outcome a room, and the cluster works.

use serde_json::json;

use super::ctx::Ctx;
use crate::stream::{answer, completion};

const PROBE_TOKENS: u32 = 4;

/// Turns every switch off, waits until everybody is there again, and checks. A cell has brought back whom it killed or froze.
pub(super) async fn check(ctx: &mut Ctx) {
    for name in ctx.cluster.names() {
        ctx.cluster.fault(&name, &json!({ "calm": true })).await;
    }
    ctx.cluster.ready(ctx.workers).await;
    // INV-02, INV-08, INV-11: asked of every worker through the gateway, which adds what it has promised itself.
    ctx.cluster.all_back(ctx.workers).await;
    ctx.cluster.balanced().await;
    one_outcome_a_room(ctx).await;
    // It works, and as before: what a cell leaves in a cache changes no token.
    let probe = completion("The capital of France is", PROBE_TOKENS, 0.0, 0);
    let expected = ctx.reference(&probe).await;
    let answer = answer(ctx.cluster.ports().http, &probe).await;
    assert_eq!(answer.status, 200, "the cluster serves no more: {answer:?}");
    assert_eq!(expected.tokens, answer.tokens, "INV-06: other tokens than before");
    assert_eq!(
        expected.logprobs, answer.logprobs,
        "INV-06: other numbers than before"
    );
    ctx.cluster.all_back(ctx.workers).await;
}

/// INV-03, of this gateway's life.
async fn one_outcome_a_room(ctx: &Ctx) {
    let metrics = ctx.cluster.metrics().await;
    let opened = metrics.sum("innkeeper_rooms_opened_total", "");
    let outcomes = metrics.sum("innkeeper_outcomes_total", "");
    assert_eq!(opened, outcomes, "INV-03: {opened} rooms and {outcomes} outcomes");
    let buried = metrics.sum("innkeeper_rooms_buried_total", "");
    assert_eq!(buried, 0.0, "rooms whose owners died again and again");
}
