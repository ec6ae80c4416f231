//! One block, and the one place where it moves from one state to another.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{BlockHash, BlockId};
use crate::ledger::feed::Feed;
use crate::ledger::occupancy::Occupancy;

/// What a block is. Follows from its counts: it is never stored.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
enum State {
    Free,
    Leased,
    Cached,
    Quarantined,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    /// Open leases that have the block.
    pub(super) leases: u32,
    /// Closed leases of the block that still have a hold.
    pub(super) pins: u32,
    /// The name of its contents, once they are complete.
    hash: Option<BlockHash>,
    /// When it was last given back, as a count; orders the cache.
    last_used: u64,
}

impl Block {
    fn state(&self) -> State {
        match (self.leases, self.pins, self.hash) {
            (1.., _, _) => State::Leased,
            (0, 1.., _) => State::Quarantined,
            (0, 0, Some(_)) => State::Cached,
            (0, 0, None) => State::Free,
        }
    }
}

/// All blocks of a pool, with an index by state and one by contents that [`Blocks::change`] keeps true.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    all: Vec<Block>,
    free: BTreeSet<BlockId>,
    /// Least recently used first.
    cached: BTreeSet<(u64, BlockId)>,
    leased: u32,
    quarantined: u32,
    by_hash: BTreeMap<BlockHash, BlockId>,
    clock: u64,
    /// What becomes of names, for who follows it.
    pub(super) feed: Feed,
}

impl Blocks {
    pub(super) fn new(total: u32) -> Self {
        Self {
            all: (0..total).map(|_| Block::default()).collect(),
            free: (0..total).map(BlockId).collect(),
            cached: BTreeSet::new(),
            leased: 0,
            quarantined: 0,
            by_hash: BTreeMap::new(),
            clock: 0,
            feed: Feed::default(),
        }
    }

    pub(super) fn occupancy(&self) -> Occupancy {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Occupancy {
            total: count(self.all.len()),
            free: count(self.free.len()),
            leased: self.leased,
            cached: count(self.cached.len()),
            quarantined: self.quarantined,
        }
    }

    /// Blocks that could be taken now.
    pub(super) fn available(&self) -> u32 {
        let occupancy = self.occupancy();
        occupancy.free + occupancy.cached
    }

    pub(super) fn get(&self, id: BlockId) -> &Block {
        &self.all[id.0 as usize]
    }

    pub(super) fn named(&self, hash: &BlockHash) -> Option<BlockId> {
        self.by_hash.get(hash).copied()
    }

    /// The names of all contents that are here.
    pub(super) fn names(&self) -> impl Iterator<Item = BlockHash> {
        self.by_hash.keys().copied()
    }

    pub(super) fn is_cached(&self, id: BlockId) -> bool {
        self.get(id).state() == State::Cached
    }

    /// Takes `n` blocks for one new lease each, lowest numbers first so that runs stay contiguous, and emptying the
    /// cache from its old end when free ones run out. The caller has checked [`Blocks::available`].
    pub(super) fn take(&mut self, n: u32) -> Vec<BlockId> {
        while (self.free.len() as u64) < u64::from(n) {
            let Some(&(_, oldest)) = self.cached.first() else {
                break;
            };
            self.forget(oldest);
        }
        let taken: Vec<BlockId> = self.free.iter().take(n as usize).copied().collect();
        for &id in &taken {
            self.change(id, |block| block.leases += 1);
        }
        taken
    }

    /// Says that the contents of `id` are complete and are those that `hash` names. The first block of that name keeps
    /// it: a second copy stays nameless and is freed when it comes back.
    pub(super) fn name(&mut self, id: BlockId, hash: BlockHash) {
        if self.get(id).hash.is_none() && !self.by_hash.contains_key(&hash) {
            self.by_hash.insert(hash, id);
            self.feed.push(hash, true);
            self.change(id, |block| block.hash = Some(hash));
        }
    }

    /// Takes the name from a block, if it has one: it is not cached any more.
    pub(super) fn forget(&mut self, id: BlockId) {
        if let Some(hash) = self.get(id).hash {
            self.by_hash.remove(&hash);
            self.feed.push(hash, false);
        }
        self.change(id, |block| block.hash = None);
    }

    /// The only code that changes a block: whatever `edit` does, the block leaves the index of the state it was in and
    /// enters that of the state it is in now.
    pub(super) fn change(&mut self, id: BlockId, edit: impl FnOnce(&mut Block)) {
        let Some(block) = self.all.get_mut(id.0 as usize) else {
            return;
        };
        match block.state() {
            State::Free => drop(self.free.remove(&id)),
            State::Cached => drop(self.cached.remove(&(block.last_used, id))),
            State::Leased => self.leased -= 1,
            State::Quarantined => self.quarantined -= 1,
        }
        edit(block);
        self.clock += 1;
        block.last_used = self.clock;
        match block.state() {
            State::Free => drop(self.free.insert(id)),
            State::Cached => drop(self.cached.insert((block.last_used, id))),
            State::Leased => self.leased += 1,
            State::Quarantined => self.quarantined += 1,
        }
        debug_assert!(self.occupancy().adds_up(), "INV-02: {:?}", self.occupancy());
    }

    /// Counts everything anew and compares with the indices. Slow; for tests.
    pub(super) fn audit(&self) -> Result<(), String> {
        let counted = |state: State| self.all.iter().filter(|block| block.state() == state).count();
        let pairs = [
            ("free", counted(State::Free), self.free.len()),
            ("leased", counted(State::Leased), self.leased as usize),
            ("cached", counted(State::Cached), self.cached.len()),
            (
                "quarantined",
                counted(State::Quarantined),
                self.quarantined as usize,
            ),
            (
                "named",
                self.all.iter().filter(|block| block.hash.is_some()).count(),
                self.by_hash.len(),
            ),
        ];
        match pairs.iter().find(|(_, counted, kept)| counted != kept) {
            Some((what, counted, kept)) => Err(format!("{what}: counted {counted}, kept {kept}")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
impl Blocks {
    /// Makes one of its counts wrong, for who has to find that.
    pub(super) fn miscount(&mut self) {
        self.leased += 1;
    }
}
