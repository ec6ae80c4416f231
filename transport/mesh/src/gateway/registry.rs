//! One link per worker: who has it, and who must wait.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::link::{Core, DownReason};

/// The links of a gateway, by the worker's name.
#[derive(Debug, Default)]
pub(super) struct Registry {
    by_name: Mutex<BTreeMap<String, Entry>>,
}

#[derive(Debug)]
struct Entry {
    epoch: u64,
    /// Set once the link is made.
    link: Option<Arc<Core>>,
    /// Cancelled when the place is free again.
    gone: CancellationToken,
}

/// The answer to a claim.
pub(super) enum Claim {
    /// The place is the caller's until it drops this.
    Taken(Place),
    /// This very incarnation has a link that is alive.
    Duplicate,
    /// An older incarnation had it, and was just told to end. Claim again when this is cancelled.
    Wait(CancellationToken),
}

/// A worker's place. Dropped after the link's `Down` was said.
pub(super) struct Place {
    registry: Arc<Registry>,
    name: String,
    gone: CancellationToken,
}

impl Registry {
    fn with<R>(&self, f: impl FnOnce(&mut BTreeMap<String, Entry>) -> R) -> R {
        f(&mut self.by_name.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn claim(self: &Arc<Self>, name: &str, epoch: u64) -> Claim {
        self.with(|by_name| match by_name.get(name) {
            Some(entry) if entry.epoch == epoch => Claim::Duplicate,
            Some(entry) => {
                if let Some(link) = &entry.link {
                    link.end(DownReason::Replaced);
                }
                Claim::Wait(entry.gone.clone())
            }
            None => {
                let gone = CancellationToken::new();
                by_name.insert(
                    name.to_owned(),
                    Entry {
                        epoch,
                        link: None,
                        gone: gone.clone(),
                    },
                );
                Claim::Taken(Place {
                    registry: Arc::clone(self),
                    name: name.to_owned(),
                    gone,
                })
            }
        })
    }

    pub(super) fn links(&self) -> Vec<Arc<Core>> {
        self.with(|by_name| by_name.values().filter_map(|entry| entry.link.clone()).collect())
    }
}

impl Place {
    /// From now on the link can be told to end.
    pub(super) fn hold(&self, link: &Arc<Core>) {
        self.registry.with(|by_name| {
            if let Some(entry) = by_name.get_mut(&self.name) {
                entry.link = Some(Arc::clone(link));
            }
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.registry.with(|by_name| by_name.remove(&self.name));
        self.gone.cancel();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Claim, Registry};

    fn check(registry: &Arc<Registry>, epoch: u64, expected: &str) -> Claim {
        let claim = registry.claim("w", epoch);
        let got = match &claim {
            Claim::Taken(_) => "taken",
            Claim::Duplicate => "duplicate",
            Claim::Wait(_) => "wait",
        };
        assert_eq!(got, expected);
        claim
    }

    #[test]
    fn a_place_has_one_owner() {
        let registry = Arc::new(Registry::default());
        let first = check(&registry, 1, "taken");
        check(&registry, 1, "duplicate");
        let Claim::Wait(gone) = check(&registry, 2, "wait") else {
            return;
        };
        assert!(!gone.is_cancelled());
        drop(first);
        assert!(gone.is_cancelled());
        let _second = check(&registry, 2, "taken");
        check(&registry, 2, "duplicate");
    }
}
