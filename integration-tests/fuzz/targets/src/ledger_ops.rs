//! Lists of operations on a worker's ledger, against a model that knows who may touch what, and what is in every block.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use room::{Ask, Attempt, BlockHash, BlockId, Closed, Generation, Hold, Ledger, NodeId, Refusal, RoomId};

/// The first two bytes are the size of the pool and of its memory of rooms; then every four bytes are one operation.
///
/// # Panics
/// Where the four counts do not add up (INV-02) or are not what the model counts; a block is given to be written while somebody has it
/// (INV-01), or to be shared with other contents than were asked for; a stale attempt is granted (INV-07); a refusal changes
/// something; a proof is believed that was not owed; or not all comes back in the end (INV-08).
pub fn ledger_ops(data: &[u8]) {
    let [blocks, rooms, ops @ ..] = data else {
        return;
    };
    let blocks = 1 + u32::from(*blocks) % 16;
    let mut model = Model {
        ledger: Ledger::new(blocks, 1 + usize::from(*rooms) % 8),
        leases: BTreeMap::new(),
        contents: BTreeMap::new(),
        newest: VecDeque::new(),
        rooms: 1 + usize::from(*rooms) % 8,
    };
    for op in ops.chunks_exact(4).take(1_000) {
        model.run([op[0], op[1], op[2], op[3]]);
        model.check(blocks);
    }
    model.end(blocks);
}

/// A lease as the model sees it; gone with its last hold.
struct Lease {
    blocks: Vec<BlockId>,
    hashes: Vec<BlockHash>,
    /// Leading blocks that are only read from now on.
    complete: usize,
    holds: BTreeSet<Hold>,
    open: bool,
}

struct Model {
    ledger: Ledger,
    leases: BTreeMap<Attempt, Lease>,
    /// What is in the blocks that were completed, until they are given to be written.
    contents: BTreeMap<BlockId, BlockHash>,
    /// The newest generation of each of the last `rooms` rooms, in the order in which these first came.
    newest: VecDeque<Attempt>,
    rooms: usize,
}

fn attempt(byte: u8) -> Attempt {
    Attempt {
        room: RoomId {
            gateway: NodeId(u64::from(byte >> 7)),
            seq: u64::from(byte >> 3 & 15),
        },
        generation: Generation(u32::from(byte & 7)),
    }
}

impl Model {
    fn run(&mut self, [kind, who, a, b]: [u8; 4]) {
        let about = attempt(who);
        let hold = Hold::ALL[usize::from(a) % 3];
        match kind % 6 {
            0 => self.grant(about, a, b),
            1 => self.grow(about, u32::from(a) % 6),
            2 => {
                let held = self.ledger.hold(about, hold);
                let lease = self.leases.get_mut(&about).filter(|lease| lease.open);
                assert_eq!(held, lease.is_some());
                lease.into_iter().for_each(|lease| {
                    lease.holds.insert(hold);
                });
            }
            3 => {
                let released = self.ledger.release(about, hold);
                let lease = self.leases.get_mut(&about);
                assert_eq!(released, lease.is_some_and(|lease| lease.holds.remove(&hold)));
            }
            4 => self.complete(about, u32::from(a) % 20),
            _ => self.close(about),
        }
        self.leases
            .retain(|_, lease| lease.open || !lease.holds.is_empty());
    }

    fn grant(&mut self, about: Attempt, a: u8, b: u8) {
        let (blocks, text) = (u32::from(a) % 20, u128::from(b & 3));
        let shareable = u32::from(b >> 2) % 20;
        // Names are of the whole text so far, so two texts share none; how many are known is the asker's affair.
        let known = u128::from(blocks).saturating_sub(u128::from(b >> 6));
        let hashes: Vec<_> = (0..known).map(|at| BlockHash(text * 100 + at)).collect();
        let before = self.ledger.occupancy();
        let stale = self.is_stale(about);
        assert_eq!(self.ledger.is_stale(about), stale, "INV-07: {about}");
        let asked = Ask {
            blocks,
            shareable,
            hashes: hashes.clone(),
        };
        let grant = match self.ledger.grant(about, &asked) {
            Ok(grant) => grant,
            Err(refusal) => {
                assert_eq!(self.ledger.occupancy(), before, "{refusal:?} changes something");
                assert_eq!(refusal == Refusal::Stale, stale, "{about}: {refusal:?}");
                let fits = blocks <= before.total && blocks <= before.free + before.cached;
                return assert!(stale || !fits, "{blocks} of {before:?}: {refusal:?}");
            }
        };
        assert!(!stale, "INV-07: {about} was here");
        self.remember(about);
        assert_eq!(grant.blocks.len(), blocks as usize);
        assert!(grant.cached <= shareable.min(blocks));
        let (shared, fresh) = grant.blocks.split_at(grant.cached as usize);
        self.written(about, fresh);
        for (block, hash) in shared.iter().zip(&hashes) {
            assert_eq!(
                self.contents.get(block),
                Some(hash),
                "{about} is to read {block:?}"
            );
        }
        let lease = Lease {
            complete: shared.len(),
            blocks: grant.blocks,
            hashes,
            holds: BTreeSet::new(),
            open: true,
        };
        self.leases.insert(about, lease);
    }

    fn is_stale(&self, about: Attempt) -> bool {
        let outdates = |seen: &Attempt| seen.room == about.room && seen.generation >= about.generation;
        self.leases.contains_key(&about) || self.newest.iter().any(outdates)
    }

    fn remember(&mut self, about: Attempt) {
        if let Some(seen) = self.newest.iter_mut().find(|seen| seen.room == about.room) {
            return *seen = about;
        }
        if self.newest.len() == self.rooms {
            self.newest.pop_front();
        }
        self.newest.push_back(about);
    }

    fn grow(&mut self, about: Attempt, n: u32) {
        let before = self.ledger.occupancy();
        let open = self.leases.get(&about).is_some_and(|lease| lease.open);
        match self.ledger.grow(about, n) {
            Ok(blocks) => {
                assert!(open && blocks.len() == n as usize);
                self.written(about, &blocks);
                self.leases.get_mut(&about).unwrap().blocks.extend(blocks);
            }
            Err(refusal) => {
                assert_eq!(self.ledger.occupancy(), before, "{refusal:?} changes something");
                assert_eq!(refusal == Refusal::Stale, !open);
            }
        }
    }

    /// These are given to be written: nobody else may have one of them, and what was in them is gone.
    fn written(&mut self, about: Attempt, blocks: &[BlockId]) {
        for (other, lease) in &self.leases {
            let taken = blocks.iter().find(|block| lease.blocks.contains(block));
            assert_eq!(taken, None, "INV-01: {about} gets what {other} has");
        }
        let distinct: BTreeSet<_> = blocks.iter().collect();
        assert_eq!(distinct.len(), blocks.len(), "a block twice: {blocks:?}");
        self.contents.retain(|block, _| !distinct.contains(block));
    }

    fn complete(&mut self, about: Attempt, full: u32) {
        self.ledger.complete(about, full);
        let Some(lease) = self.leases.get_mut(&about).filter(|lease| lease.open) else {
            return;
        };
        let end = (full as usize).min(lease.blocks.len()).min(lease.hashes.len());
        for at in lease.complete..end {
            self.contents.insert(lease.blocks[at], lease.hashes[at]);
        }
        lease.complete = lease.complete.max(end);
    }

    fn close(&mut self, about: Attempt) {
        let lease = self.leases.get_mut(&about).filter(|lease| lease.open);
        let expected = match &lease {
            None => Closed::Unknown,
            Some(lease) if lease.holds.is_empty() => Closed::Returned,
            Some(_) => Closed::Quarantined,
        };
        assert_eq!(self.ledger.close(about), expected, "{about}");
        lease.into_iter().for_each(|lease| lease.open = false);
    }

    fn check(&self, blocks: u32) {
        let now = self.ledger.occupancy();
        assert!(now.adds_up() && now.total == blocks, "INV-02: {now:?}");
        self.ledger.audit().unwrap();
        let of = |open: bool| -> BTreeSet<BlockId> {
            let leases = self.leases.values().filter(|lease| lease.open == open);
            leases.flat_map(|lease| lease.blocks.iter().copied()).collect()
        };
        let (leased, closed) = (of(true), of(false));
        assert_eq!(now.leased as usize, leased.len(), "{now:?}");
        assert_eq!(
            now.quarantined as usize,
            closed.difference(&leased).count(),
            "{now:?}"
        );
        for (about, lease) in &self.leases {
            assert_eq!(self.ledger.blocks(*about), lease.blocks, "{about}");
            assert_eq!(
                self.ledger.holds(*about).iter().collect::<BTreeSet<_>>(),
                lease.holds
            );
            assert!(lease.blocks.iter().all(|block| block.0 < blocks));
        }
    }

    /// Everybody closes, every proof comes: the pool is as it was.
    fn end(mut self, blocks: u32) {
        for (about, lease) in std::mem::take(&mut self.leases) {
            self.ledger.close(about);
            for hold in &lease.holds {
                assert!(self.ledger.release(about, *hold), "{about}: {hold:?}");
            }
        }
        let now = self.ledger.occupancy();
        assert!(now.is_quiescent() && now.adds_up(), "INV-08: {now:?}");
        let newcomer = RoomId {
            gateway: NodeId(9),
            seq: 0,
        };
        let about = Attempt {
            room: newcomer,
            generation: Generation::FIRST,
        };
        let asked = Ask {
            blocks,
            ..Ask::default()
        };
        assert_eq!(
            self.ledger.grant(about, &asked).unwrap().blocks.len(),
            blocks as usize
        );
    }
}
