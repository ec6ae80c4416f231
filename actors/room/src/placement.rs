//! The workers as a gateway's desk knows them, the credit it has promised at each, and which of them takes a room.
//!
//! Credit is optimistic and local: what a worker advertises is already old, and other gateways use the same worker. A
//! promise that turns out wrong is refused by the worker, and the room comes back to the queue.
//!
//! A room goes either to one mixed worker or to a prefill and a decode worker; of those with credit, to the least
//! loaded. Workers that have failed the room are taken only if no other could ever serve it.

use std::collections::{BTreeMap, BTreeSet};

use crate::command::{Bid, Credit};
use crate::config::DeskLimits;
use crate::id::{Attempt, NodeId};
use crate::input::Route;
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
    /// Sequences it generates at once.
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

/// A worker, for show.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct WorkerView {
    /// Its name.
    pub node: NodeId,
    /// What it is.
    pub spec: WorkerSpec,
    /// What it last said.
    pub advert: Advert,
    /// Its link is suspiciously silent: nothing new goes there.
    pub suspected: bool,
    /// Attempts that have credit here.
    pub attempts: usize,
    /// Blocks promised to them.
    pub promised_blocks: u32,
    /// Prefills under way.
    pub prefills: u32,
}

#[derive(Copy, Clone, Debug)]
struct Promise {
    blocks: u32,
    slots: u32,
    prefills: u32,
    at: Time,
}

#[derive(Debug)]
struct Worker {
    spec: WorkerSpec,
    advert: Advert,
    advert_at: Time,
    suspected: bool,
    promises: BTreeMap<Attempt, Promise>,
}

/// What may be promised now at a worker that takes rooms.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Spare {
    role: Role,
    blocks: u32,
    slots: u32,
    prefills: u32,
    block_tokens: u32,
    pool: u32,
}

/// The table of workers.
#[derive(Debug)]
pub(crate) struct Placement {
    limits: DeskLimits,
    workers: BTreeMap<NodeId, Worker>,
}

/// What an attempt needs, in positions.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Need {
    /// At prefill: what is computed.
    prompt: u32,
    /// At decode: and the part of the answer that is promised for.
    promised: u32,
}

impl Need {
    pub(crate) fn of(bid: &Bid, limits: &DeskLimits) -> Self {
        let promised = bid
            .positions
            .saturating_add(limits.promised_answer_tokens)
            .min(bid.max_positions);
        Self {
            prompt: bid.positions,
            promised: promised.max(bid.positions.saturating_add(1)),
        }
    }
}

impl Worker {
    fn takes_rooms(&self) -> bool {
        !self.advert.draining && !self.suspected
    }

    /// The lesser of two views: the pool less all promises of our own; and what was advertised less the promises
    /// that the advertisement cannot have known.
    fn spare(&self, limits: &DeskLimits) -> Spare {
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
                .saturating_sub(sum(|p| p.prefills, false)),
            block_tokens: self.spec.block_tokens,
            pool: self.spec.blocks,
        }
    }

    /// An empty worker of this kind, whatever it holds now.
    fn empty(&self) -> Spare {
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

    /// Blocks to promise for decoding: never more than the pool has, if what is needed at once fits.
    fn decode_blocks(&self, need: Need) -> Option<u32> {
        let at_once = self.blocks_for(need.prompt.saturating_add(1));
        (at_once <= self.pool).then(|| self.blocks_for(need.promised).min(self.pool))
    }

    fn takes_prefill(&self, need: Need) -> bool {
        self.prefills > 0 && self.blocks_for(need.prompt) <= self.blocks
    }

    fn takes_decode(&self, need: Need) -> bool {
        self.slots > 0
            && self
                .decode_blocks(need)
                .is_some_and(|blocks| blocks <= self.blocks)
    }

    fn promise(&self, need: Need, prefill: bool, decode: bool, at: Time) -> Promise {
        let blocks = match decode {
            true => self.decode_blocks(need).unwrap_or(self.pool),
            false => self.blocks_for(need.prompt),
        };
        Promise {
            blocks,
            slots: u32::from(decode),
            prefills: u32::from(prefill),
            at,
        }
    }
}

impl Placement {
    pub(crate) fn new(limits: DeskLimits) -> Self {
        Self {
            limits,
            workers: BTreeMap::new(),
        }
    }

    pub(crate) fn up(&mut self, node: NodeId, spec: WorkerSpec, now: Time) {
        let advert = Advert {
            available_blocks: spec.blocks,
            free_slots: spec.slots,
            draining: false,
        };
        let promises = BTreeMap::new();
        self.workers.insert(
            node,
            Worker {
                spec,
                advert,
                advert_at: now,
                suspected: false,
                promises,
            },
        );
    }

    pub(crate) fn down(&mut self, node: NodeId) -> bool {
        self.workers.remove(&node).is_some()
    }

    pub(crate) fn advertise(&mut self, node: NodeId, advert: Advert, now: Time) {
        if let Some(worker) = self.workers.get_mut(&node) {
            worker.advert = advert;
            worker.advert_at = now;
        }
    }

    pub(crate) fn suspect(&mut self, node: NodeId, suspected: bool) {
        if let Some(worker) = self.workers.get_mut(&node) {
            worker.suspected = suspected;
        }
    }

    pub(crate) fn give_back(&mut self, attempt: Attempt, node: NodeId, credit: Credit) {
        let Some(worker) = self.workers.get_mut(&node) else {
            return;
        };
        match credit {
            Credit::All => drop(worker.promises.remove(&attempt)),
            Credit::Compute => {
                if let Some(promise) = worker.promises.get_mut(&attempt) {
                    promise.prefills = 0;
                }
            }
        }
    }

    pub(crate) fn give_back_everywhere(&mut self, attempt: Attempt) {
        for worker in self.workers.values_mut() {
            worker.promises.remove(&attempt);
        }
    }

    /// Whether some way through the workers takes rooms now.
    pub(crate) fn can_serve(&self) -> bool {
        let has = |role| {
            self.workers
                .values()
                .any(|w| w.spec.role == role && w.takes_rooms())
        };
        has(Role::Mixed) || (has(Role::Prefill) && has(Role::Decode))
    }

    /// Whether it cannot fit on any way through the workers that are connected, were they empty. `false` where
    /// there is no way at all: nobody knows then.
    pub(crate) fn never_fits(&self, need: Need) -> bool {
        let all: BTreeMap<_, _> = self.workers.iter().map(|(node, w)| (*node, w.empty())).collect();
        let connected = |role| all.values().any(|spare| spare.role == role);
        let ways = connected(Role::Mixed) || (connected(Role::Prefill) && connected(Role::Decode));
        ways && best_route(&all, need, &BTreeSet::new()).is_none()
    }

    /// What may be promised now, at every worker that takes rooms.
    pub(crate) fn spares(&self) -> BTreeMap<NodeId, Spare> {
        let taking = self.workers.iter().filter(|(_, worker)| worker.takes_rooms());
        taking
            .map(|(node, worker)| (*node, worker.spare(&self.limits)))
            .collect()
    }

    /// Where it goes, if there is credit for it.
    pub(crate) fn route(&self, spares: &BTreeMap<NodeId, Spare>, need: Need, bid: &Bid) -> Option<Route> {
        let empty = |(node, _): (&NodeId, _)| Some((*node, self.workers.get(node)?.empty()));
        let others_could = bid.avoid.is_empty()
            || best_route(&spares.iter().filter_map(empty).collect(), need, &bid.avoid).is_some();
        let none = BTreeSet::new();
        best_route(spares, need, if others_could { &bid.avoid } else { &none })
    }

    /// Promises what the attempt needs along the route.
    pub(crate) fn promise(&mut self, attempt: Attempt, route: Route, need: Need, now: Time) {
        for node in route.workers() {
            if let Some(worker) = self.workers.get_mut(&node) {
                let (prefill, decode) = (node == route.prefill, node == route.decode);
                let promise = worker.empty().promise(need, prefill, decode, now);
                worker.promises.insert(attempt, promise);
            }
        }
    }

    pub(crate) fn views(&self) -> Vec<WorkerView> {
        let sum = |w: &Worker, part: fn(&Promise) -> u32| w.promises.values().map(part).sum();
        let view = |(node, w): (&NodeId, &Worker)| WorkerView {
            node: *node,
            spec: w.spec,
            advert: w.advert,
            suspected: w.suspected,
            attempts: w.promises.len(),
            promised_blocks: sum(w, |p| p.blocks),
            prefills: sum(w, |p| p.prefills),
        };
        self.workers.iter().map(view).collect()
    }
}

/// The least loaded way: at prefill the fewest prefills under way, at decode the most free slots; then the most free
/// blocks. A pair goes before a mixed worker: where there are both, the mixed one is for what the pairs cannot take.
fn best_route(spares: &BTreeMap<NodeId, Spare>, need: Need, avoid: &BTreeSet<NodeId>) -> Option<Route> {
    let of = |role| {
        spares
            .iter()
            .filter(move |(node, s)| s.role == role && !avoid.contains(node))
    };
    let prefill = of(Role::Prefill)
        .filter(|(_, s)| s.takes_prefill(need))
        .max_by_key(|(_, s)| (s.prefills, s.blocks));
    let decode = of(Role::Decode)
        .filter(|(_, s)| s.takes_decode(need))
        .max_by_key(|(_, s)| (s.slots, s.blocks));
    if let (Some((prefill, _)), Some((decode, _))) = (prefill, decode) {
        return Some(Route {
            prefill: *prefill,
            decode: *decode,
        });
    }
    let mixed = of(Role::Mixed)
        .filter(|(_, s)| s.takes_prefill(need) && s.takes_decode(need))
        .max_by_key(|(_, s)| (s.slots, s.prefills, s.blocks));
    mixed.map(|(node, _)| Route {
        prefill: *node,
        decode: *node,
    })
}
