//! One link per worker: who has it, and who must wait.

use std::cmp::Ordering;
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
    /// A newer incarnation waits for the place.
    replaced: bool,
    /// Cancelled when the place is free again.
    gone: CancellationToken,
}

/// The answer to a claim.
pub(super) enum Claim {
    /// The place is the caller's until it drops this.
    Taken(Place),
    /// It is not given, for this reason.
    Refused(String),
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

    /// A place for this incarnation of a worker, where it may have one and there are fewer than `most`.
    ///
    /// Only a newer incarnation replaces one whose link is alive. Two processes of one name would replace each other for ever; so the
    /// older one is refused, until the newer one's link is over. (A clock that went back makes a restarted worker look older: it is
    /// let in at the end of the lease at the latest.)
    pub(super) fn claim(self: &Arc<Self>, name: &str, epoch: u64, most: usize) -> Claim {
        self.with(|by_name| {
            if let Some(entry) = by_name.get_mut(name) {
                return entry.challenge(epoch);
            }
            // Everyone who hears of links tells them apart by incarnation.
            if let Some((other, _)) = by_name.iter().find(|(_, entry)| entry.epoch == epoch) {
                return Claim::Refused(format!(
                    "{other} is linked with this incarnation: each must have its own"
                ));
            }
            if by_name.len() >= most {
                return Claim::Refused(format!("this gateway has {most} links, and takes no more"));
            }
            let gone = CancellationToken::new();
            let entry = Entry {
                epoch,
                link: None,
                replaced: false,
                gone: gone.clone(),
            };
            by_name.insert(name.to_owned(), entry);
            Claim::Taken(Place {
                registry: Arc::clone(self),
                name: name.to_owned(),
                gone,
            })
        })
    }
}

impl Entry {
    /// The name is taken, by this.
    fn challenge(&mut self, epoch: u64) -> Claim {
        match epoch.cmp(&self.epoch) {
            Ordering::Equal => Claim::Refused(
                "this worker is linked to this gateway already, and that link is alive".to_owned(),
            ),
            Ordering::Less => Claim::Refused(
                "a newer incarnation of this name is linked: workers must have names of their own".to_owned(),
            ),
            Ordering::Greater => {
                self.replaced = true;
                if let Some(link) = &self.link {
                    link.end(DownReason::Replaced);
                }
                Claim::Wait(self.gone.clone())
            }
        }
    }
}

impl Place {
    /// From now on the link can be told to end.
    pub(super) fn hold(&self, link: &Arc<Core>) {
        self.registry.with(|by_name| {
            if let Some(entry) = by_name.get_mut(&self.name) {
                entry.link = Some(Arc::clone(link));
                if entry.replaced {
                    link.end(DownReason::Replaced);
                }
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

    /// Claims in a registry with three places. What is expected is part of the reason, where it is refused.
    #[track_caller]
    fn check(registry: &Arc<Registry>, name: &str, epoch: u64, expected: &str) -> Claim {
        let claim = registry.claim(name, epoch, 3);
        let got = match &claim {
            Claim::Taken(_) => "taken",
            Claim::Refused(reason) => reason,
            Claim::Wait(_) => "wait",
        };
        assert!(got.contains(expected), "{got} for {name} {epoch}");
        claim
    }

    #[test]
    fn a_place_has_one_owner() {
        let registry = Arc::new(Registry::default());
        let first = check(&registry, "w", 5, "taken");
        check(&registry, "w", 5, "linked to this gateway already");
        check(&registry, "w", 4, "a newer incarnation");
        let Claim::Wait(gone) = check(&registry, "w", 6, "wait") else {
            return;
        };
        assert!(!gone.is_cancelled());
        drop(first);
        assert!(gone.is_cancelled());
        let _second = check(&registry, "w", 6, "taken");
        check(&registry, "w", 5, "a newer incarnation");
    }

    #[test]
    fn incarnations_are_told_apart_and_counted() {
        let registry = Arc::new(Registry::default());
        let _a = check(&registry, "a", 1, "taken");
        check(&registry, "b", 1, "a is linked with this incarnation");
        let _b = check(&registry, "b", 2, "taken");
        let c = check(&registry, "c", 3, "taken");
        check(&registry, "d", 4, "has 3 links");
        check(&registry, "a", 5, "wait");
        drop(c);
        let _d = check(&registry, "d", 4, "taken");
    }
}
