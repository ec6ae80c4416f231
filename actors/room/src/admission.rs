//! The desk: admission by credit. One actor at the gateway owns it; rooms ask it for credit and give it back.
//!
//! Waiting rooms are ordered by priority. Those of one priority go by turns of their tenants ([`fair`](crate::fair)), and those of one tenant by
//! arrival. The first that fits goes. One that does not fit is passed by
//! later ones that do, so that a large room does not idle the workers; but only [`DeskLimits::max_passed`] times: then
//! everybody behind it waits for it, so that small rooms do not starve it. What frees up goes to it first all the while.
//! Nobody waits for a room that none of the workers that take rooms could serve even when empty. And a room that
//! would hold up others is not choosy any more: it takes a worker that it avoided before.
//!
//! Priority is strict, and waiting does not raise it: as long as rooms of a higher one take all there is, one of a lower
//! gets nothing, is told so at its own queue deadline, and may come again. Aging would make that limit a guess.
//!
//! The queue is bounded and refuses by type (INV-09). In a full one, whoever has most there makes room for whoever has less: the last of its
//! rooms is refused. How long a room may wait is the room's own deadline: the desk
//! knows no time but the grace for an absent worker.

use std::collections::{BTreeSet, VecDeque};

use crate::command::{Bid, Credit};
use crate::config::DeskLimits;
use crate::credit::{Advert, Need, WorkerSpec};
use crate::id::{Attempt, BlockHash, Generation, NodeId};
use crate::index::{PrefixIndex, Taken};
use crate::input::Route;
use crate::ledger::CacheChange;
use crate::outcome::Failure;
use crate::placement::{Placement, WorkerView};
use crate::policy::{Asked, Choice, Hints, Pace, Policy};
use crate::queue::Queue;
use crate::time::Time;

/// What the desk decided about a waiting attempt, which waits no more.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Verdict {
    /// It has credit at these workers.
    Granted {
        /// Which attempt.
        attempt: Attempt,
        /// Where.
        route: Route,
    },
    /// It cannot have any.
    Refused {
        /// Which attempt.
        attempt: Attempt,
        /// Why not.
        failure: Failure,
    },
}

/// A role has no worker. When rooms are refused for it.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct Absence {
    fresh: Time,
    begun: Time,
}

impl Absence {
    /// For a room whose answer the client has `begun` to read, or not.
    #[must_use]
    pub fn until(self, begun: bool) -> Time {
        if begun { self.begun } else { self.fresh }
    }
}

/// A room that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) bid: Bid,
    pub(crate) hints: Hints,
    pub(crate) passed: u32,
}

impl Waiting {
    fn asked<'a>(&'a self, index: &'a PrefixIndex) -> Asked<'a> {
        Asked {
            attempt: self.bid.attempt,
            positions: self.bid.positions,
            max_positions: self.bid.max_positions,
            hints: &self.hints,
            index,
        }
    }
}

/// The queue of waiting rooms, and the credit of the workers.
///
/// After every call that changes something, take [`poll_verdict`](Self::poll_verdict) until it is empty, then arm
/// [`poll_timeout`](Self::poll_timeout).
#[derive(Debug)]
pub struct Desk {
    limits: DeskLimits,
    placement: Placement,
    index: PrefixIndex,
    queue: Queue,
    /// Who had to make room, and was not told yet.
    ousted: VecDeque<Attempt>,
    /// Since when there is no way through the workers.
    absent_since: Option<Time>,
    /// Something changed since the queue was last searched in vain.
    changed: bool,
}

impl Desk {
    /// A desk without workers.
    #[must_use]
    pub fn new(limits: DeskLimits, now: Time) -> Self {
        Self {
            limits,
            placement: Placement::new(limits),
            index: PrefixIndex::default(),
            queue: Queue::default(),
            ousted: VecDeque::new(),
            absent_since: Some(now),
            changed: false,
        }
    }

    /// A desk without workers that chooses among those with credit by this policy, and not by load alone.
    #[must_use]
    pub fn with_policy(limits: DeskLimits, policy: Box<dyn Policy>, now: Time) -> Self {
        let mut desk = Self::new(limits, now);
        desk.placement.use_policy(policy);
        desk
    }

    /// A room asks for credit. A second bid of a room takes the place of its first.
    ///
    /// # Errors
    /// [`Failure::QueueFull`], or [`Failure::TooLarge`] if `max_positions` cannot fit on any connected worker.
    pub fn enqueue(&mut self, bid: Bid) -> Result<(), Failure> {
        self.enqueue_with(bid, Hints::default())
    }

    /// The same, with what a policy may look at.
    ///
    /// # Errors
    /// As [`enqueue`](Self::enqueue).
    pub fn enqueue_with(&mut self, bid: Bid, hints: Hints) -> Result<(), Failure> {
        self.queue.leave(bid.attempt.room);
        let bound = match bid.attempt.generation {
            Generation::FIRST => self.limits.queue_rooms,
            _ => self.limits.queue_rooms.saturating_mul(2),
        };
        let need = Need::of(&bid, &self.limits);
        if self.placement.never_fits(need) {
            return Err(Failure::TooLarge);
        }
        if self.queue.len() >= bound {
            let ousted = self.queue.oust_for(bid.share).ok_or(Failure::QueueFull)?;
            self.ousted.push_back(ousted);
        }
        // It was paid for with its first attempt.
        let tokens = match bid.attempt.generation {
            Generation::FIRST => need.tokens(),
            _ => 0,
        };
        self.queue.enter(bid, hints, tokens);
        self.changed = true;
        Ok(())
    }

    /// The attempt does not want credit any more. If it was granted some in the meantime, that is given back.
    pub fn leave(&mut self, attempt: Attempt) {
        let waits = self.queue.of(attempt.room);
        if waits.is_some_and(|waiting| waiting.bid.attempt == attempt) {
            self.queue.leave(attempt.room);
        }
        self.ousted.retain(|ousted| *ousted != attempt);
        self.placement.give_back_everywhere(attempt);
        self.changed = true;
    }

    /// Credit comes back. Giving back what was given back before changes nothing.
    pub fn give_back(&mut self, attempt: Attempt, worker: NodeId, credit: Credit) {
        self.placement.give_back(attempt, worker, credit);
        self.changed = true;
    }

    /// A worker is linked. What was promised at it under an earlier link is forgotten with that link.
    pub fn worker_up(&mut self, now: Time, node: NodeId, spec: WorkerSpec) {
        self.placement.up(node, spec, now);
        self.index.worker_up(node, spec.blocks);
        self.workers_changed(now);
    }

    /// A worker's link is fenced.
    pub fn worker_down(&mut self, now: Time, node: NodeId) {
        self.placement.down(node);
        self.index.worker_down(node);
        self.workers_changed(now);
    }

    /// A worker said what it could grant. Unknown workers are ignored.
    pub fn advertise(&mut self, now: Time, node: NodeId, advert: Advert) {
        self.placement.advertise(node, advert, now);
        self.workers_changed(now);
    }

    /// A worker said how fast it is.
    pub fn paced(&mut self, node: NodeId, pace: Pace) {
        self.placement.paced(node, pace);
    }

    /// A worker's cache changed. After [`Taken::Gap`] it is to be asked for all that it has.
    pub fn cache_changed(&mut self, node: NodeId, change: CacheChange) -> Taken {
        self.index.apply(node, change)
    }

    /// All that a worker's cache has, and the number of its next change.
    pub fn cache_listed(&mut self, node: NodeId, next: u64, hashes: &[BlockHash]) {
        self.index.list(node, next, hashes);
    }

    /// The next decision. Call until `None` after every change and every timeout.
    pub fn poll_verdict(&mut self, now: Time) -> Option<Verdict> {
        if let Some(attempt) = self.ousted.pop_front() {
            let failure = Failure::QueueFull;
            return Some(Verdict::Refused { attempt, failure });
        }
        let given_up = self.given_up_at().filter(|(at, _)| *at <= now);
        let given_up = given_up.and_then(|(_, absence)| {
            let over = |waiting: &Waiting| absence.until(waiting.bid.begun) <= now;
            self.queue.all().find(|waiting| over(waiting))
        });
        if let Some(attempt) = given_up.map(|waiting| waiting.bid.attempt) {
            self.queue.leave(attempt.room);
            return Some(Verdict::Refused {
                attempt,
                failure: Failure::NoWorker,
            });
        }
        if !self.changed {
            return None;
        }
        let verdict = self.search(now);
        self.changed = verdict.is_some();
        verdict
    }

    /// When [`poll_verdict`](Self::poll_verdict) has something to say though nothing changed.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        self.given_up_at().map(|(at, _)| at)
    }

    /// When the first of those that wait is refused, because there is no way through the workers; and what all of them wait for.
    fn given_up_at(&self) -> Option<(Time, Absence)> {
        let absence = self.absence()?;
        let begun = self.queue.begun();
        let fresh = (self.queue.len() > begun).then(|| absence.until(false));
        let begun = (begun > 0).then(|| absence.until(true));
        let first = fresh.into_iter().chain(begun).min()?;
        Some((first, absence))
    }

    /// Whether there is no way through the workers, and until when it is waited for.
    #[must_use]
    pub fn absence(&self) -> Option<Absence> {
        let since = self.absent_since?;
        Some(Absence {
            fresh: since + self.limits.no_worker_grace,
            begun: since + self.limits.begun_grace,
        })
    }

    /// How many rooms wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// The longest sequence, in positions, that the connected workers can hold: what an answer without a bound of its
    /// own is bounded by. `None` where a role is missing.
    #[must_use]
    pub fn longest_sequence(&self) -> Option<u32> {
        self.placement.longest()
    }

    /// Every worker, for show.
    #[must_use]
    pub fn workers(&self) -> Vec<WorkerView> {
        self.placement.views()
    }

    /// The first in the queue that fits, or that never will.
    fn search(&mut self, now: Time) -> Option<Verdict> {
        self.placement.look(now);
        if self.queue.is_empty() {
            return None;
        }
        let nobody = BTreeSet::new();
        let spares = self.placement.spares();
        let mut found = None;
        let mut passed = Vec::new();
        for (place, waiting) in self.queue.turns().take(self.limits.scan_rooms) {
            let need = Need::of(&waiting.bid, &self.limits);
            let is_next = waiting.passed >= self.limits.max_passed;
            let avoid = if is_next { &nobody } else { &waiting.bid.avoid };
            let asked = waiting.asked(&self.index);
            let choice = self.placement.choose(now, &spares, need, avoid, &asked);
            found = match choice {
                Choice::Take(route) => Some((place, need, Ok(route))),
                Choice::Refuse => Some((place, need, Err(Failure::NoCredit))),
                Choice::Wait if self.placement.never_fits(need) => {
                    Some((place, need, Err(Failure::TooLarge)))
                }
                Choice::Wait => None,
            };
            if found.is_some() {
                break;
            }
            if is_next && self.placement.could_fit(need) {
                break;
            }
            passed.push(place);
        }
        let (place, need, route) = found?;
        let route = match route {
            Ok(route) => route,
            Err(failure) => {
                let attempt = self.queue.leave(place.room())?.bid.attempt;
                return Some(Verdict::Refused { attempt, failure });
            }
        };
        let waiting = self.queue.take(place)?;
        let attempt = waiting.bid.attempt;
        self.queue.pass_by(&passed);
        self.placement
            .promise(&waiting.asked(&self.index), route, need, now);
        Some(Verdict::Granted { attempt, route })
    }

    fn workers_changed(&mut self, now: Time) {
        self.changed = true;
        self.absent_since = match self.placement.can_serve() {
            true => None,
            false => self.absent_since.or(Some(now)),
        };
    }
}
