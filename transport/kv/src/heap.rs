//! Plain memory on the heap, for tests and measurements.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::{BlockIndex, KvMemory, OutOfRange};

/// Zeroed blocks on the heap. Bytes are atomics, so that concurrent access by a transfer is defined.
pub struct HeapMemory {
    bytes: Box<[AtomicU8]>,
    block_bytes: usize,
    blocks: u32,
}

impl HeapMemory {
    /// `blocks` blocks of `block_bytes` bytes.
    pub fn new(blocks: u32, block_bytes: usize) -> Self {
        let len = blocks as usize * block_bytes;
        Self {
            bytes: (0..len).map(|_| AtomicU8::new(0)).collect(),
            block_bytes,
            blocks,
        }
    }

    fn range(&self, block: BlockIndex, offset: usize, len: usize) -> Result<&[AtomicU8], OutOfRange> {
        let end = offset.checked_add(len);
        if block >= self.blocks || end.is_none_or(|end| end > self.block_bytes) {
            let (blocks, block_bytes) = (self.blocks, self.block_bytes);
            return Err(OutOfRange {
                block,
                offset,
                len,
                blocks,
                block_bytes,
            });
        }
        let start = block as usize * self.block_bytes + offset;
        Ok(&self.bytes[start..start + len])
    }
}

impl KvMemory for HeapMemory {
    fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    fn blocks(&self) -> u32 {
        self.blocks
    }

    fn base(&self) -> *mut u8 {
        self.bytes.as_ptr().cast::<u8>().cast_mut()
    }

    fn read_into(&self, block: BlockIndex, offset: usize, bytes: &mut [u8]) -> Result<(), OutOfRange> {
        let from = self.range(block, offset, bytes.len())?;
        for (to, from) in bytes.iter_mut().zip(from) {
            *to = from.load(Ordering::Relaxed);
        }
        Ok(())
    }

    fn write_from(&self, block: BlockIndex, offset: usize, bytes: &[u8]) -> Result<(), OutOfRange> {
        let to = self.range(block, offset, bytes.len())?;
        for (to, from) in to.iter().zip(bytes) {
            to.store(*from, Ordering::Relaxed);
        }
        Ok(())
    }
}
