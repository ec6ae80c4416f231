//! What a gateway's rooms add up to.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Unit;
use room::{Happening, Outcome, PhaseKind, Proof, Span, Transition};

use super::families::{
    Counts, Ended, Exemplars, Moved as MovedLabels, OfOutcome, Phase, Reason, Shelf, Spread, Times, TimesBy,
    Transport, Worker, WorkerProof, WorkerReason, long, plain_short, seconds, short,
};
use super::names::Names;
use crate::event::{Moved, RoomEvent, RoomWhat, Text};
use crate::facts::Facts;
use crate::history::{RoomState, Stream};
use crate::labels;

/// All of it.
#[derive(Debug)]
pub(super) struct Rooms {
    pub(super) opened: Counter,
    /// How many have ended. Not shown: with `opened` it makes the number of histories that are open.
    pub(super) ended: Counter,
    outcomes: Counts<Ended>,
    prepare: Times,
    first_token: Times,
    between_tokens: Times,
    lasted: TimesBy<OfOutcome>,
    phases: TimesBy<Phase>,
    prompt_tokens: Counter,
    looked_up: Counter,
    found: Counter,
    answer_tokens: Counter,
    attempts: Attempts,
    leases: Leases,
    pulls: Pulls,
    owners: Owners,
    pauses: Counter,
}

#[derive(Debug)]
struct Attempts {
    failed: Counts<WorkerReason>,
    retried: Counts<Reason>,
    not_sent: Counts<Worker>,
}

#[derive(Debug)]
struct Leases {
    opened: Counts<Worker>,
    returned: Counts<WorkerProof>,
    told_again: Counts<Worker>,
    overdue: Counts<Worker>,
    fences: Counts<Worker>,
}

#[derive(Debug)]
struct Pulls {
    bytes: Counts<MovedLabels>,
    descriptors: Counts<MovedLabels>,
    pulls: Counts<MovedLabels>,
    lasted: Spread<Transport>,
    found_blocks: Counts<Worker>,
}

#[derive(Debug)]
struct Owners {
    timers: Counts<Phase>,
    silent: Counter,
    died: Counter,
    buried: Counter,
}

impl Rooms {
    pub(super) fn new(shelf: &mut Shelf<'_>) -> Self {
        let outcomes: Counts<Ended> = shelf.count("outcomes", "Rooms by their one outcome and its reason");
        for outcome in super::outcomes::outcomes() {
            let (outcome, reason) = labels::outcome(outcome);
            // A series that is there from the start shows its first increase.
            let _ = outcomes.get_or_create(&Ended { outcome, reason });
        }
        let second = Unit::Seconds;
        Self {
            opened: shelf.count("rooms_opened", "Rooms opened"),
            ended: Counter::default(),
            outcomes,
            prepare: shelf.put_in(
                second.clone(),
                "prepare",
                "From the request's arrival to the opening of its room: prompt and tokens are made",
                long(),
            ),
            first_token: shelf.put_in(
                second.clone(),
                "time_to_first_token",
                "From the request's arrival to its first token",
                long(),
            ),
            between_tokens: shelf.put_in(
                second.clone(),
                "inter_token",
                "Between a token, or a batch of them, and the one before",
                short(),
            ),
            lasted: shelf.put_in(
                second.clone(),
                "room",
                "From the request's arrival to the outcome, by outcome",
                TimesBy::new_with_constructor(long),
            ),
            phases: shelf.put_in(
                second,
                "phase",
                "How long a phase lasted that is over, each attempt's by itself",
                TimesBy::new_with_constructor(long),
            ),
            prompt_tokens: shelf.count("prompt_tokens", "Tokens of prompts of rooms that were opened"),
            looked_up: shelf.count(
                "prefix_tokens",
                "Tokens of prompts that a worker has begun to compute: what the share of found ones is taken of",
            ),
            found: shelf.count("prefix_hit_tokens", "Of those, tokens whose KV was there already"),
            answer_tokens: shelf.count("answer_tokens", "Tokens delivered to clients"),
            attempts: Attempts::new(shelf),
            leases: Leases::new(shelf),
            pulls: Pulls::new(shelf),
            owners: Owners::new(shelf),
            pauses: shelf.count(
                "pauses",
                "Times that an answer was paused because its client had not read what there was",
            ),
        }
    }

    /// A worker is linked: what may be blamed on it is a series from the start, and shows its first increase.
    pub(super) fn begins(&self, worker: &Text) {
        let of_worker = Worker {
            worker: Text::clone(worker),
        };
        let leases = &self.leases;
        for family in [&leases.told_again, &leases.overdue, &leases.fences] {
            let _ = family.get_or_create(&of_worker);
        }
        let not_held = WorkerProof {
            worker: Text::clone(worker),
            proof: labels::proof(Proof::NotHeld),
        };
        let _ = leases.returned.get_or_create(&not_held);
        for error in super::outcomes::attempt_errors() {
            let labels = WorkerReason {
                worker: Text::clone(worker),
                reason: labels::attempt_error(error),
            };
            let _ = self.attempts.failed.get_or_create(&labels);
        }
    }

    /// Something happened to a room.
    pub(super) fn told(
        &self,
        event: &RoomEvent,
        facts: &Facts,
        state: &RoomState,
        gap: Option<Span>,
        around: (&Names, &Exemplars),
    ) {
        let (names, exemplars) = around;
        match &event.what {
            RoomWhat::Opened(facts) => {
                self.opened.inc();
                self.prompt_tokens.inc_by(facts.prompt_tokens.into());
                let prepare = seconds(facts.prepared.in_all);
                self.prepare.observe(prepare, exemplars.of(facts), None);
            }
            RoomWhat::Room(happening) => self.happened(happening, facts, state, gap, around),
            RoomWhat::Cached { tokens, .. } => {
                self.looked_up.inc_by(facts.prompt_tokens.into());
                self.found.inc_by((*tokens).min(facts.prompt_tokens).into());
            }
            RoomWhat::Moved(moved) => self.pulls.moved(moved, names),
            RoomWhat::NotSent { worker, .. } => {
                let worker = names.of(*worker);
                self.attempts.not_sent.get_or_create(&Worker { worker }).inc();
            }
            // What follows from it is counted.
            RoomWhat::WorkerSaid { .. } => {}
            RoomWhat::TimerFired { phase } => {
                let phase = phase.name();
                self.owners.timers.get_or_create(&Phase { phase }).inc();
            }
            RoomWhat::OwnerSilent { .. } => {
                self.owners.silent.inc();
            }
            RoomWhat::OwnerDied { .. } => {
                self.owners.died.inc();
            }
            RoomWhat::Buried { .. } => {
                self.owners.buried.inc();
            }
            RoomWhat::Answered { outcome, .. } => self.answered(event, facts, *outcome, exemplars),
            RoomWhat::Ended { .. } => {
                self.ended.inc();
            }
        }
    }

    fn answered(&self, event: &RoomEvent, facts: &Facts, fixed: Outcome, exemplars: &Exemplars) {
        let (outcome, reason) = labels::outcome(fixed);
        self.outcomes.get_or_create(&Ended { outcome, reason }).inc();
        let took = event.at - facts.arrived();
        let exemplar = exemplars.of_room(facts, took, labels::is_in_order(fixed));
        let lasted = self.lasted.get_or_create(&OfOutcome { outcome });
        lasted.observe(seconds(took), exemplar, None);
    }

    fn happened(
        &self,
        happening: &Happening,
        facts: &Facts,
        state: &RoomState,
        gap: Option<Span>,
        (names, exemplars): (&Names, &Exemplars),
    ) {
        match happening {
            Happening::Transition(step) => self.stepped(step, facts, exemplars),
            Happening::AttemptFailed {
                worker,
                error,
                retried,
            } => {
                let (worker, reason) = (names.of(*worker), labels::attempt_error(*error));
                self.attempts
                    .failed
                    .get_or_create(&WorkerReason { worker, reason })
                    .inc();
                if *retried {
                    self.attempts.retried.get_or_create(&Reason { reason }).inc();
                }
            }
            Happening::Granted {
                worker,
                cached_blocks,
            } => {
                let worker = names.of(*worker);
                let found = self.pulls.found_blocks.get_or_create(&Worker { worker });
                found.inc_by((*cached_blocks).into());
            }
            Happening::Delivered { from, count } => {
                self.answer_tokens.inc_by((*count).into());
                if *from == 0
                    && let Some(took) = state.to_first_token(facts)
                {
                    let exemplar = exemplars.of_first_token(facts, took);
                    self.first_token.observe(seconds(took), exemplar, None);
                }
                if let Some(gap) = gap {
                    let stalled = (gap >= Stream::STALL).then(|| exemplars.of(facts)).flatten();
                    self.between_tokens.observe(seconds(gap), stalled, None);
                }
            }
            Happening::Paused => {
                self.pauses.inc();
            }
            Happening::LegOpened { worker } => self.leases.count(&self.leases.opened, names, *worker),
            Happening::LegReturned { worker, by, .. } => {
                let labels = WorkerProof {
                    worker: names.of(*worker),
                    proof: labels::proof(*by),
                };
                self.leases.returned.get_or_create(&labels).inc();
            }
            Happening::ToldAgain { worker, .. } => self.leases.count(&self.leases.told_again, names, *worker),
            Happening::DrainOverdue { worker, .. } => self.leases.count(&self.leases.overdue, names, *worker),
            Happening::Fenced { worker, .. } => self.leases.count(&self.leases.fences, names, *worker),
            Happening::Routed(_)
            | Happening::Computed { .. }
            | Happening::Published { .. }
            | Happening::Resumed => {}
        }
    }

    fn stepped(&self, step: &Transition, facts: &Facts, exemplars: &Exemplars) {
        let phase = step.from.name();
        let lasted = self.phases.get_or_create(&Phase { phase });
        lasted.observe(seconds(step.lasted), exemplars.of(facts), None);
    }
}

impl Attempts {
    fn new(shelf: &mut Shelf<'_>) -> Self {
        Self {
            failed: shelf.count(
                "attempts_failed",
                "Attempts that ended without an answer, by the worker that is blamed and the reason",
            ),
            retried: shelf.count(
                "attempts_retried",
                "Of those, attempts that were followed by another",
            ),
            not_sent: shelf.count(
                "orders_not_sent",
                "Orders to workers that could not be sent, or had no content",
            ),
        }
    }
}

impl Leases {
    fn new(shelf: &mut Shelf<'_>) -> Self {
        Self {
            opened: shelf.count("leases_opened", "Attempts that a worker was first told of"),
            returned: shelf.count(
                "leases_returned",
                "Leases proven returned, by proof: not_held is a digest that made good for a lost message",
            ),
            told_again: shelf.count(
                "closes_repeated",
                "Times that a worker was told once more to return a lease because it did not answer in time",
            ),
            overdue: shelf.count("drains_overdue", "Leases not proven returned in time"),
            fences: shelf.count(
                "fences",
                "Times that a worker was fenced for a lease that it did not return",
            ),
        }
    }

    fn count(&self, family: &Counts<Worker>, names: &Names, worker: room::NodeId) {
        let worker = names.of(worker);
        family.get_or_create(&Worker { worker }).inc();
    }
}

impl Pulls {
    fn new(shelf: &mut Shelf<'_>) -> Self {
        Self {
            bytes: shelf.put_in(
                Unit::Bytes,
                "kv_pulled",
                "KV moved from one worker to another",
                Counts::default(),
            ),
            descriptors: shelf.count("kv_descriptors", "Contiguous pieces it was moved in"),
            pulls: shelf.count("kv_pulls", "Pulls that brought everything"),
            lasted: shelf.put_in(
                Unit::Seconds,
                "kv_pull",
                "How long a pull took that brought everything, by the reader's clock",
                Spread::new_with_constructor(plain_short),
            ),
            found_blocks: shelf.count(
                "kv_blocks_found",
                "Blocks that a decode worker had already, and that were not moved to it",
            ),
        }
    }

    fn moved(&self, moved: &Moved, names: &Names) {
        let transport = names.transport(&moved.transport);
        let (from, to) = names.pair(moved.from, moved.to, &transport);
        let labels = MovedLabels {
            from,
            to,
            transport: transport.clone(),
        };
        self.bytes.get_or_create(&labels).inc_by(moved.bytes);
        self.descriptors
            .get_or_create(&labels)
            .inc_by(moved.descriptors.into());
        self.pulls.get_or_create(&labels).inc();
        let lasted = self.lasted.get_or_create(&Transport { transport });
        lasted.observe(seconds(moved.lasted));
    }
}

impl Owners {
    fn new(shelf: &mut Shelf<'_>) -> Self {
        let timers: Counts<Phase> = shelf.count(
            "room_timers_fired",
            "Timers of rooms that fired, by the phase the room was in: what ends it, a pause that is over, a lease to ask for again",
        );
        for phase in PhaseKind::ALL
            .into_iter()
            .filter(|phase| *phase != PhaseKind::Ended)
        {
            let _ = timers.get_or_create(&Phase { phase: phase.name() });
        }
        Self {
            timers,
            silent: shelf.count(
                "owners_silent",
                "Owners of rooms that did not answer and were killed",
            ),
            died: shelf.count("owners_died", "Rooms whose owner died, each time"),
            buried: shelf.count(
                "rooms_buried",
                "Rooms whose owners died again and again, until their workers were fenced",
            ),
        }
    }
}
