//! What was injected, by kind.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Counts of injected faults, shared by all that inject. Cloning gives the same counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted(Arc<Mutex<BTreeMap<&'static str, u64>>>);

impl Counted {
    /// One more of this kind.
    pub(crate) fn add(&self, kind: &'static str) {
        self.add_many(kind, 1);
    }

    /// So many more of this kind.
    pub(crate) fn add_many(&self, kind: &'static str, count: u64) {
        if count > 0 {
            let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *counts.entry(kind).or_default() += count;
        }
    }

    /// So many more of these kinds.
    pub(crate) fn add_all(&self, counts: &BTreeMap<&'static str, u64>) {
        counts
            .iter()
            .for_each(|(kind, count)| self.add_many(kind, *count));
    }

    /// All kinds so far.
    #[must_use]
    pub(crate) fn all(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
