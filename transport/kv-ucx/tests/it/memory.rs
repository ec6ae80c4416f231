//! A region that copies at memcpy's speed in a debug build, unlike `kv::HeapMemory`.

#![allow(unsafe_code)]

use std::{cell::UnsafeCell, ptr};

use kv::{BlockIndex, KvMemory, OutOfRange};

pub(crate) struct FastMemory {
    bytes: Box<[UnsafeCell<u8>]>,
    block_bytes: usize,
    blocks: u32,
}

// SAFETY: bytes are only copied; a test writes a block only while no transfer may use it, which is what it tests.
unsafe impl Sync for FastMemory {}

impl FastMemory {
    pub(crate) fn new(blocks: u32, block_bytes: usize) -> Self {
        let zeroed = vec![0u8; blocks as usize * block_bytes].into_boxed_slice();
        // SAFETY: UnsafeCell<u8> has the layout of u8.
        let bytes = unsafe { Box::from_raw(Box::into_raw(zeroed) as *mut [UnsafeCell<u8>]) };
        Self {
            bytes,
            block_bytes,
            blocks,
        }
    }

    fn at(&self, block: BlockIndex, offset: usize, len: usize) -> Result<*mut u8, OutOfRange> {
        if block >= self.blocks || offset.checked_add(len).is_none_or(|end| end > self.block_bytes) {
            let (blocks, block_bytes) = (self.blocks, self.block_bytes);
            return Err(OutOfRange {
                block,
                offset,
                len,
                blocks,
                block_bytes,
            });
        }
        Ok(self
            .base()
            .wrapping_add(block as usize * self.block_bytes + offset))
    }
}

impl KvMemory for FastMemory {
    fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    fn blocks(&self) -> u32 {
        self.blocks
    }

    fn base(&self) -> *mut u8 {
        UnsafeCell::raw_get(self.bytes.as_ptr())
    }

    fn read_into(&self, block: BlockIndex, offset: usize, bytes: &mut [u8]) -> Result<(), OutOfRange> {
        let from = self.at(block, offset, bytes.len())?;
        // SAFETY: checked to be inside; the two never overlap.
        unsafe { ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    fn write_from(&self, block: BlockIndex, offset: usize, bytes: &[u8]) -> Result<(), OutOfRange> {
        let to = self.at(block, offset, bytes.len())?;
        // SAFETY: as in `read_into`.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }
}
