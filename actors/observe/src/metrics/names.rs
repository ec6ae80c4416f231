//! Names as values of labels. They come from peers, so how many there are is bounded here: what is beyond is [`OTHER`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use room::NodeId;

use crate::event::Text;

/// What stands for every name that is beyond the bound, and for a worker that was never heard of.
const OTHER: &str = "other";

/// Workers told apart in the life of a process. Beyond that, which takes as many names and not as many restarts, they are counted together.
const WORKERS: usize = 256;

/// Incarnations whose names are remembered: of one that is gone there is still news.
const INCARNATIONS: usize = 1_024;

/// Transports told apart.
const TRANSPORTS: usize = 16;

/// Names that were met.
#[derive(Debug)]
pub(super) struct Names {
    other: Text,
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    workers: BTreeSet<Text>,
    transports: BTreeSet<Text>,
    incarnations: BTreeMap<NodeId, Text>,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            other: OTHER.into(),
            known: RwLock::default(),
        }
    }
}

impl Names {
    fn read<R>(&self, f: impl FnOnce(&Known) -> R) -> R {
        f(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<R>(&self, f: impl FnOnce(&mut Known) -> R) -> R {
        f(&mut self.known.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// An incarnation is this worker's from now on. Gives the worker's label.
    pub(super) fn meet(&self, node: NodeId, name: &str) -> Text {
        if let Some(label) = self.read(|known| {
            known
                .incarnations
                .get(&node)
                .filter(|label| ***label == *name)
                .cloned()
        }) {
            return label;
        }
        let label = self.worker(name);
        self.write(|known| {
            known.incarnations.insert(node, Arc::clone(&label));
            while known.incarnations.len() > INCARNATIONS {
                // The oldest: incarnations ascend with time.
                known.incarnations.pop_first();
            }
        });
        label
    }

    /// The label of the worker with this incarnation.
    pub(super) fn of(&self, node: NodeId) -> Text {
        let label = self.read(|known| known.incarnations.get(&node).cloned());
        label.unwrap_or_else(|| Arc::clone(&self.other))
    }

    /// The label of the worker of this name.
    pub(super) fn worker(&self, name: &str) -> Text {
        self.label(name, WORKERS, |known| &known.workers, |known| &mut known.workers)
    }

    /// The label of a transport.
    pub(super) fn transport(&self, name: &str) -> Text {
        self.label(
            name,
            TRANSPORTS,
            |known| &known.transports,
            |known| &mut known.transports,
        )
    }

    fn label(
        &self,
        name: &str,
        most: usize,
        of: impl Fn(&Known) -> &BTreeSet<Text>,
        of_mut: impl Fn(&mut Known) -> &mut BTreeSet<Text>,
    ) -> Text {
        if let Some(label) = self.read(|known| of(known).get(name).cloned()) {
            return label;
        }
        self.write(|known| {
            let names = of_mut(known);
            if names.len() >= most && !names.contains(name) {
                return Arc::clone(&self.other);
            }
            let label = Text::from(name);
            names.insert(Arc::clone(&label));
            label
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use room::NodeId;

    use super::{INCARNATIONS, Names, OTHER, TRANSPORTS, WORKERS};

    #[test]
    fn peers_cannot_make_up_names_without_end() {
        let names = Names::default();
        let workers: BTreeSet<_> = (0..10_000)
            .map(|n| names.meet(NodeId(n), &format!("w{n}")))
            .collect();
        assert_eq!(workers.len(), WORKERS + 1);
        assert!(workers.contains(OTHER));
        assert_eq!(&*names.worker("w0"), "w0");
        assert_eq!(&*names.worker("w9999"), OTHER);
        let transports: BTreeSet<_> = (0..100).map(|n| names.transport(&format!("t{n}"))).collect();
        assert_eq!(transports.len(), TRANSPORTS + 1);
        assert_eq!(names.read(|known| known.incarnations.len()), INCARNATIONS);
    }

    #[test]
    fn a_restarted_worker_keeps_its_label_and_the_old_incarnation_too() {
        let names = Names::default();
        names.meet(NodeId(1), "decode-0");
        names.meet(NodeId(2), "decode-0");
        assert_eq!(&*names.of(NodeId(1)), "decode-0");
        assert_eq!(&*names.of(NodeId(2)), "decode-0");
        assert_eq!(&*names.of(NodeId(3)), OTHER);
    }
}
