//! What the mock found in its KV. Shared with whoever tests it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use engine::BlockIndex;

/// Findings kept; later ones are only counted.
const KEPT: usize = 64;

/// KV that is not what its sequence wrote there.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct Foreign {
    /// The step, the first being 1.
    pub step: u64,
    /// Index of the slice in that step's batch.
    pub slice: usize,
    /// Position in the sequence.
    pub position: u32,
    /// The block that holds the position.
    pub block: BlockIndex,
}

/// The record of all checks of one mock backend.
#[derive(Debug, Default)]
pub struct Canary {
    checked: AtomicU64,
    found: AtomicU64,
    kept: Mutex<Vec<Foreign>>,
}

impl Canary {
    /// Positions checked so far.
    #[must_use]
    pub fn checked(&self) -> u64 {
        self.checked.load(Relaxed)
    }

    /// Foreign positions found so far.
    #[must_use]
    pub fn found(&self) -> u64 {
        self.found.load(Relaxed)
    }

    /// The first foreign positions found.
    #[must_use]
    pub fn foreign(&self) -> Vec<Foreign> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn check(&self) {
        self.checked.fetch_add(1, Relaxed);
    }

    pub(crate) fn report(&self, foreign: Foreign) {
        self.found.fetch_add(1, Relaxed);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT {
            kept.push(foreign);
        }
    }
}
