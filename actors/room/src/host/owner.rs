//! Messages from owners.

use crate::host::input::FromOwner;
use crate::host::legal::{Verdict, judge};
use crate::host::{Host, HostCommand, Phase, StayCause, StayPhase, ToOwner, count};
use crate::id::Attempt;
use crate::ledger::Hold;
use crate::outcome::AttemptError;
use crate::time::Time;

impl Host {
    pub(super) fn on_owner(&mut self, now: Time, attempt: Attempt, message: &FromOwner) {
        let Some(stay) = self.stays.get(&attempt) else {
            return self.on_owner_of_absent(now, attempt, message);
        };
        match judge(stay.kind(), message) {
            Verdict::Act => self.act(now, attempt, message),
            Verdict::Duplicate => self.counters.duplicates += 1,
            Verdict::OutOfOrder => self.counters.out_of_order += 1,
            Verdict::Stale => self.counters.stale += 1,
        }
    }

    /// Only what opens a stay has an effect; all else is answered with the truth: nothing is here.
    fn on_owner_of_absent(&mut self, now: Time, attempt: Attempt, message: &FromOwner) {
        let was_here = self.ledger.is_stale(attempt);
        if planted!(UnknownRoomIgnored if !matches!(message, FromOwner::Reserve(_) | FromOwner::Prefill(_))) {
            return self.count_absent(was_here);
        }
        match message {
            FromOwner::Reserve(job) => self.open(now, attempt, job, StayPhase::Reserved),
            FromOwner::Prefill(job) => self.open(now, attempt, job, StayPhase::Prefilling),
            FromOwner::Pull { .. } => {
                self.count_absent(was_here);
                self.tell(attempt, ToOwner::Failed(AttemptError::UnknownAttempt));
            }
            // No answer: what it holds no more its owner hears with the next digest.
            FromOwner::Allow { .. } => self.count_absent(was_here),
            FromOwner::Release | FromOwner::Close => {
                // The Close of an attempt that ended here by itself is the normal course.
                if !was_here {
                    self.counters.unknown += 1;
                }
                self.tell(attempt, ToOwner::Closed);
            }
        }
    }

    pub(super) fn count_absent(&mut self, was_here: bool) {
        if was_here {
            self.counters.stale += 1;
        } else {
            self.counters.unknown += 1;
        }
    }

    fn act(&mut self, now: Time, attempt: Attempt, message: &FromOwner) {
        match message {
            FromOwner::Reserve(_) => {}
            FromOwner::Prefill(_) if self.spec.mixed => self.start_prefill(now, attempt, StayCause::Owner),
            // The whole prompt may have been shared at the grant, and then nothing is left to sample from.
            FromOwner::Prefill(_) => self.counters.out_of_order += 1,
            FromOwner::Pull { sampled } => self.pull(now, attempt, *sampled),
            FromOwner::Allow { until } => {
                if !self.allow(now, attempt, *until) {
                    self.counters.duplicates += 1;
                }
            }
            FromOwner::Release | FromOwner::Close => self.leave(now, attempt, true, StayCause::ClosedByOwner),
        }
    }

    /// Hands the prompt of a stay to the engine.
    pub(super) fn start_prefill(&mut self, now: Time, attempt: Attempt, why: StayCause) {
        let Some(stay) = self.stays.get(&attempt) else {
            return;
        };
        let (whole, until) = (stay.whole, stay.until);
        if !self.ledger.hold(attempt, Hold::Engine) {
            return;
        }
        let computed = self.ledger.cached(attempt).saturating_mul(self.spec.block_tokens);
        let blocks = self.ledger.blocks(attempt).to_vec();
        self.note_computed(attempt, computed);
        self.commands.push_back(HostCommand::StartPrefill {
            attempt,
            blocks,
            computed,
            whole,
            until,
        });
        self.enter(
            now,
            attempt,
            Phase::Prefilling,
            self.spec.limits.prefill_no_progress,
            why,
        );
    }

    /// Reads what is not here yet; if everything is, there is nothing to wait for.
    fn pull(&mut self, now: Time, attempt: Attempt, sampled: u32) {
        let Some(stay) = self.stays.get_mut(&attempt) else {
            return;
        };
        stay.answered = stay.answered.saturating_add(sampled);
        let filled = stay.positions.div_ceil(self.spec.block_tokens) as usize;
        let from = self.ledger.cached(attempt);
        let into: Vec<_> = self
            .ledger
            .blocks(attempt)
            .iter()
            .take(filled)
            .skip(from as usize)
            .copied()
            .collect();
        debug_assert!(from <= count(filled), "more blocks cached than filled");
        if into.is_empty() {
            return self.pulled(now, attempt, StayCause::Owner);
        }
        if self.ledger.hold(attempt, Hold::Read) {
            self.commands.push_back(HostCommand::Read { attempt, from, into });
            self.enter(
                now,
                attempt,
                Phase::Pulling,
                self.spec.limits.pull,
                StayCause::Owner,
            );
        }
    }

    /// The KV of every position is here: generate.
    pub(super) fn pulled(&mut self, now: Time, attempt: Attempt, why: StayCause) {
        let Some(stay) = self.stays.get(&attempt) else {
            return;
        };
        let (positions, until) = (stay.positions, stay.until);
        self.note_computed(attempt, positions);
        self.tell(attempt, ToOwner::Pulled);
        if self.ledger.hold(attempt, Hold::Engine) {
            let blocks = self.ledger.blocks(attempt).to_vec();
            self.commands.push_back(HostCommand::StartDecode {
                attempt,
                blocks,
                computed: positions,
                until,
            });
            self.enter(now, attempt, Phase::Decoding, self.spec.limits.stall, why);
        }
    }

    /// Positions up to here have their KV: full blocks among them can be shared.
    pub(super) fn note_computed(&mut self, attempt: Attempt, positions: u32) {
        let Some(stay) = self.stays.get_mut(&attempt) else {
            return;
        };
        stay.computed = stay.computed.max(positions);
        self.ledger
            .complete(attempt, stay.computed / self.spec.block_tokens);
    }
}
