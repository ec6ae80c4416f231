//! Disjoint parts of one output, written by several threads.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use crate::team::Team;

/// So many numbers, at least, are worth handing to another thread.
const GRAIN_NUMBERS: usize = 8_192;

/// Calls `work(i, chunk)` for the `i`th chunk of `len` numbers of `data`, on all threads of the team.
pub(crate) fn for_chunks(
    team: &mut Team,
    data: &mut [f32],
    len: usize,
    grain: usize,
    work: impl Fn(usize, &mut [f32]) + Sync,
) {
    let chunks = data.len().checked_div(len).unwrap_or(0);
    let output = Output::new(data);
    team.run(chunks, grain, &|i| {
        // SAFETY: the team runs every item once, and chunks of different items do not overlap.
        work(i, unsafe { output.part(i * len, len) });
    });
}

/// The grain for cheap work on chunks of `len` numbers.
pub(crate) fn cheap(len: usize) -> usize {
    (GRAIN_NUMBERS / len.max(1)).max(1)
}

/// A mutable slice that several threads may write to, each its own part.
pub(crate) struct Output<'a, T> {
    start: *mut T,
    len: usize,
    borrowed: PhantomData<&'a mut [T]>,
}

// SAFETY: parts are only handed out by the unsafe `part`, whose callers keep them disjoint.
unsafe impl<T: Send> Sync for Output<'_, T> {}

impl<'a, T> Output<'a, T> {
    pub(crate) fn new(data: &'a mut [T]) -> Self {
        Self {
            start: data.as_mut_ptr(),
            len: data.len(),
            borrowed: PhantomData,
        }
    }

    /// The elements `at..at + len`.
    ///
    /// # Safety
    /// Parts that are alive at the same time do not overlap.
    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "disjointness is the caller's promise")]
    pub(crate) unsafe fn part(&self, at: usize, len: usize) -> &mut [T] {
        assert!(
            at <= self.len && len <= self.len - at,
            "{len} elements at {at} of {}",
            self.len
        );
        // SAFETY: inside the borrowed slice, and the caller promises that no other part overlaps.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(at), len) }
    }
}
