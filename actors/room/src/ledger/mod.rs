//! The [`Ledger`]: who has which blocks of one worker's pool. The only code that changes a lease.
//!
//! Every block is in exactly one of four states, and free + leased + cached + quarantined = pool, always (INV-02):
//!
//! ```text
//!            grant, grow             close, and somebody holds it
//!   ┌──────┐ ──────────▶ ┌────────┐ ────────────────────────────▶ ┌─────────────┐
//!   │ free │             │ leased │                               │ quarantined │
//!   └──────┘ ◀────────── └────────┘ ◀──────────────────────────── └─────────────┘
//!       ▲      close       │    ▲        grant shares it                  │
//!       │                  │    │                                         │ last proof
//!       │ emptied     close│    │ grant shares it                         ▼
//!       │ for others       ▼    │                            cached if it has a name,
//!       │                ┌────────┐                          else free: as with `close`
//!       └─────────────── │ cached │
//!                        └────────┘
//! ```
//!
//! A *hold* says that somebody may touch the blocks: the engine, a read of ours, or a peer that reads what we offer. It is
//! taken before that somebody is told to start and released by proof that it stopped, never by a clock. Closing a lease
//! ends the attempt's right to its blocks; blocks under a hold stay out of everyone's reach until the last hold is gone.
//!
//! A block whose contents are complete carries their name, a [`BlockHash`](crate::BlockHash), and can be leased to
//! several attempts at once; such a block is only ever read. So a quarantined one can be shared too: what the hold
//! forbids is to empty it. A hold covers its whole lease, shared blocks included, because the engine and peers read those.

mod block;
mod feed;
mod hold;
mod lease;
mod occupancy;
mod tombstones;

use std::collections::BTreeMap;

use crate::id::{Attempt, BlockHash, BlockId};
use crate::outcome::Refusal;

use block::Blocks;
pub use feed::CacheChange;
pub use hold::{Hold, Holds};
use lease::Lease;
pub use lease::{Ask, Closed, Grant};
pub use occupancy::Occupancy;
use tombstones::Tombstones;

/// The leases of one worker's pool.
#[derive(Clone, Debug)]
pub struct Ledger {
    blocks: Blocks,
    leases: BTreeMap<Attempt, Lease>,
    tombstones: Tombstones,
}

impl Ledger {
    /// A pool of `blocks` free blocks that remembers the last `tombstones` rooms.
    #[must_use]
    pub fn new(blocks: u32, tombstones: usize) -> Self {
        Self {
            blocks: Blocks::new(blocks),
            leases: BTreeMap::new(),
            tombstones: Tombstones::new(tombstones),
        }
    }

    /// Leases blocks to an attempt, sharing the longest run of leading blocks whose contents are here already.
    ///
    /// # Errors
    /// [`Refusal::Stale`] for a generation that was leased before or is older than one that was,
    /// [`Refusal::TooLarge`] for more blocks than the pool has, [`Refusal::NoBlocks`] if too few can be had now.
    /// Nothing has changed then.
    pub fn grant(&mut self, attempt: Attempt, ask: &Ask) -> Result<Grant, Refusal> {
        if self.is_stale(attempt) {
            return Err(Refusal::Stale);
        }
        if ask.blocks > self.blocks.occupancy().total {
            return Err(Refusal::TooLarge);
        }
        let shareable = ask.shareable.min(ask.blocks) as usize;
        let mut blocks: Vec<BlockId> = ask
            .hashes
            .iter()
            .take(shareable)
            .map_while(|hash| self.blocks.named(hash))
            .collect();
        let shared = blocks.len();
        // Cached blocks that are about to be shared cannot also be evicted to make room.
        let spared = blocks.iter().filter(|id| self.blocks.is_cached(**id)).count();
        let fresh = ask.blocks - u32::try_from(shared).unwrap_or(ask.blocks);
        if u64::from(fresh) + spared as u64 > u64::from(self.blocks.available()) {
            return Err(Refusal::NoBlocks);
        }
        for &id in &blocks {
            self.blocks.change(id, |block| block.leases += 1);
        }
        blocks.extend(self.blocks.take(fresh));
        let cached = ask.blocks - fresh;
        let hashes = ask.hashes.iter().take(ask.blocks as usize).copied().collect();
        let lease = Lease {
            blocks: blocks.clone(),
            cached,
            hashes,
            complete: shared,
            holds: Holds::NONE,
            closed: false,
        };
        self.leases.insert(attempt, lease);
        self.tombstones.remember(attempt);
        if planted!(CachedBeforeComputed) {
            self.complete(attempt, u32::MAX);
        }
        Ok(Grant { blocks, cached })
    }

    /// Adds `n` blocks to the end of an open lease. Whoever holds the lease holds them too.
    ///
    /// # Errors
    /// [`Refusal::Stale`] if the attempt has no open lease, [`Refusal::TooLarge`] if the lease would outgrow the pool,
    /// [`Refusal::NoBlocks`] if too few can be had now. Nothing has changed then.
    pub fn grow(&mut self, attempt: Attempt, n: u32) -> Result<Vec<BlockId>, Refusal> {
        let Some(lease) = self.leases.get_mut(&attempt).filter(|lease| !lease.closed) else {
            return Err(Refusal::Stale);
        };
        if lease.blocks.len() as u64 + u64::from(n) > u64::from(self.blocks.occupancy().total) {
            return Err(Refusal::TooLarge);
        }
        if n > self.blocks.available() {
            return Err(Refusal::NoBlocks);
        }
        let taken = self.blocks.take(n);
        lease.blocks.extend(&taken);
        Ok(taken)
    }

    /// Notes that `hold` may touch the blocks of an open lease from now on; whether there is such a lease.
    #[must_use]
    pub fn hold(&mut self, attempt: Attempt, hold: Hold) -> bool {
        match self.leases.get_mut(&attempt) {
            Some(lease) if !lease.closed => {
                lease.holds.add(hold);
                true
            }
            _ => false,
        }
    }

    /// Notes the proof that `hold` touches the blocks no more; whether it was held. The last proof of a closed lease
    /// returns its blocks and forgets it.
    pub fn release(&mut self, attempt: Attempt, hold: Hold) -> bool {
        let Some(lease) = self.leases.get_mut(&attempt) else {
            return false;
        };
        let held = lease.holds.take(hold);
        if lease.closed && lease.holds.is_empty() {
            let blocks = std::mem::take(&mut lease.blocks);
            self.leases.remove(&attempt);
            // From the end, so that the cache loses the tail of a prefix before its head.
            for &id in blocks.iter().rev() {
                self.blocks.change(id, |block| block.pins -= 1);
            }
        }
        held
    }

    /// Notes that the first `full_blocks` blocks of an open lease are computed or received to their end. Those whose
    /// hash was given with the grant can be shared from now on.
    pub fn complete(&mut self, attempt: Attempt, full_blocks: u32) {
        let Some(lease) = self.leases.get_mut(&attempt).filter(|lease| !lease.closed) else {
            return;
        };
        let end = (full_blocks as usize)
            .min(lease.blocks.len())
            .min(lease.hashes.len());
        for at in lease.complete..end {
            self.blocks.name(lease.blocks[at], lease.hashes[at]);
        }
        lease.complete = lease.complete.max(end);
    }

    /// What is in the blocks of an attempt may be wrong: nobody else is to find it here. Who shares some of them already keeps them.
    pub fn distrust(&mut self, attempt: Attempt) {
        let Some(lease) = self.leases.get_mut(&attempt) else {
            return;
        };
        lease.hashes.clear();
        for &id in &lease.blocks {
            self.blocks.forget(id);
        }
    }

    /// Ends an attempt's right to its blocks. Blocks under a hold are quarantined until [`Ledger::release`] has
    /// brought every proof.
    pub fn close(&mut self, attempt: Attempt) -> Closed {
        let is_open = |lease: &&mut Lease| !lease.closed || planted!(DoubleRelease);
        let Some(lease) = self.leases.get_mut(&attempt).filter(is_open) else {
            return Closed::Unknown;
        };
        lease.closed = true;
        let pinned = u32::from(!lease.holds.is_empty() && !planted!(FreeOnAbort));
        for &id in lease.blocks.iter().rev() {
            self.blocks.change(id, |block| {
                block.leases -= u32::from(!planted!(DoubleRelease if block.leases == 0));
                block.pins += pinned;
            });
        }
        if pinned > 0 {
            return Closed::Quarantined;
        }
        self.leases.remove(&attempt);
        Closed::Returned
    }

    /// Whether this generation of the room, or a later one, was leased here already, as far as is remembered.
    #[must_use]
    pub fn is_stale(&self, attempt: Attempt) -> bool {
        self.leases.contains_key(&attempt) || self.tombstones.outdates(attempt)
    }

    /// The blocks of an attempt in sequence order, quarantined ones included; none for an attempt that is gone.
    #[must_use]
    pub fn blocks(&self, attempt: Attempt) -> &[BlockId] {
        self.leases.get(&attempt).map_or(&[], |lease| &lease.blocks)
    }

    /// How many of an attempt's leading blocks were shared when it was granted.
    #[must_use]
    pub fn cached(&self, attempt: Attempt) -> u32 {
        self.leases.get(&attempt).map_or(0, |lease| lease.cached)
    }

    /// Who may touch an attempt's blocks.
    #[must_use]
    pub fn holds(&self, attempt: Attempt) -> Holds {
        self.leases.get(&attempt).map_or(Holds::NONE, |lease| lease.holds)
    }

    /// How many blocks the last proof of a closed lease will return: those that nobody else has.
    #[must_use]
    pub fn returning(&self, attempt: Attempt) -> u32 {
        let Some(lease) = self.leases.get(&attempt).filter(|lease| lease.closed) else {
            return 0;
        };
        let alone = |id: &&BlockId| {
            let block = self.blocks.get(**id);
            block.leases == 0 && block.pins == 1
        };
        u32::try_from(lease.blocks.iter().filter(alone).count()).unwrap_or(u32::MAX)
    }

    /// Blocks that could be granted now: free ones, and cached ones that would be evicted.
    #[must_use]
    pub fn available(&self) -> u32 {
        self.blocks.available()
    }

    /// Where the blocks are.
    #[must_use]
    pub fn occupancy(&self) -> Occupancy {
        self.blocks.occupancy()
    }

    /// Keeps the last `limit` changes of the cache for [`Ledger::poll_change`] from now on; none at first.
    pub fn follow(&mut self, limit: usize) {
        self.blocks.feed.keep(limit);
    }

    /// The oldest change that was not taken yet.
    pub fn poll_change(&mut self) -> Option<CacheChange> {
        self.blocks.feed.poll()
    }

    /// Names of all contents that are here, and the number of the next change after that.
    #[must_use]
    pub fn contents(&self) -> (u64, Vec<BlockHash>) {
        (self.blocks.feed.next(), self.blocks.names().collect())
    }

    /// Counts every block anew and compares with what the ledger believes. Slow; for tests and for operators.
    ///
    /// # Errors
    /// Names the first count that is wrong.
    pub fn audit(&self) -> Result<(), String> {
        self.blocks.audit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_count_is_found_and_named() {
        let mut ledger = Ledger::new(2, 1);
        assert_eq!(ledger.audit(), Ok(()));
        ledger.blocks.miscount();
        assert_eq!(ledger.audit(), Err("leased: counted 0, kept 1".to_owned()));
    }
}
