//! The room at its owner: one sequence of one request, from the queue to the last lease proven returned.
//!
//! ```text
//!   Enqueue     Reserve      Prefill        Pull        (Release)
//!      │           │            │             │             │
//!   Queued ──▶ Reserving ──▶ Prefilling ──▶ Pulling ──▶ Decoding
//!      ▲           │            │   └─ mixed worker ─────▶  │
//!      └───────────┴────────────┴──attempt failed───────────┤   next generation
//!                                                           │
//!   any of these ──outcome fixed: Answer──▶ Draining ◀──────┘
//!                                              │ every leg proven returned
//!                                              ▼
//!                                            Ended
//! ```
//!
//! * The outcome is fixed once; the answer goes out with it, before any lease is back (INV-03, INV-05).
//! * A failed attempt closes its legs, and they are drained beside the next one (`leg`).
//! * Whoever speaks of another generation than the current one, of a worker that is not in it, or out of turn, changes
//!   nothing and is counted (INV-07).
//!
//! Every wait ends by itself (INV-04). What moves a deadline is counted: positions of the prompt, tokens of the answer.
//!
//! ```text
//!   phase        waits for                ended by                            then
//!   any live     an answer                the request's deadline              Expired, or whole but for the last word
//!   Queued       credit                   queue; the request's, if begun      NoCredit, or the last fault
//!   Reserving    decode's grant           reserve                             next attempt
//!   Prefilling   KV and first token       prefill_stall, anew with progress   next attempt
//!   Pulling      the KV at decode         pull                                next attempt
//!   Decoding     the next token           token_stall, anew with each         next attempt
//!    paused       the reader               the request's deadline              Expired
//!   a leg that   proof that the lease     drain_fence, anew while it is said  the worker is fenced, again and again
//!    closes       is returned              to be held, but at most drain_max   until that is reported
//! ```

mod allowance;
mod attempt;
mod deadline;
mod leg;
mod legs;
mod outbox;
mod reports;
mod spec;
mod state;
mod timeouts;
mod waits;

use std::collections::BTreeSet;

use crate::command::{Command, Order};
use crate::config::Limits;
use crate::event::{Event, Happening, Why};
use crate::id::{Attempt, Generation, NodeId, RoomId};
use crate::input::Input;
use crate::outcome::{AttemptError, Outcome};
use crate::phase::PhaseKind;
use crate::time::Time;

use deadline::Deadline;
use leg::{Leg, LegState};
use outbox::Outbox;
pub use spec::{Inherited, LegView, RoomSpec};
use state::{Phase, Queued};
pub use waits::WaitsFor;

/// One sequence of one request, at the gateway that owns it.
///
/// After every [`handle_input`](Self::handle_input) and [`handle_timeout`](Self::handle_timeout), take
/// [`poll_command`](Self::poll_command) and [`poll_event`](Self::poll_event) until they are empty, then arm
/// [`poll_timeout`](Self::poll_timeout).
#[derive(Clone, Debug)]
pub struct Room {
    id: RoomId,
    spec: RoomSpec,
    limits: Limits,
    born: Time,
    generation: Generation,
    phase: Phase,
    entered: Time,
    legs: Vec<Leg>,
    delivered: u32,
    /// Of those, tokens that the reader has taken.
    read: u32,
    /// What the current attempt's work is allowed at most: see [`Work::until`](crate::Work::until).
    allowed: u32,
    /// Attempts that failed by a fault.
    faults: u32,
    /// Of those, attempts in which the model had no next token.
    without_token: u32,
    /// Attempts that failed for lack of credit, since decode last gave a token.
    refusals: u32,
    last_error: Option<AttemptError>,
    avoid: BTreeSet<NodeId>,
    outcome: Option<Outcome>,
    stale_inputs: u64,
    outbox: Outbox,
}

impl Room {
    /// A new room, which asks for credit.
    #[must_use]
    pub fn new(id: RoomId, spec: RoomSpec, limits: &Limits, now: Time) -> Self {
        let queued = Queued {
            deadline: Deadline::after(now, limits.queue),
            pause_until: None,
        };
        let mut room = Self::bare(id, spec, limits, now, Phase::Queued(queued));
        room.enqueue();
        room
    }

    /// The room of an owner that died: born draining, with what the supervisor knows of its legs.
    #[must_use]
    pub fn adopt(id: RoomId, inherited: Inherited, limits: &Limits, now: Time) -> Self {
        let spec = RoomSpec {
            positions: 0,
            max_new: 0,
            deadline: now,
            priority: Default::default(),
            share: Default::default(),
        };
        let mut room = Self::bare(id, spec, limits, now, Phase::Draining);
        room.generation = inherited.generation;
        room.outcome = Some(inherited.outcome);
        if !inherited.answered {
            room.outbox.command(Command::Answer(inherited.outcome));
        }
        room.outbox.command(Command::LeaveQueue {
            attempt: room.attempt(),
        });
        for (worker, generation) in inherited.legs {
            if room.leg_index(worker, generation).is_none() {
                room.legs.push(Leg {
                    worker,
                    generation,
                    state: LegState::Open,
                });
                room.tell_to_return(room.legs.len() - 1, Order::Close, now);
            }
        }
        room.end_if_returned(now);
        room
    }

    fn bare(id: RoomId, spec: RoomSpec, limits: &Limits, now: Time, phase: Phase) -> Self {
        Self {
            id,
            spec,
            limits: *limits,
            born: now,
            generation: Generation::FIRST,
            phase,
            entered: now,
            legs: Vec::new(),
            delivered: 0,
            read: 0,
            allowed: 0,
            faults: 0,
            without_token: 0,
            refusals: 0,
            last_error: None,
            avoid: BTreeSet::new(),
            outcome: None,
            stale_inputs: 0,
            outbox: Outbox::default(),
        }
    }

    /// Takes one input.
    pub fn handle_input(&mut self, now: Time, input: Input) {
        match input {
            Input::Admitted { generation, route } if self.is_queued_as(generation) => self.admit(now, route),
            Input::NotAdmitted { generation, failure } if self.is_queued_as(generation) => {
                self.settle(now, Outcome::Failed(failure));
            }
            Input::Admitted { .. } | Input::NotAdmitted { .. } => self.count_stale(),
            Input::FromWorker {
                worker,
                generation,
                report,
            } => {
                self.handle_report(now, worker, generation, report);
            }
            Input::WorkerLost { worker } => self.worker_lost(now, worker),
            Input::Read { tokens } => self.reader_took(now, tokens),
            Input::StopStringFound if self.phase().is_live() && self.delivered > 0 => {
                self.settle(now, Outcome::Completed(crate::Finish::Stop));
            }
            Input::Abort(by) if self.phase().is_live() => self.settle(now, Outcome::Aborted(by)),
            // Late by nature, and without effect: the outcome is fixed.
            Input::StopStringFound | Input::Abort(_) => {}
        }
        self.check();
    }

    /// The next thing to do, in order.
    pub fn poll_command(&mut self) -> Option<Command> {
        self.outbox.commands.pop_front()
    }

    /// The next thing that happened, in order.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.outbox.events.pop_front()
    }

    fn attempt(&self) -> Attempt {
        Attempt {
            room: self.id,
            generation: self.generation,
        }
    }

    fn is_queued_as(&self, generation: Generation) -> bool {
        matches!(
            self.phase,
            Phase::Queued(Queued {
                pause_until: None,
                ..
            })
        ) && generation == self.generation
    }

    fn count_stale(&mut self) {
        self.stale_inputs = self.stale_inputs.saturating_add(1);
    }

    fn say(&mut self, now: Time, what: Happening) {
        self.outbox.event(Event {
            at: now,
            room: self.id,
            generation: self.generation,
            what,
        });
    }

    fn enter(&mut self, now: Time, phase: Phase, why: Why) {
        let (from, to) = (self.phase.kind(), phase.kind());
        debug_assert!(from.may_become(to), "{from} may not become {to}");
        let lasted = now - self.entered;
        self.phase = phase;
        self.entered = now;
        self.say(
            now,
            Happening::Transition(crate::event::Transition {
                from,
                to,
                why,
                lasted,
            }),
        );
    }

    fn end_if_returned(&mut self, now: Time) {
        if matches!(self.phase, Phase::Draining) && self.legs.is_empty() {
            self.enter(now, Phase::Ended, Why::Returned);
            self.outbox.command(Command::End);
        }
    }

    /// What must hold between any two inputs.
    fn check(&self) {
        let kind = self.phase();
        debug_assert_eq!(
            self.outcome.is_some(),
            !kind.is_live(),
            "the outcome is fixed by draining"
        );
        debug_assert!(
            kind != PhaseKind::Ended || self.legs.is_empty(),
            "ended with a lease out"
        );
        debug_assert!(
            kind == PhaseKind::Ended || self.poll_timeout().is_some(),
            "nothing would end {kind}"
        );
        debug_assert!(
            self.delivered <= self.spec.max_new || !kind.is_live(),
            "more delivered than allowed"
        );
    }
}
