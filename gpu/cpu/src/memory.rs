//! Memory for weights.

use std::ops::{Deref, DerefMut};

/// Bytes in a cache line.
const LINE: usize = 64;

/// Bytes that start at a cache line.
pub(crate) struct Memory {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Memory {
    pub(crate) fn zeroed(len: usize) -> Self {
        let bytes = vec![0; len + LINE - 1];
        let start = bytes.as_ptr().align_offset(LINE).min(LINE - 1);
        Self { bytes, start, len }
    }
}

impl Deref for Memory {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..][..self.len]
    }
}

impl DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..][..self.len]
    }
}
