//! Memory for weights: large pieces of huge pages, of which each weight has its part.
//!
//! A forward pass reads every weight once. In pages of 4 KiB, finding out where they lie takes a good part of that time; in pages of
//! 2 MiB it takes none.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use engine::BackendError;

/// Bytes in a huge page.
const HUGE: usize = 2 << 20;
/// Bytes asked of the system at once, unless one weight needs more. What is never handed out is never touched.
const CHUNK: usize = 16 * HUGE;
/// Parts start at cache lines.
const LINE: usize = 64;

/// Hands out parts of chunks, one behind the other. A chunk is freed with the last of its parts.
#[derive(Default)]
pub(crate) struct Arena {
    current: Option<Arc<Chunk>>,
    used: usize,
}

struct Chunk {
    start: NonNull<u8>,
    layout: Layout,
}

/// Some bytes that start at a cache line.
pub(crate) struct Memory {
    chunk: Arc<Chunk>,
    at: usize,
    len: usize,
}

// SAFETY: plain memory; each byte belongs to at most one `Memory`, which lends it by the rules of references.
unsafe impl Send for Chunk {}
// SAFETY: as above; the fields never change.
unsafe impl Sync for Chunk {}

impl Arena {
    /// So many zero bytes.
    ///
    /// # Errors
    /// When there is not that much memory.
    pub(crate) fn zeroed(&mut self, len: usize) -> Result<Memory, BackendError> {
        let none = || BackendError(format!("no memory for {len} bytes of weights"));
        let room = len.checked_next_multiple_of(LINE).ok_or_else(none)?;
        let chunk = match &self.current {
            Some(chunk) if chunk.layout.size() - self.used >= room => Arc::clone(chunk),
            _ => {
                let chunk = Arc::new(Chunk::new(room.max(CHUNK)).ok_or_else(none)?);
                self.used = 0;
                self.current = Some(Arc::clone(&chunk));
                chunk
            }
        };
        let at = self.used;
        self.used += room;
        // SAFETY: inside the chunk, as it has room; nobody else was or will be given these bytes.
        unsafe { chunk.start.add(at).write_bytes(0, len) };
        Ok(Memory { chunk, at, len })
    }
}

impl Chunk {
    /// At least so many bytes of no particular value; never none.
    fn new(len: usize) -> Option<Self> {
        let layout = Layout::from_size_align(len.checked_next_multiple_of(HUGE)?, HUGE).ok()?;
        // SAFETY: the layout's size is not zero.
        let start = NonNull::new(unsafe { alloc(layout) })?;
        #[cfg(target_os = "linux")]
        // SAFETY: the chunk is ours, whole pages of it; the advice changes no byte. Where it is not taken, pages stay small.
        let _ = unsafe {
            rustix::mm::madvise(
                start.as_ptr().cast(),
                layout.size(),
                rustix::mm::Advice::LinuxHugepage,
            )
        };
        Some(Self { start, layout })
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout; every part holds the chunk.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

impl Deref for Memory {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        // SAFETY: bytes inside the chunk, set when they were handed out, and of this part alone.
        unsafe { std::slice::from_raw_parts(self.chunk.start.add(self.at).as_ptr(), self.len) }
    }
}

impl DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.chunk.start.add(self.at).as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_zero_aligned_and_disjoint() {
        let mut arena = Arena::default();
        let sizes = [1, 64, 0, 1000, CHUNK - 500, CHUNK + 1, 7];
        let mut parts: Vec<Memory> = sizes.iter().map(|&len| arena.zeroed(len).unwrap()).collect();
        for (part, len) in parts.iter_mut().zip(sizes) {
            assert_eq!(part.len(), len);
            assert_eq!(part.as_ptr().align_offset(LINE), 0);
            assert!(part.iter().all(|byte| *byte == 0));
            part.fill(1 + u8::try_from(len % 200).unwrap());
        }
        drop(arena);
        for (part, len) in parts.iter().zip(sizes) {
            assert!(part.iter().all(|byte| usize::from(*byte) == 1 + len % 200));
        }
    }

    #[test]
    fn too_much_is_refused() {
        for len in [usize::MAX, isize::MAX as usize - HUGE] {
            assert!(Arena::default().zeroed(len).is_err());
        }
    }
}
