//! F07: a sequence is preempted after its hand-over, because decode has no block left for it. It goes on elsewhere or later, and nothing
//! of the attempt that is over is used again.

use serde_json::{Value, json};
use tokio::time::sleep;

use std::time::Duration;

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::Guest;
use crate::matrix::phases::{Phase, arrived};
use crate::matrix::setup::GROWING;
use crate::stream::{Answer, completion};

pub(super) const CELLS: &[Cell] = &[Cell {
    id: "F07.evicted",
    what: "two answers grow until decode's pool is full: one is evicted, resumes, and has the tokens it would have had",
    setup: &GROWING,
    bound: Bound::ms(60_000, 61_000),
    run: |ctx| Box::pin(evicted(ctx)),
}];

/// Prompts that fill the pool, without much computing: they begin alike, and prefill keeps what it has computed.
const WORDS: usize = 900;
/// Blocks left for the two: enough for what is promised of their answers at first, and too little for all of them.
const LEFT_BLOCKS: usize = 36;
const TOKENS: u32 = 340;
const BLOCK_TOKENS: usize = 16;

async fn evicted(ctx: &mut Ctx) -> Measured {
    let (beginning, warm) = (ctx.fresh(), ctx.request(1, 2));
    ctx.ask(&warm).await;
    let before = ctx.cluster.process("gateway-0").log().matches("Evicted").count();
    fill(ctx, &beginning).await;
    let requests = [ctx.request(2, TOKENS), ctx.request(2, TOKENS)];
    ctx.injected();
    let guests = requests.each_ref().map(|request| Guest::arrives(ctx, request));
    let mut answers: Vec<(Value, Answer)> = Vec::new();
    for (request, guest) in requests.into_iter().zip(guests) {
        answers.push((request, guest.leaves().await));
    }
    let client = ctx.since();
    ctx.calm("decode-0").await;
    let back = ctx.back(ctx.workers).await;
    let evicted = ctx.cluster.process("gateway-0").log().matches("Evicted").count() - before;
    assert!(evicted > 0, "nobody was evicted");
    ctx.check_same(&answers).await;
    Measured::new(client, back)
}

/// Pins decode's blocks but for a few: guests leave whose reads have no end that is told.
async fn fill(ctx: &mut Ctx, beginning: &str) {
    ctx.fault("decode-0", json!({ "reads": { "does": "hold_end" } }))
        .await;
    loop {
        let left = available(ctx).await;
        if left <= LEFT_BLOCKS + 1 {
            break;
        }
        let words = WORDS.min(((left - LEFT_BLOCKS) * BLOCK_TOKENS).saturating_sub(24).max(1));
        let request = completion(&format!("{beginning}{}", " word".repeat(words)), 2, 0.0, 0);
        let guest = Guest::arrives(ctx, &request);
        let room = arrived(ctx, Phase::Pulling).await;
        sleep(Duration::from_millis(100)).await;
        guest.runs_away().await;
        ctx.outcome(&room.room).await;
        // What a heartbeat says of the pool knows it then.
        sleep(Duration::from_millis(600)).await;
    }
    // Those that come now are read as ever.
    ctx.fault("decode-0", json!({ "reads": { "does": "later_pass" } }))
        .await;
}

/// Blocks that decode could lease.
async fn available(ctx: &Ctx) -> usize {
    let workers = ctx.cluster.workers().await;
    let decode = workers.iter().find(|worker| worker.name == "decode-0").unwrap();
    (decode.blocks_free + decode.blocks_cached) as usize
}
