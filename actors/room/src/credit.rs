//! The credit at one worker: what it has, what is promised of it, and what may still be.
//!
//! Credit is optimistic and local: what a worker advertises is already old, and other gateways use the same worker. A
//! promise that turns out wrong is refused by the worker, and the room comes back to the queue.

use std::collections::BTreeMap;

use crate::command::Bid;
use crate::config::DeskLimits;
use crate::id::{Attempt, NodeId};
use crate::policy::Candidate;
use crate::time::{Span, Time};

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
    blocks: u32,
    slots: u32,
    prefills: u32,
    at: Time,
}

/// What is promised in all.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub(crate) struct Sums {
    blocks: u64,
    slots: u64,
    prefills: u64,
}

/// A worker, as the desk knows it. The sums are kept, and not made anew for every room that asks.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) spec: WorkerSpec,
    pub(crate) advert: Advert,
    advert_at: Time,
    /// From when on an advertisement knows of a promise: so long after it.
    settle: Span,
    promises: BTreeMap<Attempt, Promise>,
    /// Of all promises.
    sums: Sums,
    /// Of those that the advertisement cannot have known.
    fresh: Sums,
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

    /// What its tenant pays.
    pub(crate) fn tokens(self) -> u32 {
        self.promised
    }
}

impl Sums {
    fn of<'a>(promises: impl Iterator<Item = &'a Promise>) -> Self {
        let mut sums = Self::default();
        promises.for_each(|promise| sums.add(promise));
        sums
    }

    fn add(&mut self, promise: &Promise) {
        self.blocks += u64::from(promise.blocks);
        self.slots += u64::from(promise.slots);
        self.prefills += u64::from(promise.prefills);
    }

    fn take(&mut self, promise: &Promise) {
        self.blocks -= u64::from(promise.blocks);
        self.slots -= u64::from(promise.slots);
        self.prefills -= u64::from(promise.prefills);
    }
}

/// A sum as what is spared is counted in.
fn saturated(sum: u64) -> u32 {
    u32::try_from(sum).unwrap_or(u32::MAX)
}

impl Worker {
    /// Linked just now; until it says otherwise, taken for empty.
    pub(crate) fn new(spec: WorkerSpec, settle: Span, now: Time) -> Self {
        let advert = Advert {
            available_blocks: spec.blocks,
            free_slots: spec.slots,
            draining: false,
        };
        Self {
            spec,
            advert,
            advert_at: now,
            settle,
            promises: BTreeMap::new(),
            sums: Sums::default(),
            fresh: Sums::default(),
        }
    }

    /// It said so now.
    pub(crate) fn advertise(&mut self, advert: Advert, now: Time) {
        self.advert = advert;
        self.advert_at = now;
        let fresh = self.promises.values().filter(|promise| self.is_fresh(promise));
        self.fresh = Sums::of(fresh);
    }

    fn is_fresh(&self, promise: &Promise) -> bool {
        promise.at + self.settle > self.advert_at
    }

    /// Promises to an attempt, in place of what it had.
    pub(crate) fn promise(&mut self, attempt: Attempt, promise: Promise) {
        self.give_back(attempt);
        self.sums.add(&promise);
        if self.is_fresh(&promise) {
            self.fresh.add(&promise);
        }
        self.promises.insert(attempt, promise);
    }

    /// The attempt has nothing here any more.
    pub(crate) fn give_back(&mut self, attempt: Attempt) {
        if let Some(promise) = self.promises.remove(&attempt) {
            self.sums.take(&promise);
            if self.is_fresh(&promise) {
                self.fresh.take(&promise);
            }
        }
        self.audit();
    }

    /// The attempt's prompt is computed.
    pub(crate) fn give_back_compute(&mut self, attempt: Attempt) {
        let Some(promise) = self.promises.get(&attempt).copied() else {
            return;
        };
        let prefills = 0;
        self.promise(attempt, Promise { prefills, ..promise });
    }

    /// Attempts that have a promise.
    pub(crate) fn attempts(&self) -> usize {
        self.promises.len()
    }

    /// Blocks and prefills that are promised.
    pub(crate) fn promised(&self) -> (u32, u32) {
        (saturated(self.sums.blocks), saturated(self.sums.prefills))
    }

    /// The sums are those of the promises.
    fn audit(&self) {
        debug_assert_eq!(self.sums, Sums::of(self.promises.values()));
        let fresh = self.promises.values().filter(|promise| self.is_fresh(promise));
        debug_assert_eq!(self.fresh, Sums::of(fresh));
    }

    pub(crate) fn takes_rooms(&self) -> bool {
        !self.advert.draining
    }

    /// The lesser of two views: the pool less all promises of our own; and what was advertised less the promises
    /// that the advertisement cannot have known.
    pub(crate) fn spare(&self, limits: &DeskLimits) -> Spare {
        self.audit();
        let spare = |total: u32, advertised: u32, all: u64, fresh: u64| {
            let of_pool = total.saturating_sub(saturated(all));
            of_pool.min(advertised.saturating_sub(saturated(fresh)))
        };
        let (spec, advert, all, fresh) = (&self.spec, &self.advert, &self.sums, &self.fresh);
        Spare {
            role: spec.role,
            blocks: spare(spec.blocks, advert.available_blocks, all.blocks, fresh.blocks),
            slots: spare(spec.slots, advert.free_slots, all.slots, fresh.slots),
            prefills: limits
                .prefills_per_worker
                .min(spec.slots)
                .saturating_sub(saturated(all.prefills)),
            block_tokens: spec.block_tokens,
            pool: spec.blocks,
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

    /// As a policy sees it; none if it has credit for no part of it.
    pub(crate) fn candidate(&self, node: NodeId, need: Need) -> Option<Candidate> {
        let holds = self.blocks_for(need.most) <= self.pool;
        let (computes, answers) = (self.takes_prefill(need), self.takes_decode(need));
        (holds && (computes || answers)).then_some(Candidate {
            node,
            role: self.role,
            block_tokens: self.block_tokens,
            computes,
            answers,
            prefills: self.prefills,
            slots: self.slots,
            blocks: self.blocks,
        })
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
