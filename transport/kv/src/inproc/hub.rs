//! Who can be read from in this process.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use super::shared::Shared;
use crate::{KvError, SourceAddress};

const SCHEME: &str = "inproc:";

/// The meeting place of the [`crate::InProcess`] transfers of one process. Cloning gives the same hub.
#[derive(Clone, Default)]
pub struct Hub(Arc<Mutex<Members>>);

#[derive(Default)]
struct Members {
    last: u64,
    by_id: BTreeMap<u64, Weak<Shared>>,
}

impl Hub {
    /// An empty hub.
    pub fn new() -> Self {
        Self::default()
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn join(&self, shared: &Arc<Shared>) -> u64 {
        let mut members = self.members();
        members.last += 1;
        let id = members.last;
        members.by_id.insert(id, Arc::downgrade(shared));
        id
    }

    pub(super) fn leave(&self, id: u64) {
        self.members().by_id.remove(&id);
    }

    pub(super) fn find(&self, id: u64) -> Option<Arc<Shared>> {
        self.members().by_id.get(&id)?.upgrade()
    }

    pub(super) fn address(id: u64) -> SourceAddress {
        SourceAddress(format!("{SCHEME}{id}").into_bytes())
    }

    pub(super) fn parse(address: &SourceAddress) -> Result<u64, KvError> {
        std::str::from_utf8(&address.0)
            .ok()
            .and_then(|text| text.strip_prefix(SCHEME)?.parse().ok())
            .ok_or_else(|| KvError::BadAddress(format!("{address:?}, must be {SCHEME}<number>")))
    }
}
