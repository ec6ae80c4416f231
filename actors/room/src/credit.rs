//! The credit at one worker: what it has, what is promised of it, and what may still be.
//!
//! Credit is optimistic and local: what a worker advertises is already old, and other gateways use the same worker. A
//! promise that turns out wrong is refused by the worker, and the room comes back to the queue.

use std::collections::BTreeMap;

use crate::command::Bid;
use crate::config::DeskLimits;
use crate::id::Attempt;
use crate::time::Time;

/// What a worker does.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum Role {
    /// Computes prompts.
    Prefill,
    /// Generates answers.
    Decode,
    /// Both, under one lease.
    Mixed,
}

/// What a worker is, for as long as its process lives.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct WorkerSpec {
    /// What it does.
    pub role: Role,
    /// Blocks of its pool.
    pub blocks: u32,
    /// Positions a block holds; at least 1.
    pub block_tokens: u32,
    /// Sequences that may be with its engine at once.
    pub slots: u32,
}

/// What a worker last said of itself.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct Advert {
    /// Blocks it could grant: free or cached.
    pub available_blocks: u32,
    /// Slots it could grant.
    pub free_slots: u32,
    /// It takes no new rooms.
    pub draining: bool,
}

/// What is promised to one attempt.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Promise {
    pub(crate) blocks: u32,
    slots: u32,
    pub(crate) prefills: u32,
    at: Time,
}

/// A worker, as the desk knows it.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) spec: WorkerSpec,
    pub(crate) advert: Advert,
    pub(crate) advert_at: Time,
    pub(crate) promises: BTreeMap<Attempt, Promise>,
}

/// What may be promised now at a worker that takes rooms.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Spare {
    pub(crate) role: Role,
    pub(crate) blocks: u32,
    pub(crate) slots: u32,
    pub(crate) prefills: u32,
    block_tokens: u32,
    pool: u32,
}

/// What an attempt needs, in positions.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Need {
    /// At prefill: what is computed.
    prompt: u32,
    /// At decode: and the part of the answer that is promised for.
    promised: u32,
    /// What the pool must be able to hold. At prefill too: an answer that is evicted or migrated near its end is
    /// computed again up to there.
    most: u32,
}

impl Need {
    pub(crate) fn of(bid: &Bid, limits: &DeskLimits) -> Self {
        let promised = bid.positions.saturating_add(limits.promised_answer_tokens);
        Self {
            prompt: bid.positions,
            promised: promised.min(bid.max_positions),
            most: bid.max_positions,
        }
    }
}

impl Worker {
    /// Linked just now; until it says otherwise, taken for empty.
    pub(crate) fn new(spec: WorkerSpec, now: Time) -> Self {
        let advert = Advert {
            available_blocks: spec.blocks,
            free_slots: spec.slots,
            draining: false,
        };
        Self {
            spec,
            advert,
            advert_at: now,
            promises: BTreeMap::new(),
        }
    }

    pub(crate) fn takes_rooms(&self) -> bool {
        !self.advert.draining
    }

    /// The lesser of two views: the pool less all promises of our own; and what was advertised less the promises
    /// that the advertisement cannot have known.
    pub(crate) fn spare(&self, limits: &DeskLimits) -> Spare {
        let sum = |part: fn(&Promise) -> u32, fresh_only: bool| {
            let counts = |p: &&Promise| !fresh_only || p.at + limits.settle > self.advert_at;
            self.promises
                .values()
                .filter(counts)
                .map(part)
                .fold(0, u32::saturating_add)
        };
        let spare = |total: u32, advertised: u32, part: fn(&Promise) -> u32| {
            total
                .saturating_sub(sum(part, false))
                .min(advertised.saturating_sub(sum(part, true)))
        };
        Spare {
            role: self.spec.role,
            blocks: spare(self.spec.blocks, self.advert.available_blocks, |p| p.blocks),
            slots: spare(self.spec.slots, self.advert.free_slots, |p| p.slots),
            prefills: limits
                .prefills_per_worker
                .min(self.spec.slots)
                .saturating_sub(sum(|p| p.prefills, false)),
            block_tokens: self.spec.block_tokens,
            pool: self.spec.blocks,
        }
    }

    /// An empty worker of this kind, whatever it holds now.
    pub(crate) fn empty(&self) -> Spare {
        let spec = &self.spec;
        let (block_tokens, pool) = (spec.block_tokens, spec.blocks);
        Spare {
            role: spec.role,
            blocks: pool,
            slots: spec.slots,
            prefills: 1,
            block_tokens,
            pool,
        }
    }
}

impl Spare {
    fn blocks_for(&self, positions: u32) -> u32 {
        positions.div_ceil(self.block_tokens.max(1))
    }

    /// Whether it can do its role's part of it.
    pub(crate) fn fits(&self, need: Need) -> bool {
        let part = match self.role {
            Role::Prefill => self.takes_prefill(need),
            Role::Decode => self.takes_decode(need),
            Role::Mixed => self.takes_prefill(need) && self.takes_decode(need),
        };
        part && self.blocks_for(need.most) <= self.pool
    }

    fn takes_prefill(&self, need: Need) -> bool {
        self.prefills > 0 && self.blocks_for(need.prompt) <= self.blocks
    }

    fn takes_decode(&self, need: Need) -> bool {
        self.slots > 0 && self.blocks_for(need.promised) <= self.blocks
    }

    pub(crate) fn promise(&self, need: Need, prefill: bool, decode: bool, at: Time) -> Promise {
        let positions = if decode { need.promised } else { need.prompt };
        Promise {
            blocks: self.blocks_for(positions),
            slots: u32::from(decode),
            prefills: u32::from(prefill),
            at,
        }
    }
}
