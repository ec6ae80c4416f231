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

#[cfg(test)]
mod tests {
    use super::*;

    /// A region of 3 blocks of 8 bytes, of which block 1 holds 1 to 8.
    fn memory() -> HeapMemory {
        let memory = HeapMemory::new(3, 8);
        memory.write_from(1, 0, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        memory
    }

    fn check(block: u32, offset: usize, len: usize, want: Option<&[u8]>) {
        let (memory, mut got) = (memory(), vec![0xff; len]);
        let beyond = OutOfRange {
            block,
            offset,
            len,
            blocks: 3,
            block_bytes: 8,
        };
        let wrote = memory.write_from(block, offset, &got);
        assert_eq!(wrote, want.map(|_| ()).ok_or(beyond));
        let (memory, want) = (self::memory(), want.ok_or(beyond));
        let read = memory.read_into(block, offset, &mut got);
        assert_eq!(read.map(|()| got.as_slice()), want);
    }

    #[test]
    fn a_range_is_inside_its_block_or_is_none() {
        check(1, 0, 8, Some(&[1, 2, 3, 4, 5, 6, 7, 8]));
        check(1, 2, 3, Some(&[3, 4, 5]));
        check(1, 8, 0, Some(&[]));
        check(2, 7, 1, Some(&[0]));
        // The next block's byte, and none of the region's.
        check(1, 7, 2, None);
        check(2, 7, 2, None);
        check(3, 0, 1, None);
        check(3, 0, 0, None);
        check(0, usize::MAX, 2, None);
    }

    #[test]
    fn what_is_written_lands_there_and_nowhere_else() {
        let memory = memory();
        memory.write_from(1, 2, &[9, 9]).unwrap();
        let mut all = [0; 24];
        for (block, bytes) in (0..).zip(all.chunks_mut(8)) {
            memory.read_into(block, 0, bytes).unwrap();
        }
        let mut want = [0; 24];
        want[8..16].copy_from_slice(&[1, 2, 9, 9, 5, 6, 7, 8]);
        assert_eq!(all, want);
    }

    /// As those rely on who send and receive in place.
    #[test]
    fn a_block_is_at_its_multiple_from_the_base() {
        let memory = memory();
        for (block, offset) in [(0, 0), (1, 0), (2, 5)] {
            let place = memory.range(block, offset, 1).unwrap().as_ptr();
            let from_base = memory.base().wrapping_add(block as usize * 8 + offset);
            assert_eq!(place.cast::<u8>(), from_base.cast_const());
        }
    }
}
