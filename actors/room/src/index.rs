//! Which worker holds the KV of which prefix, as far as a gateway has heard.
//!
//! An index of other nodes' caches is always a little old, and may be wrong. That costs time and nothing else: what is
//! really shared is decided by the worker's own ledger when it grants.
//!
//! Each worker numbers its changes within its incarnation, which its [`NodeId`] is. A number that was taken before changes
//! nothing; one that is missing is a gap: the caller asks that worker for all that it has ([`Ledger::contents`]), and
//! until that comes what is known of it stays as it is.
//!
//! [`Ledger::contents`]: crate::Ledger::contents

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{BlockHash, NodeId};
use crate::ledger::CacheChange;

/// What became of a change.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Taken {
    /// It is known now.
    Yes,
    /// It changes nothing: it was known, its worker is not, or all that its worker has is waited for.
    No,
    /// Changes are missing before it, or there are more contents than the worker has blocks: ask for all that it has.
    /// Said once.
    Gap,
}

/// The caches of all workers that are linked.
#[derive(Clone, Debug, Default)]
pub struct PrefixIndex {
    /// Who has the contents; each list is sorted and not empty.
    holders: BTreeMap<BlockHash, Vec<NodeId>>,
    workers: BTreeMap<NodeId, Known>,
}

#[derive(Clone, Debug)]
struct Known {
    /// The number of the next change; `None` while all that it has is waited for.
    next: Option<u64>,
    hashes: BTreeSet<BlockHash>,
    /// At most so many: its pool.
    blocks: usize,
}

impl PrefixIndex {
    /// A worker is linked that has so many blocks. Nothing is known of its cache, and its first change is number 0.
    pub fn worker_up(&mut self, node: NodeId, blocks: u32) {
        self.worker_down(node);
        let known = Known {
            next: Some(0),
            hashes: BTreeSet::new(),
            blocks: blocks as usize,
        };
        self.workers.insert(node, known);
    }

    /// A worker is gone, and what it had.
    pub fn worker_down(&mut self, node: NodeId) {
        if let Some(known) = self.workers.remove(&node) {
            for hash in known.hashes {
                self.no_holder(hash, node);
            }
        }
    }

    /// A worker's cache changed.
    pub fn apply(&mut self, node: NodeId, change: CacheChange) -> Taken {
        let Some(known) = self.workers.get_mut(&node) else {
            return Taken::No;
        };
        let Some(next) = known.next.filter(|next| change.seq >= *next) else {
            return Taken::No;
        };
        let is_new = change.stored && !known.hashes.contains(&change.hash);
        if change.seq > next || (is_new && known.hashes.len() >= known.blocks) {
            known.next = None;
            return Taken::Gap;
        }
        known.next = Some(next + 1);
        if is_new {
            known.hashes.insert(change.hash);
            self.holder(change.hash, node);
        } else if !change.stored && known.hashes.remove(&change.hash) {
            self.no_holder(change.hash, node);
        }
        Taken::Yes
    }

    /// All that a worker has, and the number of its next change after that.
    pub fn list(&mut self, node: NodeId, next: u64, hashes: &[BlockHash]) {
        let Some(blocks) = self.workers.get(&node).map(|known| known.blocks) else {
            return;
        };
        self.worker_down(node);
        let known = Known {
            next: Some(next),
            hashes: hashes.iter().take(blocks).copied().collect(),
            blocks,
        };
        for hash in &known.hashes {
            self.holder(*hash, node);
        }
        self.workers.insert(node, known);
    }

    /// How many of these blocks, from the first on, each worker has; only those that have one.
    #[must_use]
    pub fn overlaps(&self, hashes: &[BlockHash]) -> BTreeMap<NodeId, u32> {
        let mut overlaps = BTreeMap::new();
        let mut still: Vec<NodeId> = Vec::new();
        for (at, hash) in hashes.iter().enumerate() {
            let Some(holders) = self.holders.get(hash) else {
                break;
            };
            if at == 0 {
                still.clone_from(holders);
            } else {
                still.retain(|node| holders.binary_search(node).is_ok());
            }
            if still.is_empty() {
                break;
            }
            let depth = u32::try_from(at + 1).unwrap_or(u32::MAX);
            overlaps.extend(still.iter().map(|node| (*node, depth)));
        }
        overlaps
    }

    /// How many contents are known, counted once for each worker that has them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.workers.values().map(|known| known.hashes.len()).sum()
    }

    /// Whether no contents are known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.holders.is_empty()
    }

    fn holder(&mut self, hash: BlockHash, node: NodeId) {
        let holders = self.holders.entry(hash).or_default();
        if let Err(at) = holders.binary_search(&node) {
            holders.insert(at, node);
        }
    }

    fn no_holder(&mut self, hash: BlockHash, node: NodeId) {
        let Some(holders) = self.holders.get_mut(&hash) else {
            return;
        };
        holders.retain(|holder| *holder != node);
        if holders.is_empty() {
            self.holders.remove(&hash);
        }
    }
}
