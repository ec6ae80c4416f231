//! What workers say. One table: whose turn it is in which phase, and what its word does.

use crate::command::{Command, Credit, Order};
use crate::event::{Happening, Proof, Why};
use crate::id::{Generation, NodeId};
use crate::input::{Report, Route};
use crate::outcome::{AttemptError, Finish, Outcome, Refusal};
use crate::phase::PhaseKind;
use crate::room::Room;
use crate::room::deadline::Deadline;
use crate::room::leg::{Leg, LegState};
use crate::room::state::{Decoding, Phase, Prefilling, Pulling};
use crate::time::Time;

impl Room {
    pub(super) fn handle_report(&mut self, now: Time, worker: NodeId, of: Generation, report: Report) {
        let of = if planted!(GenerationNotChecked) {
            self.generation
        } else {
            of
        };
        let Some(index) = self.leg_index(worker, of) else {
            return self.count_stale();
        };
        match self.legs[index].state {
            LegState::Promised => self.count_stale(),
            LegState::Closing(_) => self.report_while_closing(now, index, report),
            LegState::Open => self.report_while_open(now, index, report),
        }
    }

    /// From a worker that was told to return its lease, only the proof counts.
    fn report_while_closing(&mut self, now: Time, index: usize, report: Report) {
        match report {
            Report::Finished { finish, .. } if planted!(SuccessOverwritesAbort) => self.succeed_late(finish),
            Report::Closed => self.leg_returned(now, index, Some(Proof::Closed)),
            Report::NotHeld => self.leg_returned(now, index, Some(Proof::NotHeld)),
            Report::Held => {
                if let LegState::Closing(closing) = &mut self.legs[index].state {
                    closing.is_held(&self.limits, now);
                }
            }
            _ => self.count_stale(),
        }
    }

    /// Only a planted bug calls it.
    fn succeed_late(&mut self, finish: Finish) {
        if matches!(self.outcome, Some(Outcome::Aborted(_))) {
            self.outcome = Some(Outcome::Completed(finish));
            self.outbox.command(Command::Answer(Outcome::Completed(finish)));
        }
    }

    /// From any worker of the current attempt: the end of its part. From the one whose turn it is: the rest.
    fn report_while_open(&mut self, now: Time, index: usize, report: Report) {
        let worker = self.legs[index].worker;
        match report {
            Report::Failed(error) => self.fail_attempt(now, worker, error),
            Report::Closed | Report::NotHeld => {
                let proof = if report == Report::Closed {
                    Proof::Closed
                } else {
                    Proof::NotHeld
                };
                self.leg_returned(now, index, Some(proof));
                self.fail_attempt(now, worker, AttemptError::UnknownAttempt);
            }
            Report::Held => {}
            _ if self.phase.speaker() != Some(worker) => self.count_stale(),
            Report::Refused(why) => self.refused(now, index, why),
            Report::Finished { finish, total } => self.finished(now, worker, finish, total),
            Report::Tokens { from, count } => self.tokens(now, worker, from, count),
            Report::Progress { positions } => self.progress(now, positions),
            Report::Reserved { .. } | Report::Published | Report::Pulled => self.step(now, report),
        }
    }

    /// The reports that belong to exactly one phase.
    fn step(&mut self, now: Time, report: Report) {
        match (&mut self.phase, report) {
            (Phase::Reserving(p), Report::Reserved { cached_blocks }) => {
                let route = p.route;
                self.begin_prefill(now, route, cached_blocks);
            }
            (Phase::Prefilling(p), Report::Published) if !p.published && !p.route.is_mixed() => {
                p.published = true;
                p.deadline = Deadline::after(now, self.limits.prefill_stall);
                let worker = p.route.prefill;
                self.say(now, Happening::Published { worker });
                self.leave_prefill(now);
            }
            (Phase::Pulling(p), Report::Pulled) => {
                let route = p.route;
                if let Some(index) = self.leg_index(route.prefill, self.generation) {
                    self.tell_to_return(index, Order::Release, now);
                }
                self.begin_decode(now, route.decode, Why::Pulled);
            }
            _ => self.count_stale(),
        }
    }

    fn begin_prefill(&mut self, now: Time, route: Route, cached_blocks: u32) {
        let phase = Prefilling {
            deadline: Deadline::after(now, self.limits.prefill_stall),
            route,
            computed: 0,
            sampled: false,
            published: false,
        };
        self.say(
            now,
            Happening::Granted {
                worker: route.decode,
                cached_blocks,
            },
        );
        self.enter(now, Phase::Prefilling(phase), Why::Reserved);
        let order = Order::Prefill {
            work: self.work(),
            decode_has_blocks: cached_blocks,
            then_decode: route.is_mixed(),
        };
        self.send(now, route.prefill, order);
    }

    /// Goes on once both the KV and the first token are here: decode continues from that token. On a mixed
    /// worker there is nothing to publish.
    fn leave_prefill(&mut self, now: Time) {
        let Phase::Prefilling(p) = &self.phase else { return };
        let route = p.route;
        if !p.sampled || !(p.published || route.is_mixed()) {
            return;
        }
        let attempt = self.attempt();
        self.outbox.command(Command::GiveBack {
            attempt,
            worker: route.prefill,
            credit: Credit::Compute,
        });
        if route.is_mixed() {
            return self.begin_decode(now, route.decode, Why::FirstToken);
        }
        let deadline = Deadline::after(now, self.limits.pull);
        self.enter(now, Phase::Pulling(Pulling { deadline, route }), Why::Published);
        self.send(now, route.decode, Order::Pull { from: route.prefill });
        if planted!(ReleasedBeforePulled)
            && let Some(index) = self.leg_index(route.prefill, self.generation)
        {
            self.tell_to_return(index, Order::Release, now);
        }
    }

    fn begin_decode(&mut self, now: Time, worker: NodeId, why: Why) {
        let deadline = self.token_deadline(now);
        self.enter(now, Phase::Decoding(Decoding { deadline, worker }), why);
        self.got_ahead(now);
    }

    /// A refused first order leaves no lease behind. Where the worker had granted something before, it may.
    fn refused(&mut self, now: Time, index: usize, why: Refusal) {
        let leg = &self.legs[index];
        let worker = leg.worker;
        let first_order = match &self.phase {
            Phase::Reserving(_) => true,
            Phase::Prefilling(p) => !p.route.is_mixed(),
            _ => false,
        };
        if first_order && why != Refusal::OutOfOrder {
            self.leg_returned(now, index, Some(Proof::Refused));
        }
        self.fail_attempt(now, worker, AttemptError::Refused(why));
    }

    /// Progress counts only where something new is done, and there is no more of it than there are positions.
    fn progress(&mut self, now: Time, positions: u32) {
        let of = self.work().positions;
        let positions = positions.min(of);
        match &mut self.phase {
            Phase::Prefilling(p) if positions > p.computed => {
                p.computed = positions;
                p.deadline = Deadline::after(now, self.limits.prefill_stall);
                let worker = p.route.prefill;
                self.say(
                    now,
                    Happening::Computed {
                        worker,
                        positions,
                        of,
                    },
                );
            }
            _ => self.count_stale(),
        }
    }

    fn tokens(&mut self, now: Time, worker: NodeId, from: u32, count: u32) {
        let speaks = match &self.phase {
            Phase::Prefilling(p) => !p.sampled,
            Phase::Decoding(_) => true,
            _ => false,
        };
        if !speaks {
            return self.count_stale();
        }
        match self.deliver(now, from, count) {
            Delivery::Gap => self.fail_attempt(now, worker, AttemptError::Gap),
            Delivery::Nothing => self.count_stale(),
            Delivery::Some => self.delivered_more(now),
        }
    }

    fn delivered_more(&mut self, now: Time) {
        let next = self.token_deadline(now);
        match &mut self.phase {
            Phase::Prefilling(p) => {
                p.sampled = true;
                p.deadline = Deadline::after(now, self.limits.prefill_stall);
                self.leave_prefill(now);
            }
            Phase::Decoding(p) => {
                p.deadline = next;
                // There is room for it now. The first token of an attempt shows no such thing, and cost a whole prompt.
                self.refusals = 0;
                self.got_ahead(now);
            }
            _ => {}
        }
    }

    /// Cuts off what was delivered before, and what is beyond the allowed length.
    fn deliver(&mut self, now: Time, from: u32, count: u32) -> Delivery {
        let Some(skip) = self.delivered.checked_sub(from) else {
            return Delivery::Gap;
        };
        let skip = if planted!(RetryForgetsDelivered) { 0 } else { skip };
        let left = self.spec.max_new.saturating_sub(self.delivered);
        let take = count.saturating_sub(skip).min(left);
        if take == 0 {
            return Delivery::Nothing;
        }
        let place = self.delivered;
        self.delivered += take;
        self.say(
            now,
            Happening::Delivered {
                from: place,
                count: take,
            },
        );
        self.outbox.command(Command::Deliver { skip, take });
        Delivery::Some
    }

    /// The answer is whole only if every token of it was delivered.
    fn finished(&mut self, now: Time, worker: NodeId, finish: Finish, total: u32) {
        if !matches!(self.phase(), PhaseKind::Prefilling | PhaseKind::Decoding) {
            return self.count_stale();
        }
        let is_whole = total.min(self.spec.max_new) == self.delivered;
        // What was cut off ended by its length, whatever its worker says.
        let is_cut = total > self.spec.max_new;
        match is_whole {
            true if is_cut => self.settle(now, Outcome::Completed(Finish::Length)),
            true => self.settle(now, Outcome::Completed(finish)),
            false => self.fail_attempt(now, worker, AttemptError::Gap),
        }
    }

    /// The worker is fenced: its leases are returned by their end, whatever it does. An attempt that needs it
    /// has failed.
    pub(super) fn worker_lost(&mut self, now: Time, worker: NodeId) {
        let is_needed = |leg: &Leg| !matches!(leg.state, LegState::Closing(_));
        let needed = self.legs.iter().any(|leg| leg.worker == worker && is_needed(leg));
        while let Some(index) = self.legs.iter().position(|leg| leg.worker == worker) {
            let opened = !matches!(self.legs[index].state, LegState::Promised);
            self.leg_returned(now, index, opened.then_some(Proof::Fenced));
        }
        if needed {
            self.fail_attempt(now, worker, AttemptError::WorkerLost);
        }
    }
}

/// What became of a batch of tokens.
enum Delivery {
    /// New ones went to the client.
    Some,
    /// All of it was known.
    Nothing,
    /// Tokens are missing before it.
    Gap,
}
