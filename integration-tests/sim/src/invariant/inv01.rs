//! INV-01: no foreign byte. A block's data is of the room and generation that reads it.

use crate::evidence::Evidence;

pub(super) fn check(evidence: &Evidence) -> Vec<String> {
    let read = evidence.foreign.iter().map(|(worker, foreign)| {
        format!(
            "{worker} attended to foreign KV at position {} in block {} at step {}",
            foreign.position, foreign.block, foreign.step
        )
    });
    read.chain(evidence.moves.iter().cloned()).collect()
}
