//! One zeroed, page-aligned region of memory that is shared by raw address: with kernels, with the transfer thread, with UCX.
//!
//! The only unsafe code of this crate. The region checks bounds and lifetime; it cannot check *who* touches a byte when. That is
//! the ledger's promise: at any time a block is written by at most one holder, and not read by others while it is written.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

/// What the base is aligned to, in bytes: a page, so that a transport can register it.
pub(crate) const ALIGNMENT: usize = 4096;

/// Alignment asked of the allocator. Small, so that zeroed memory comes untouched from the kernel (an over-aligned request would be
/// zeroed by hand, which commits every page at start-up); the base is aligned within.
const ALLOCATION_ALIGNMENT: usize = 16;

/// The region. Freed when dropped.
pub(crate) struct Region {
    allocation: NonNull<u8>,
    layout: Layout,
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a region is plain memory without thread affinity; the fields are never changed after construction.
unsafe impl Send for Region {}
// SAFETY: as above; concurrent access to the same bytes is excluded by the ledger (see the module's documentation).
unsafe impl Sync for Region {}

impl Region {
    /// `len` zero bytes, or `None` if there is not that much memory (or `len` is zero or absurd).
    pub(crate) fn zeroed(len: usize) -> Option<Self> {
        if len == 0 {
            return None;
        }
        let layout = Layout::from_size_align(len.checked_add(ALIGNMENT)?, ALLOCATION_ALIGNMENT).ok()?;
        // SAFETY: the layout's size is not zero.
        let allocation = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let padding = allocation.as_ptr().align_offset(ALIGNMENT);
        if padding > ALIGNMENT {
            // SAFETY: allocated just above with this layout, and not handed out.
            unsafe { dealloc(allocation.as_ptr(), layout) };
            return None;
        }
        // SAFETY: `padding + len <= len + ALIGNMENT`, the size of the allocation.
        let base = unsafe { allocation.add(padding) };
        Some(Self {
            allocation,
            layout,
            base,
            len,
        })
    }

    /// Address of the first byte.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Address of the byte at `offset`.
    ///
    /// # Panics
    /// When `len` bytes from `offset` are not inside the region.
    pub(crate) fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(
            self.contains(offset, len),
            "offset {offset} + {len} is outside a region of {} bytes",
            self.len
        );
        self.base().wrapping_add(offset)
    }

    /// Copies `bytes.len()` bytes from `offset` out. False if they are not all inside; nothing is copied then.
    #[must_use]
    pub(crate) fn copy_out(&self, offset: usize, bytes: &mut [u8]) -> bool {
        if !self.contains(offset, bytes.len()) {
            return false;
        }
        // SAFETY: in bounds (checked), and `bytes` is an exclusive borrow of other memory. Nobody writes these bytes now: module docs.
        unsafe {
            self.base()
                .add(offset)
                .copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len());
        };
        true
    }

    /// Copies `bytes` in at `offset`. False if they do not fit; nothing is copied then.
    #[must_use]
    pub(crate) fn copy_in(&self, offset: usize, bytes: &[u8]) -> bool {
        if !self.contains(offset, bytes.len()) {
            return false;
        }
        // SAFETY: in bounds (checked); a safe `&[u8]` cannot overlap the region, which never lends a reference. Nobody else
        // touches these bytes now: module docs.
        unsafe {
            self.base()
                .add(offset)
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        };
        true
    }

    fn contains(&self, offset: usize, len: usize) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.len)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: allocated in `zeroed` with this layout; nothing borrows from a region, and whoever holds an address also holds
        // the `Arc` that keeps it alive.
        unsafe { dealloc(self.allocation.as_ptr(), self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::{ALIGNMENT, Region};

    #[test]
    fn is_aligned_zeroed_and_keeps_what_is_written() {
        let region = Region::zeroed(10_000).unwrap();
        assert_eq!(region.base() as usize % ALIGNMENT, 0);
        let mut all = vec![1_u8; 10_000];
        assert!(region.copy_out(0, &mut all));
        assert!(all.iter().all(|&byte| byte == 0));
        assert!(region.copy_in(9_990, &[7; 10]));
        assert!(region.copy_out(9_989, &mut all[..11]));
        assert_eq!(all[..11], [0, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7]);
    }

    #[test]
    fn refuses_what_is_outside_and_copies_nothing() {
        let region = Region::zeroed(100).unwrap();
        let mut out = [9_u8; 2];
        for offset in [99, 100, usize::MAX] {
            assert!(!region.copy_in(offset, &[1, 1]), "{offset}");
            assert!(!region.copy_out(offset, &mut out), "{offset}");
        }
        assert_eq!(out, [9, 9]);
        assert!(region.copy_out(98, &mut out));
        assert_eq!(out, [0, 0]);
    }

    #[test]
    fn gives_none_for_nothing_and_for_too_much() {
        assert!(Region::zeroed(0).is_none());
        assert!(Region::zeroed(usize::MAX - 10).is_none());
        assert!(Region::zeroed(isize::MAX as usize - ALIGNMENT - 4096).is_none());
    }
}
