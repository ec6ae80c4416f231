//! Attempts: how one begins, how it fails into the next or into the outcome.

use crate::command::{Bid, Command, Order, Work};
use crate::event::{Happening, Why};
use crate::id::NodeId;
use crate::input::Route;
use crate::outcome::{AttemptError, Failure, Finish, Outcome, Refusal};
use crate::room::Room;
use crate::room::deadline::Deadline;
use crate::room::leg::{Leg, LegState};
use crate::room::state::{Phase, Queued, Reserving};
use crate::time::{Span, Time};

impl Room {
    /// Asks the desk for credit. A later attempt keeps the room's place in the order.
    pub(super) fn enqueue(&mut self) {
        self.outbox.command(Command::Enqueue(Bid {
            attempt: self.attempt(),
            priority: self.spec.priority,
            share: self.spec.share,
            arrived: self.born,
            begun: self.delivered > 0,
            positions: self.work().positions,
            max_positions: self.work().max_positions,
            avoid: self.avoid.clone(),
        }));
    }

    pub(super) fn work(&self) -> Work {
        Work {
            positions: self.spec.positions.saturating_add(self.delivered),
            delivered: self.delivered,
            max_positions: self.spec.positions.saturating_add(self.spec.max_new),
            until: self.allowed,
            deadline: self.spec.deadline,
        }
    }

    /// Credit is here: credit before work, so decode is asked first.
    pub(super) fn admit(&mut self, now: Time, route: Route) {
        let Phase::Queued(queued) = &self.phase else {
            return;
        };
        let credit_by = queued.deadline;
        for worker in route.workers() {
            self.legs.push(Leg {
                worker,
                generation: self.generation,
                state: LegState::Promised,
            });
        }
        self.allow_first();
        let waits_since = if planted!(QueueTimeIsFault) {
            self.entered
        } else {
            now
        };
        let deadline = Deadline::after(waits_since, self.limits.reserve);
        self.enter(
            now,
            Phase::Reserving(Reserving {
                deadline,
                credit_by,
                route,
            }),
            Why::Admitted,
        );
        self.say(now, Happening::Routed(route));
        self.send(now, route.decode, Order::Reserve(self.work()));
    }

    /// The current attempt gives no answer. Its legs are closed, and another follows if the bounds allow.
    pub(super) fn fail_attempt(&mut self, now: Time, blamed: NodeId, error: AttemptError) {
        debug_assert!(
            self.phase().is_live() && self.phase.speaker().is_some(),
            "no attempt to fail"
        );
        self.last_error = Some(error);
        if error.is_fault() {
            self.faults = self.faults.saturating_add(1);
            self.without_token += u32::from(error == AttemptError::NoToken);
        }
        if error.is_fault() || error == AttemptError::Refused(Refusal::Draining) {
            self.avoid.insert(blamed);
        }
        if let (Phase::Pulling(p), AttemptError::PullFailed | AttemptError::NoProgress(_)) =
            (&self.phase, error)
        {
            // Either end may be the broken one.
            self.avoid.extend(p.route.workers());
        }
        let outcome = self.outcome_of_failure(now, error);
        let retried = outcome.is_none();
        self.say(
            now,
            Happening::AttemptFailed {
                worker: blamed,
                error,
                retried,
            },
        );
        match outcome {
            Some(outcome) => self.settle(now, outcome),
            None => self.requeue(now, error),
        }
    }

    /// The outcome that a failed attempt leaves, or `None` if another is to follow.
    fn outcome_of_failure(&self, now: Time, error: AttemptError) -> Option<Outcome> {
        if now >= self.spec.deadline || self.is_whole() {
            return Some(self.outcome_at_deadline());
        }
        if error == AttemptError::Refused(Refusal::TooLarge) {
            return Some(Outcome::Failed(Failure::TooLarge));
        }
        // The same tokens give the same numbers on every worker: what fails on two is not tried on all.
        let is_hopeless = self.without_token > 1;
        (is_hopeless || self.faults >= self.limits.max_faults)
            .then_some(Outcome::Failed(Failure::Attempts(error)))
    }

    /// Every token that was asked for is delivered; only the word that this is all may be missing.
    pub(super) fn is_whole(&self) -> bool {
        self.delivered > 0 && self.delivered >= self.spec.max_new
    }

    /// What the room has come to if nothing more happens.
    pub(super) fn outcome_at_deadline(&self) -> Outcome {
        match self.is_whole() {
            true => Outcome::Completed(Finish::Length),
            false => Outcome::Expired(self.phase()),
        }
    }

    /// The next generation. After a fault it asks at once; after a lack of credit it pauses, so that a worker
    /// that is full is not asked in a circle.
    fn requeue(&mut self, now: Time, error: AttemptError) {
        self.close_current_legs(now);
        if !planted!(RetryReusesRoom) {
            self.generation = self.generation.next();
        }
        if planted!(DeadlineRestarts) {
            self.spec.deadline = now + (self.spec.deadline - self.born);
        }
        let pause_until = (!error.is_fault()).then(|| now + self.next_pause());
        let deadline = self.next_credit_by(now, error);
        self.enter(
            now,
            Phase::Queued(Queued {
                deadline,
                pause_until,
            }),
            Why::Retry(error),
        );
        if pause_until.is_none() {
            self.enqueue();
        }
    }

    /// How long the next attempt may wait for credit. One that was only refused has waited all the while. An answer that
    /// the client has begun to read waits as long as the request may take: it is not told to come again.
    fn next_credit_by(&self, now: Time, error: AttemptError) -> Deadline {
        match &self.phase {
            _ if self.delivered > 0 => Deadline::after(now, self.spec.deadline - now),
            Phase::Reserving(p) if !error.is_fault() => p.credit_by,
            _ => Deadline::after(now, self.limits.queue),
        }
    }

    fn next_pause(&mut self) -> Span {
        let doublings = self.refusals.min(32);
        self.refusals = self.refusals.saturating_add(1);
        let pause = (0..doublings).fold(self.limits.requeue_first, |pause, _| pause.doubled());
        pause.min(self.limits.requeue_max)
    }

    /// Fixes the outcome, answers at once, and begins to drain. The only place where an outcome is set; a second one
    /// changes nothing (INV-03).
    pub(super) fn settle(&mut self, now: Time, outcome: Outcome) {
        debug_assert!(self.outcome.is_none(), "a second outcome");
        if self.outcome.is_some() {
            return;
        }
        self.outcome = Some(outcome);
        self.outbox.command(Command::Answer(outcome));
        if let Phase::Queued(Queued {
            pause_until: None, ..
        }) = self.phase
        {
            self.outbox.command(Command::LeaveQueue {
                attempt: self.attempt(),
            });
        }
        self.close_current_legs(now);
        self.enter(now, Phase::Draining, Why::Outcome(outcome));
        self.end_if_returned(now);
    }
}
