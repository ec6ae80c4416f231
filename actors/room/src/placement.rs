//! The workers as a gateway's desk knows them, and which of them takes a room.
//!
//! A room goes either to one mixed worker or to a prefill and a decode worker; of those with credit, to the least
//! loaded. Workers that have failed the room are left out as long as others could serve it.

use std::collections::{BTreeMap, BTreeSet};

use crate::command::Credit;
use crate::config::DeskLimits;
use crate::credit::{Advert, Need, Role, Spare, Worker, WorkerSpec};
use crate::id::{Attempt, NodeId};
use crate::input::Route;
use crate::policy::{Asked, Candidate, Choice, Pace, Policy};
use crate::time::Time;

/// A worker, for show.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct WorkerView {
    /// Its name.
    pub node: NodeId,
    /// What it is.
    pub spec: WorkerSpec,
    /// What it last said.
    pub advert: Advert,
    /// Attempts that have credit here.
    pub attempts: usize,
    /// Blocks promised to them.
    pub promised_blocks: u32,
    /// Prefills under way.
    pub prefills: u32,
}

/// The table of workers.
#[derive(Debug)]
pub(crate) struct Placement {
    limits: DeskLimits,
    workers: BTreeMap<NodeId, Worker>,
    /// Chooses in place of [`best_route`].
    policy: Option<Box<dyn Policy>>,
}

impl Placement {
    pub(crate) fn new(limits: DeskLimits) -> Self {
        Self {
            limits,
            workers: BTreeMap::new(),
            policy: None,
        }
    }

    pub(crate) fn use_policy(&mut self, policy: Box<dyn Policy>) {
        self.policy = Some(policy);
    }

    pub(crate) fn paced(&mut self, node: NodeId, pace: Pace) {
        if let Some(policy) = self.policy.as_mut().filter(|_| self.workers.contains_key(&node)) {
            policy.paced(node, pace);
        }
    }

    pub(crate) fn look(&mut self, now: Time) {
        if let Some(policy) = &mut self.policy {
            policy.look(now);
        }
    }

    pub(crate) fn up(&mut self, node: NodeId, spec: WorkerSpec, now: Time) {
        let worker = Worker::new(spec, self.limits.settle, now);
        self.workers.insert(node, worker);
    }

    pub(crate) fn down(&mut self, node: NodeId) {
        self.workers.remove(&node);
        if let Some(policy) = &mut self.policy {
            policy.worker_down(node);
        }
    }

    pub(crate) fn advertise(&mut self, node: NodeId, advert: Advert, now: Time) {
        if let Some(worker) = self.workers.get_mut(&node) {
            worker.advertise(advert, now);
        }
    }

    pub(crate) fn give_back(&mut self, attempt: Attempt, node: NodeId, credit: Credit) {
        let Some(worker) = self.workers.get_mut(&node) else {
            return;
        };
        if let Some(policy) = &mut self.policy {
            policy.given_back(attempt, node, credit);
        }
        match credit {
            Credit::All => worker.give_back(attempt),
            Credit::Compute => worker.give_back_compute(attempt),
        }
    }

    pub(crate) fn give_back_everywhere(&mut self, attempt: Attempt) {
        for (node, worker) in &mut self.workers {
            worker.give_back(attempt);
            if let Some(policy) = &mut self.policy {
                policy.given_back(attempt, *node, Credit::All);
            }
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

    /// Whether some way through the workers that take rooms would do, were they empty.
    pub(crate) fn could_fit(&self, need: Need) -> bool {
        best_route(&self.empties(), need, &BTreeSet::new()).is_some()
    }

    /// Every worker that takes rooms, as if it held nothing.
    fn empties(&self) -> BTreeMap<NodeId, Spare> {
        let taking = self.workers.iter().filter(|(_, worker)| worker.takes_rooms());
        taking.map(|(node, worker)| (*node, worker.empty())).collect()
    }

    /// What becomes of it, given the credit there is.
    pub(crate) fn choose(
        &self,
        now: Time,
        spares: &BTreeMap<NodeId, Spare>,
        need: Need,
        avoid: &BTreeSet<NodeId>,
        asked: &Asked<'_>,
    ) -> Choice {
        let shunned = self.shunned(need, avoid);
        let Some(policy) = &self.policy else {
            return best_route(spares, need, &shunned).into();
        };
        let left = spares.iter().filter(|(node, _)| !shunned.contains(node));
        let candidates: Vec<Candidate> = left
            .filter_map(|(node, spare)| spare.candidate(*node, need))
            .collect();
        policy.choose(now, asked, &candidates)
    }

    /// Those of `avoid` that are left out: all, if a way remains without them; else those whose part another
    /// worker can take.
    fn shunned(&self, need: Need, avoid: &BTreeSet<NodeId>) -> BTreeSet<NodeId> {
        if avoid.is_empty() {
            return BTreeSet::new();
        }
        let empties = self.empties();
        if best_route(&empties, need, avoid).is_some() {
            return avoid.clone();
        }
        let replaceable = |node: &&NodeId| {
            let role = empties.get(node).map(|spare| spare.role);
            empties
                .iter()
                .any(|(other, s)| Some(s.role) == role && !avoid.contains(other) && s.fits(need))
        };
        avoid.iter().filter(replaceable).copied().collect()
    }

    /// Promises what the attempt needs along the route.
    pub(crate) fn promise(&mut self, asked: &Asked<'_>, route: Route, need: Need, now: Time) {
        let attempt = asked.attempt;
        if let Some(policy) = &mut self.policy {
            let block_tokens = self
                .workers
                .get(&route.prefill)
                .map_or(1, |w| w.spec.block_tokens);
            policy.promised(now, asked, route, block_tokens);
        }
        for node in route.workers() {
            if let Some(worker) = self.workers.get_mut(&node) {
                let (prefill, decode) = (node == route.prefill, node == route.decode);
                let promise = worker.empty().promise(need, prefill, decode, now);
                worker.promise(attempt, promise);
            }
        }
    }

    /// Positions of the longest sequence that some way through the workers can hold. A pair holds what both can: see
    /// [`Need`].
    pub(crate) fn longest(&self) -> Option<u32> {
        let of = |role| {
            let those = self.workers.values().filter(move |w| w.spec.role == role);
            those
                .map(|w| w.spec.blocks.saturating_mul(w.spec.block_tokens))
                .max()
        };
        let pair = of(Role::Prefill).zip(of(Role::Decode));
        pair.map(|(prefill, decode)| prefill.min(decode))
            .max(of(Role::Mixed))
    }

    pub(crate) fn views(&self) -> Vec<WorkerView> {
        let view = |(node, w): (&NodeId, &Worker)| {
            let (promised_blocks, prefills) = w.promised();
            WorkerView {
                node: *node,
                spec: w.spec,
                advert: w.advert,
                attempts: w.attempts(),
                promised_blocks,
                prefills,
            }
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
    let of = |role| of(role).filter(move |(_, spare)| spare.fits(need));
    let prefill = of(Role::Prefill).max_by_key(|(_, s)| (s.prefills, s.blocks));
    let decode = of(Role::Decode).max_by_key(|(_, s)| (s.slots, s.blocks));
    if let (Some((prefill, _)), Some((decode, _))) = (prefill, decode) {
        return Some(Route {
            prefill: *prefill,
            decode: *decode,
        });
    }
    let mixed = of(Role::Mixed).max_by_key(|(_, s)| (s.slots, s.prefills, s.blocks));
    mixed.map(|(node, _)| Route {
        prefill: *node,
        decode: *node,
    })
}
