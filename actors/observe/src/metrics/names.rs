//! Names as values of labels. They come from peers, so how many there are is bounded here: what is beyond is [`OTHER`].

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use room::NodeId;

use crate::event::Text;
use crate::roster::Roster;

/// What stands for every name that is beyond the bound, and for a worker that was never heard of.
const OTHER: &str = "other";

/// Workers told apart in the life of a process. Beyond that, which takes as many names and not as many restarts, they are counted together.
const WORKERS: usize = 256;

/// Pairs of workers told apart, each by what carried KV between them.
const PAIRS: usize = 1_024;

/// Transports told apart.
const TRANSPORTS: usize = 16;

/// Names that were met, each as the label that it has.
#[derive(Debug)]
pub(super) struct Names {
    roster: Roster,
    other: Text,
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    workers: BTreeSet<Text>,
    transports: BTreeSet<Text>,
    pairs: BTreeSet<(Text, Text, Text)>,
}

impl Names {
    /// Those of the workers in this roster.
    pub(super) fn new(roster: Roster) -> Self {
        Self {
            roster,
            other: OTHER.into(),
            known: RwLock::default(),
        }
    }

    fn read<R>(&self, f: impl FnOnce(&Known) -> R) -> R {
        f(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<R>(&self, f: impl FnOnce(&mut Known) -> R) -> R {
        f(&mut self.known.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// An incarnation is this worker's from now on. Gives the worker's label.
    pub(super) fn meet(&self, node: NodeId, name: &str) -> Text {
        self.roster.meet(node, name);
        self.worker(name)
    }

    /// The label of the worker with this incarnation.
    pub(super) fn of(&self, node: NodeId) -> Text {
        let name = self.roster.name(node);
        name.map_or_else(|| Arc::clone(&self.other), |name| self.worker(&name))
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

    /// The labels of a pair of workers: what is beyond the bound is from anybody to anybody.
    pub(super) fn pair(&self, from: NodeId, to: NodeId, transport: &Text) -> (Text, Text) {
        let pair = (self.of(from), self.of(to), Arc::clone(transport));
        let is_told = self.read(|known| known.pairs.contains(&pair));
        let fits = |known: &mut Known| {
            let fits = known.pairs.contains(&pair) || known.pairs.len() < PAIRS;
            if fits {
                known.pairs.insert(pair.clone());
            }
            fits
        };
        if is_told || self.write(fits) {
            return (pair.0, pair.1);
        }
        (Arc::clone(&self.other), Arc::clone(&self.other))
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

    use super::{Names, OTHER, PAIRS, TRANSPORTS, WORKERS};
    use crate::roster::Roster;

    fn names() -> Names {
        Names::new(Roster::default())
    }

    #[test]
    fn peers_cannot_make_up_names_without_end() {
        let names = names();
        let workers: BTreeSet<_> = (0..10_000)
            .map(|n| names.meet(NodeId(n), &format!("w{n}")))
            .collect();
        assert_eq!(workers.len(), WORKERS + 1);
        assert!(workers.contains(OTHER));
        assert_eq!(&*names.worker("w0"), "w0");
        assert_eq!(&*names.worker("w9999"), OTHER);
        let transports: BTreeSet<_> = (0..100).map(|n| names.transport(&format!("t{n}"))).collect();
        assert_eq!(transports.len(), TRANSPORTS + 1);
    }

    #[test]
    fn pairs_are_fewer_than_workers_could_make() {
        let names = names();
        for n in 0..100 {
            names.meet(NodeId(n), &format!("w{n}"));
        }
        let tcp = names.transport("tcp");
        let all = (0..100).flat_map(|from| (0..100).map(move |to| (NodeId(from), NodeId(to))));
        let pairs: BTreeSet<_> = all.map(|(from, to)| names.pair(from, to, &tcp)).collect();
        assert_eq!(pairs.len(), PAIRS + 1);
        // Whoever has labels keeps them.
        let (from, to) = names.pair(NodeId(3), NodeId(4), &tcp);
        assert_eq!((&*from, &*to), ("w3", "w4"));
        let (from, to) = names.pair(NodeId(99), NodeId(98), &tcp);
        assert_eq!((&*from, &*to), (OTHER, OTHER));
    }

    #[test]
    fn a_restarted_worker_keeps_its_label_and_the_old_incarnation_too() {
        let names = names();
        names.meet(NodeId(1), "decode-0");
        names.meet(NodeId(2), "decode-0");
        assert_eq!(&*names.of(NodeId(1)), "decode-0");
        assert_eq!(&*names.of(NodeId(2)), "decode-0");
        assert_eq!(&*names.of(NodeId(3)), OTHER);
    }
}
