//! What could be had at best: one cache of the same size that everybody shares.

use room::{Ask, Attempt, Generation, Ledger, NodeId, RoomId};

use crate::trace::{BLOCK_TOKENS, Request};

/// Of all blocks of all prompts, the share that is there already when they come, one after the other, to a single worker's ledger
/// of so many blocks. What is computed is there at once.
#[must_use]
pub fn shared_cache(requests: &[Request], blocks: u32) -> f64 {
    let mut ledger = Ledger::new(blocks, 1);
    let (mut all, mut cached) = (0_u64, 0_u64);
    for (seq, request) in (0..).zip(requests) {
        let attempt = Attempt {
            room: RoomId {
                gateway: NodeId(0),
                seq,
            },
            generation: Generation::FIRST,
        };
        let ask = Ask {
            blocks: request.prompt.div_ceil(BLOCK_TOKENS),
            shareable: (request.prompt - 1) / BLOCK_TOKENS,
            hashes: request.hashes.to_vec(),
        };
        all += u64::from(ask.blocks);
        if let Ok(grant) = ledger.grant(attempt, &ask) {
            cached += u64::from(grant.cached);
            ledger.complete(attempt, u32::MAX);
            ledger.close(attempt);
        }
    }
    crate::report::ratio(cached, all)
}
