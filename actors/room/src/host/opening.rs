//! How a stay begins, or is refused.

use crate::host::input::Job;
use crate::host::stay::Stay;
use crate::host::{Host, StayCause, StayPhase, StayTransition, ToOwner};
use crate::id::Attempt;
use crate::ledger::{Ask, Hold};
use crate::outcome::Refusal;
use crate::time::Time;

impl Host {
    /// Opens a stay that is `Reserved`, or one that starts with `Prefilling`.
    pub(super) fn open(&mut self, now: Time, attempt: Attempt, job: &Job, first: StayPhase) {
        self.supersede(now, attempt);
        match self.admit(attempt, job, first) {
            Ok(cached_blocks) => {
                self.arrivals += 1;
                let whole = first == StayPhase::Reserved;
                let stay = Stay::new(now, self.arrivals, job, whole, self.spec.limits.grace);
                self.deadlines.insert((stay.deadline(), attempt));
                self.stays.insert(attempt, stay);
                self.count_slot(attempt);
                let to = Some(StayPhase::Reserved);
                self.record(StayTransition {
                    at: now,
                    attempt,
                    from: None,
                    to,
                    why: StayCause::Owner,
                    holds: self.ledger.holds(attempt),
                });
                if whole {
                    self.tell(attempt, ToOwner::Reserved { cached_blocks });
                } else {
                    self.start_prefill(now, attempt, StayCause::Owner);
                }
            }
            Err(refusal) => {
                self.counters.refused += 1;
                self.counters.stale += u64::from(refusal == Refusal::Stale);
                self.tell(attempt, ToOwner::Refused(refusal));
            }
        }
    }

    /// The owner has given up the older generations of a room whose next one it opens.
    fn supersede(&mut self, now: Time, attempt: Attempt) {
        for older in self.older_than(attempt) {
            let open = self
                .stays
                .get(&older)
                .is_some_and(|stay| stay.kind() != StayPhase::Closing);
            if open {
                self.counters.superseded += 1;
                self.leave(now, older, false, StayCause::Superseded);
            }
        }
    }

    /// Grants what the job needs to begin; how many leading blocks are here already.
    fn admit(&mut self, attempt: Attempt, job: &Job, first: StayPhase) -> Result<u32, Refusal> {
        if self.ledger.is_stale(attempt) {
            return Err(Refusal::Stale);
        }
        if job.positions == 0 || job.positions > job.max_positions {
            return Err(Refusal::OutOfOrder);
        }
        if self.is_draining() {
            return Err(Refusal::Draining);
        }
        let ask = self.ask(job, first);
        let most = if first == StayPhase::Reserved {
            job.max_positions
        } else {
            job.positions
        };
        if most.div_ceil(self.spec.block_tokens) > self.spec.blocks {
            return Err(Refusal::TooLarge);
        }
        if self.slots_used() >= self.spec.slots {
            return Err(Refusal::NoSlot);
        }
        if !self.wants.is_empty() {
            // Whoever runs here already comes first: a newcomer would only be evicted again.
            return Err(Refusal::NoBlocks);
        }
        self.ledger.grant(attempt, &ask).map(|grant| grant.cached)
    }

    fn ask(&self, job: &Job, first: StayPhase) -> Ask {
        let reserved = first == StayPhase::Reserved;
        // Decode writes the KV of the token that prefill sampled at once, so it has the block for it from the start.
        let positions = if reserved {
            job.max_positions.min(job.positions.saturating_add(1))
        } else {
            job.positions
        };
        // Whoever computes the prompt computes its last position, whatever is cached: it needs the logits.
        let computes_prompt = !reserved || self.spec.mixed;
        let shareable = (job.positions - u32::from(computes_prompt)) / self.spec.block_tokens;
        Ask {
            blocks: positions.div_ceil(self.spec.block_tokens),
            shareable,
            hashes: job
                .hashes
                .iter()
                .take((job.positions / self.spec.block_tokens) as usize)
                .copied()
                .collect(),
        }
    }

    /// Slots belong to those that are with the engine or have the right to be.
    pub(super) fn uses_slot(&self, attempt: Attempt, stay: &Stay) -> bool {
        match stay.kind() {
            StayPhase::Published => false,
            StayPhase::Closing => self.ledger.holds(attempt).has(Hold::Engine),
            StayPhase::Reserved | StayPhase::Prefilling | StayPhase::Pulling | StayPhase::Decoding => true,
        }
    }
}
