//! Proof that a pin held: what a block hashed to when it was pinned, and hashes to later.

use std::collections::BTreeMap;

use kv::{BlockIndex, KvMemory, TransferKey, block_checksum};

/// Any name will do, as long as it is always the same.
const NAME: TransferKey = TransferKey {
    gateway: 0,
    seq: 0,
    generation: 0,
};

/// Hash of a block's bytes; none if the region does not have it.
pub(super) fn hash(memory: &dyn KvMemory, block: BlockIndex, scratch: &mut Vec<u8>) -> Option<u64> {
    scratch.resize(memory.block_bytes(), 0);
    memory.read_into(block, 0, scratch).ok()?;
    Some(block_checksum(NAME, 0, scratch))
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
