//! How a stay ends. Every way out of a stay goes through [`Host::leave`].

use crate::host::{Host, HostCommand, Phase, StayCause, StayPhase, StayTransition, ToOwner};
use crate::id::Attempt;
use crate::ledger::{Closed, Hold, Holds};
use crate::outcome::AttemptError;
use crate::time::Time;

impl Host {
    /// Tells the owner why the attempt ended here, and ends the stay.
    pub(super) fn fail(&mut self, now: Time, attempt: Attempt, error: AttemptError) {
        self.tell(attempt, ToOwner::Failed(error));
        self.leave(now, attempt, false, StayCause::Failed(error));
    }

    /// Ends a stay: closes its lease and tells everybody who holds its blocks to stop. With `answer` the owner hears
    /// `Closed` once nothing is left; of a stay that is closing already, that is all that can change.
    pub(super) fn leave(&mut self, now: Time, attempt: Attempt, answer: bool, why: StayCause) {
        let Some(stay) = self.stays.get_mut(&attempt) else {
            return;
        };
        if stay.kind() == StayPhase::Closing {
            if answer {
                stay.expect_answer();
            }
            if planted!(DoubleRelease) {
                self.ledger.close(attempt);
            }
            return;
        }
        self.wants.remove(&attempt);
        if planted!(FreeOnAbort) {
            self.stop_holders(attempt);
        }
        let closed = self.ledger.close(attempt);
        if closed == Closed::Quarantined {
            self.stop_holders(attempt);
            self.enter(
                now,
                attempt,
                Phase::Closing { answer },
                self.spec.limits.proof_retry,
                why,
            );
        } else {
            self.forget(now, attempt, answer, why);
        }
    }

    /// A proof came for a closing stay: if it was the last one, the stay is gone.
    pub(super) fn settle(&mut self, now: Time, attempt: Attempt) {
        self.count_slot(attempt);
        let phase = self.stays.get(&attempt).map(|stay| stay.phase());
        if let Some(Phase::Closing { answer }) = phase
            && self.ledger.holds(attempt).is_empty()
        {
            self.forget(now, attempt, answer, StayCause::Proven);
        }
    }

    /// The deadline of a phase passed. A closing stay has nothing left to lose: it insists on its proof.
    pub(super) fn on_deadline(&mut self, now: Time, attempt: Attempt) {
        let Some(stay) = self.stays.get_mut(&attempt) else {
            return;
        };
        let kind = stay.kind();
        if planted!(TimeoutFrees if kind == StayPhase::Closing) {
            for hold in self.ledger.holds(attempt).iter() {
                self.ledger.release(attempt, hold);
            }
            self.settle(now, attempt);
        } else if kind == StayPhase::Closing {
            let (before, after) = (stay.deadline(), now + self.spec.limits.proof_retry);
            stay.rearm(after);
            self.move_deadline(attempt, before, after);
            self.counters.proofs_overdue += 1;
            self.record(StayTransition {
                at: now,
                attempt,
                from: Some(kind),
                to: Some(kind),
                why: StayCause::ProofOverdue,
                holds: self.ledger.holds(attempt),
            });
            self.stop_holders(attempt);
        } else {
            self.counters.expired += 1;
            self.fail(now, attempt, AttemptError::NoProgress(kind.at_owner()));
        }
    }

    fn stop_holders(&mut self, attempt: Attempt) {
        for hold in self.ledger.holds(attempt).iter() {
            if planted!(AbortKeepsComputing if hold == Hold::Engine) {
                continue;
            }
            self.commands.push_back(match hold {
                Hold::Engine => HostCommand::StopEngine { attempt },
                Hold::Read => HostCommand::CancelRead { attempt },
                Hold::Offer => HostCommand::Withdraw { attempt },
            });
        }
    }

    fn forget(&mut self, now: Time, attempt: Attempt, answer: bool, why: StayCause) {
        let Some(stay) = self.stays.remove(&attempt) else {
            return;
        };
        self.deadlines.remove(&(stay.deadline(), attempt));
        self.slots -= u32::from(stay.uses_slot);
        self.record(StayTransition {
            at: now,
            attempt,
            from: Some(stay.kind()),
            to: None,
            why,
            holds: Holds::NONE,
        });
        if answer {
            self.tell(attempt, ToOwner::Closed);
        }
    }
}
