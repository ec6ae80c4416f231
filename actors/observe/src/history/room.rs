//! What is kept of one room, at its owner's gateway.

use room::{AttemptError, Generation, Happening, NodeId, Outcome, PhaseKind, Span, Time};

use super::kept::{Ends, Kept};
use super::state::{Failed, RoomState, Workers};
use super::stream::Stream;
use crate::event::{RoomEvent, RoomWhat, Text};
use crate::facts::SharedFacts;
use crate::roster::Roster;

/// Workers whose names are kept with a room.
const NAMES: usize = 64;

/// A room's history. Made of its events, and of what the roster knows when they come of the workers that they mention.
#[derive(Clone, PartialEq, Debug)]
pub struct RoomHistory {
    facts: SharedFacts,
    kept: Kept<RoomEvent>,
    state: RoomState,
    latest: Time,
    roster: Roster,
    names: Vec<(NodeId, Text)>,
    /// Attempts that failed; of one whose worker was lost, how its link ended.
    failed: Ends<(Failed, Option<Text>)>,
}

impl RoomHistory {
    /// That of a room which is opened now.
    #[must_use]
    pub fn new(facts: SharedFacts) -> Self {
        let opened = Self::opening(&facts);
        let state = RoomState {
            generation: Generation::FIRST,
            phase: PhaseKind::Queued,
            entered: facts.opened,
            ended_in: None,
            outcome: None,
            ended: None,
            attempts: 1,
            route: None,
            queued: Span::default(),
            cached_tokens: 0,
            fenced: false,
            workers: Workers::default(),
            stream: Stream::default(),
            faults: 0,
            computed: None,
            failed: None,
        };
        let mut kept = Kept::default();
        kept.milestone(opened);
        Self {
            latest: facts.opened,
            facts,
            kept,
            state,
            roster: Roster::default(),
            names: Vec::new(),
            failed: Ends::new(Kept::<RoomEvent>::MILESTONES),
        }
    }

    /// The same, which asks this roster for the names of workers.
    #[must_use]
    pub fn with_roster(self, roster: Roster) -> Self {
        Self { roster, ..self }
    }

    /// The event that a room begins with.
    #[must_use]
    pub fn opening(facts: &SharedFacts) -> RoomEvent {
        RoomEvent {
            at: facts.opened,
            room: facts.room,
            generation: Generation::FIRST,
            what: RoomWhat::Opened(SharedFacts::clone(facts)),
        }
    }

    /// Another event of this room. Returns, for new tokens, how long after those before them they came.
    pub fn push(&mut self, event: &RoomEvent) -> Option<Span> {
        self.latest = self.latest.max(event.at);
        for worker in mentioned(&event.what).into_iter().flatten() {
            self.learn(worker);
        }
        match &event.what {
            RoomWhat::Room(happening) => return self.happened(event, happening),
            RoomWhat::Cached { tokens, .. } => self.state.cached_tokens = *tokens,
            RoomWhat::OwnerDied { .. } | RoomWhat::Buried { .. } => self.outlived(event.at),
            RoomWhat::Answered { outcome, .. } => self.settled(*outcome, event.at),
            RoomWhat::Ended { outcome } => {
                self.settled(*outcome, event.at);
                self.enter(PhaseKind::Ended, event.at);
                self.state.ended = Some(event.at);
            }
            RoomWhat::TimerFired { .. } => {
                self.kept.repeat(event.clone());
                return None;
            }
            RoomWhat::Opened(_)
            | RoomWhat::Moved(_)
            | RoomWhat::NotSent { .. }
            | RoomWhat::WorkerSaid { .. }
            | RoomWhat::OwnerSilent { .. } => {}
        }
        self.kept.milestone(event.clone());
        None
    }

    fn happened(&mut self, event: &RoomEvent, happening: &Happening) -> Option<Span> {
        match happening {
            Happening::Computed { positions, of, .. } => {
                self.state.computed = Some((*positions, *of));
                self.kept.chunk(event.clone());
                return None;
            }
            Happening::Delivered { count, .. } => {
                let gap = self.state.stream.batch(event.at, *count);
                match gap {
                    None => self.kept.milestone(event.clone()),
                    Some(gap) if gap >= Stream::STALL => self.kept.chunk(event.clone()),
                    Some(_) => {}
                }
                return gap;
            }
            Happening::Paused | Happening::Resumed | Happening::ToldAgain { .. } => {
                self.kept.repeat(event.clone());
                return None;
            }
            Happening::Transition(step) => {
                self.state.generation = event.generation;
                if step.to == PhaseKind::Queued {
                    self.state.attempts = self.state.attempts.saturating_add(1);
                    self.state.computed = None;
                }
                if step.from == PhaseKind::Queued {
                    let queued = &mut self.state.queued;
                    queued.micros = queued.micros.saturating_add(step.lasted.micros);
                }
                self.enter(step.to, event.at);
            }
            Happening::LegOpened { worker } => self.state.workers.meet(*worker),
            Happening::Routed(route) => self.state.route = Some(*route),
            Happening::Fenced { .. } => self.state.fenced = true,
            Happening::AttemptFailed { worker, error, .. } => self.attempt_failed(event, *worker, *error),
            Happening::Granted { .. }
            | Happening::Published { .. }
            | Happening::LegReturned { .. }
            | Happening::DrainOverdue { .. } => {}
        }
        self.kept.milestone(event.clone());
        None
    }

    /// Told before the room leaves the phase in which it failed.
    fn attempt_failed(&mut self, event: &RoomEvent, worker: NodeId, error: AttemptError) {
        let state = &mut self.state;
        state.faults = state.faults.saturating_add(u32::from(error.is_fault()));
        let all = self.facts.prompt_tokens.saturating_add(state.stream.tokens);
        let (computed, positions) = state.computed.unwrap_or((0, all));
        let failed = Failed {
            attempt: event.generation,
            worker,
            error,
            phase: state.phase,
            in_phase: event.at - state.entered,
            computed,
            positions,
            delivered: state.stream.tokens,
            silent: self.roster.last_heard(worker).map(|heard| event.at - heard),
        };
        state.failed = Some(failed);
        let is_lost = error == AttemptError::WorkerLost;
        let link_end = is_lost.then(|| self.roster.link_end(worker)).flatten();
        self.failed.push(event.generation.0, (failed, link_end));
    }

    /// A worker that is mentioned is called so for as long as the history is kept.
    fn learn(&mut self, worker: NodeId) {
        if self.names.len() >= NAMES || self.name(worker).is_some() {
            return;
        }
        if let Some(name) = self.roster.name(worker) {
            self.names.push((worker, name));
        }
    }

    fn enter(&mut self, phase: PhaseKind, at: Time) {
        let state = &mut self.state;
        if phase == state.phase {
            return;
        }
        if !phase.is_live() && state.phase.is_live() {
            state.ended_in = Some(state.phase);
        }
        state.phase = phase;
        state.entered = at;
    }

    /// Its owner is dead: what is left of it is drained.
    fn outlived(&mut self, at: Time) {
        if self.state.phase.is_live() {
            self.enter(PhaseKind::Draining, at);
        }
    }

    fn settled(&mut self, outcome: Outcome, at: Time) {
        self.state.outcome.get_or_insert((outcome, at));
    }

    /// What was fixed at its opening.
    #[must_use]
    pub fn facts(&self) -> &SharedFacts {
        &self.facts
    }

    /// Its events, in order, as far as they are kept. The first is its opening.
    #[must_use]
    pub fn events(&self) -> &Kept<RoomEvent> {
        &self.kept
    }

    /// When the last of its events was.
    #[must_use]
    pub fn latest(&self) -> Time {
        self.latest
    }

    /// What they add up to.
    #[must_use]
    pub fn state(&self) -> &RoomState {
        &self.state
    }

    /// The workers that its events mention, with their names, as far as they are known: incarnations in the order in which they were met.
    #[must_use]
    pub fn names(&self) -> &[(NodeId, Text)] {
        &self.names
    }

    /// The name of a worker that its events mention.
    #[must_use]
    pub fn name(&self, worker: NodeId) -> Option<&Text> {
        let of = self.names.iter().find(|(node, _)| *node == worker);
        of.map(|(_, name)| name)
    }

    /// Its attempts that failed, in order, as far as their events are kept. Of one whose worker was lost, how its link ended, if that is known.
    pub fn failed(&self) -> impl DoubleEndedIterator<Item = (&Failed, Option<&Text>)> {
        let all = self.failed.iter();
        all.map(|(_, (failed, link_end))| (failed, link_end.as_ref()))
    }
}

/// The workers that an event is about.
fn mentioned(what: &RoomWhat) -> [Option<NodeId>; 2] {
    let one = |worker: &NodeId| [Some(*worker), None];
    match what {
        RoomWhat::Room(happening) => match happening {
            Happening::Routed(route) => [Some(route.prefill), Some(route.decode)],
            Happening::AttemptFailed { worker, .. }
            | Happening::Granted { worker, .. }
            | Happening::Computed { worker, .. }
            | Happening::Published { worker }
            | Happening::LegOpened { worker }
            | Happening::LegReturned { worker, .. }
            | Happening::ToldAgain { worker, .. }
            | Happening::DrainOverdue { worker, .. }
            | Happening::Fenced { worker, .. } => one(worker),
            Happening::Transition(_)
            | Happening::Delivered { .. }
            | Happening::Paused
            | Happening::Resumed => [None, None],
        },
        RoomWhat::Moved(moved) => [Some(moved.from), Some(moved.to)],
        RoomWhat::Cached { worker, .. }
        | RoomWhat::NotSent { worker, .. }
        | RoomWhat::WorkerSaid { worker, .. } => one(worker),
        RoomWhat::Opened(_)
        | RoomWhat::TimerFired { .. }
        | RoomWhat::OwnerSilent { .. }
        | RoomWhat::OwnerDied { .. }
        | RoomWhat::Buried { .. }
        | RoomWhat::Answered { .. }
        | RoomWhat::Ended { .. } => [None, None],
    }
}
