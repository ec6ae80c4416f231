//! Proof that a pin held: what a block hashed to when it was pinned, and hashes to later.

use std::collections::BTreeMap;

use kv::{BlockIndex, KvMemory};
use xxhash_rust::xxh3::xxh3_64;

/// Hash of a block's bytes; none if the region does not have it. Not the transfers' own checksum: that may be the broken one.
pub(super) fn hash(memory: &dyn KvMemory, block: BlockIndex, scratch: &mut Vec<u8>) -> Option<u64> {
    scratch.resize(memory.block_bytes(), 0);
    memory.read_into(block, 0, scratch).ok()?;
    Some(xxh3_64(scratch))
}

/// The blocks a read has pinned at its reader.
#[derive(Default)]
pub(super) struct Pins(BTreeMap<BlockIndex, Option<u64>>);

impl Pins {
    pub(super) fn over(memory: &dyn KvMemory, blocks: &[BlockIndex], scratch: &mut Vec<u8>) -> Self {
        Self(
            blocks
                .iter()
                .map(|&block| (block, hash(memory, block, scratch)))
                .collect(),
        )
    }

    /// The transfer itself has written to `block`.
    pub(super) fn written(&mut self, memory: &dyn KvMemory, block: BlockIndex, scratch: &mut Vec<u8>) {
        if let Some(known) = self.0.get_mut(&block) {
            *known = hash(memory, block, scratch);
        }
    }

    /// Whether nobody else has written to `block` since.
    pub(super) fn holds(&self, memory: &dyn KvMemory, block: BlockIndex, scratch: &mut Vec<u8>) -> bool {
        self.0
            .get(&block)
            .is_none_or(|known| *known == hash(memory, block, scratch))
    }

    /// The first block that somebody else has written to.
    pub(super) fn broken(&self, memory: &dyn KvMemory, scratch: &mut Vec<u8>) -> Option<BlockIndex> {
        self.0
            .keys()
            .copied()
            .find(|&block| !self.holds(memory, block, scratch))
    }
}
