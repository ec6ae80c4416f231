//! What happens when nothing happens. Every wait of a room ends here.

use crate::command::Command;
use crate::event::Happening;
use crate::id::Attempt;
use crate::outcome::{AttemptError, Failure, Outcome};
use crate::room::Room;
use crate::room::deadline::Deadline;
use crate::room::leg::{Due, LegState};
use crate::room::state::Phase;
use crate::time::Time;

impl Room {
    /// Does what is due by `now`. Without effect if nothing is.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.phase().is_live() && now >= self.spec.deadline {
            self.settle(now, self.outcome_at_deadline());
        }
        self.phase_timeout(now);
        for index in 0..self.legs.len() {
            while let Some(due) = self.leg_due(index, now) {
                self.drain_step(now, index, due);
            }
        }
        self.check();
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do next: `None` only once ended.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        let phase = self.phase.deadline().map(Deadline::at);
        let request = self.phase().is_live().then_some(self.spec.deadline);
        let pause = match &self.phase {
            Phase::Queued(p) => p.pause_until,
            _ => None,
        };
        let legs = self.legs.iter().filter_map(|leg| leg.timer());
        [phase, request, pause].into_iter().flatten().chain(legs).min()
    }

    fn phase_timeout(&mut self, now: Time) {
        let passed = self
            .phase
            .deadline()
            .is_some_and(|deadline| deadline.has_passed(now));
        match &mut self.phase {
            Phase::Queued(_) if passed => {
                let fault = self.last_error.filter(|error| error.is_fault());
                let failure = fault.map_or(Failure::NoCredit, Failure::Attempts);
                self.settle(now, Outcome::Failed(failure));
            }
            Phase::Queued(queued) if queued.pause_until.is_some_and(|at| at <= now) => {
                queued.pause_until = None;
                self.enqueue();
            }
            _ if passed => {
                if let Some(silent) = self.phase.speaker() {
                    self.fail_attempt(now, silent, AttemptError::NoProgress(self.phase()));
                }
            }
            _ => {}
        }
    }

    fn leg_due(&mut self, index: usize, now: Time) -> Option<Due> {
        match &mut self.legs[index].state {
            LegState::Closing(closing) => closing.due(&self.limits, now),
            LegState::Promised | LegState::Open => None,
        }
    }

    fn drain_step(&mut self, now: Time, index: usize, due: Due) {
        let (worker, of) = (self.legs[index].worker, self.legs[index].generation);
        match due {
            Due::Tell { order, told } => {
                self.say(now, Happening::ToldAgain { worker, of, told });
                let attempt = Attempt {
                    room: self.id,
                    generation: of,
                };
                self.outbox.command(Command::Send {
                    to: worker,
                    attempt,
                    order,
                });
            }
            Due::Overdue(told) => self.say(now, Happening::DrainOverdue { worker, of, told }),
            Due::Fence => {
                self.say(now, Happening::Fenced { worker, of });
                self.outbox.command(Command::Fence { worker });
            }
        }
    }
}
