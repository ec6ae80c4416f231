//! F07: a sequence is preempted after its hand-over, because decode has no block left for it. It goes on elsewhere or later, and nothing
//! of the attempt that is over is used again.

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::{Guest, same};
use crate::matrix::setup::GROWING;

pub(super) const CELLS: &[Cell] = &[Cell {
    id: "F07.evicted",
    what: "answers grow until decode's pool is full: one is evicted, resumes, and has the tokens it would have had",
    setup: &GROWING,
    bound: Bound::ms(120_000, 121_000),
    run: |ctx| Box::pin(evicted(ctx)),
}];

/// Two prompts and the 256 tokens of an answer that are promised fill the pool of 514 blocks but for a few. What they grow beyond that
/// does not fit.
const PROMPT_WORDS: usize = 3_790;
const TOKENS: u32 = 360;

async fn evicted(ctx: &mut Ctx) -> Measured {
    let requests = [
        ctx.request(PROMPT_WORDS, TOKENS),
        ctx.request(PROMPT_WORDS, TOKENS),
    ];
    ctx.injected();
    let guests = requests.each_ref().map(|request| Guest::arrives(ctx, request));
    let mut answers = Vec::new();
    for guest in guests {
        answers.push(guest.leaves().await);
    }
    let client = ctx.since();
    let back = ctx.back(ctx.workers).await;
    let ended = ctx.cluster.rooms_ended().await;
    let resumed = ended.iter().take(2).map(|room| room.generation).max();
    assert!(
        resumed > Some(ended[0].generation.min(ended[1].generation)),
        "nobody was evicted: {ended:#?}"
    );
    for (request, answer) in requests.iter().zip(&answers) {
        let expected = ctx.reference(request).await;
        same(&expected, answer);
    }
    Measured::new(client, back)
}
