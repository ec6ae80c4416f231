//! The region as UCX sees it: addresses of runs of blocks, checked against its bounds.

#![allow(unsafe_code)]

use std::{slice, sync::Arc};

use kv::{BlockIndex, KvMemory, TransferKey, block_checksum};

/// A run of blocks inside the region.
#[derive(Copy, Clone)]
pub(crate) struct Span {
    pub(crate) ptr: *mut u8,
    pub(crate) len: usize,
}

/// The registered memory.
pub(crate) struct Region {
    memory: Arc<dyn KvMemory>,
}

impl Region {
    pub(crate) fn new(memory: Arc<dyn KvMemory>) -> Self {
        Self { memory }
    }

    pub(crate) fn block_bytes(&self) -> usize {
        self.memory.block_bytes()
    }

    /// The bytes of `count` blocks from `first`; None if they are not all inside.
    pub(crate) fn span(&self, first: BlockIndex, count: u32) -> Option<Span> {
        let end = first
            .checked_add(count)
            .filter(|&end| end <= self.memory.blocks())?;
        let bytes = self.memory.block_bytes();
        let (start, end) = (
            (first as usize).checked_mul(bytes)?,
            (end as usize).checked_mul(bytes)?,
        );
        // SAFETY: the offset is inside the region, which is one allocation and lives as long as `self`.
        let ptr = unsafe { self.memory.base().add(start) };
        Some(Span {
            ptr,
            len: end - start,
        })
    }

    /// Checksum of a run as one piece. The caller holds the run pinned: an offer that stands, or a read whose data
    /// has landed, so nobody writes it meanwhile.
    pub(crate) fn checksum(&self, key: TransferKey, index: u32, span: Span) -> u64 {
        // SAFETY: `span` came from `Self::span`, so it lies inside the region; the blocks are pinned for this
        // transfer, so no one writes them while they are read.
        block_checksum(key, index, unsafe { slice::from_raw_parts(span.ptr, span.len) })
    }

    /// Copies a whole piece into the run of blocks from `first`. False if it does not fit.
    pub(crate) fn write(&self, first: BlockIndex, bytes: &[u8]) -> bool {
        (first..)
            .zip(bytes.chunks(self.block_bytes()))
            .all(|(b, piece)| self.memory.write_from(b, 0, piece).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kv::HeapMemory;

    #[test]
    fn spans_stay_inside() {
        let region = Region::new(Arc::new(HeapMemory::new(4, 8)));
        let check = |first, count, want: Option<usize>| {
            assert_eq!(region.span(first, count).map(|span| span.len), want);
        };
        check(0, 4, Some(32));
        check(3, 1, Some(8));
        check(3, 2, None);
        check(u32::MAX, 1, None);
        assert!(region.write(2, &[7; 16]) && !region.write(3, &[7; 16]));
        let span = region.span(2, 1).unwrap();
        let key = TransferKey {
            gateway: 1,
            seq: 1,
            generation: 1,
        };
        assert_eq!(region.checksum(key, 0, span), block_checksum(key, 0, &[7; 8]));
    }
}
