//! What is kept of one room, at its owner's gateway.

use std::fmt;

use room::{Generation, Happening, NodeId, Outcome, PhaseKind, Route, Span, Time};

use super::kept::Kept;
use super::stream::Stream;
use crate::event::{RoomEvent, RoomWhat};
use crate::facts::{Facts, SharedFacts};

/// A room's history. Made of its events alone.
#[derive(Clone, PartialEq, Debug)]
pub struct RoomHistory {
    facts: SharedFacts,
    kept: Kept<RoomEvent>,
    state: RoomState,
    latest: Time,
}

/// What a room's events add up to.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct RoomState {
    /// Its current or last attempt.
    pub generation: Generation,
    /// Where it is.
    pub phase: PhaseKind,
    /// Since when.
    pub entered: Time,
    /// The live phase that it left for good; none while it is live.
    pub ended_in: Option<PhaseKind>,
    /// The outcome and when it was fixed, once that is so.
    pub outcome: Option<(Outcome, Time)>,
    /// When nothing of it was left.
    pub ended: Option<Time>,
    /// Attempts so far.
    pub attempts: u32,
    /// The workers of its current or last attempt that got credit.
    pub route: Option<Route>,
    /// How long it has waited for credit in all, up to the last time that it got some.
    pub queued: Span,
    /// Tokens of the prompt that did not have to be computed.
    pub cached_tokens: u32,
    /// Whether a worker was fenced for a lease of it.
    pub fenced: bool,
    /// The workers that were told of it.
    pub workers: Workers,
    /// How its tokens came.
    pub stream: Stream,
}

impl RoomState {
    /// From its arrival at the door to its first token.
    #[must_use]
    pub fn to_first_token(&self, facts: &Facts) -> Option<Span> {
        self.stream.first.map(|first| first - facts.arrived())
    }

    /// From its arrival at the door to the outcome.
    #[must_use]
    pub fn to_outcome(&self, facts: &Facts) -> Option<Span> {
        self.outcome.map(|(_, at)| at - facts.arrived())
    }
}

/// Workers in the order in which they were met; of a room that met many, the first ones.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub struct Workers {
    met: [Option<NodeId>; Self::MOST],
}

impl fmt::Display for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, worker) in self.iter().enumerate() {
            let between = if place == 0 { "" } else { "," };
            write!(f, "{between}{worker}")?;
        }
        Ok(())
    }
}

impl Workers {
    /// How many are remembered.
    pub const MOST: usize = 8;

    fn meet(&mut self, worker: NodeId) {
        if self.iter().all(|known| known != worker)
            && let Some(free) = self.met.iter_mut().find(|place| place.is_none())
        {
            *free = Some(worker);
        }
    }

    /// Each once.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> {
        self.met.into_iter().flatten()
    }
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
        };
        let mut kept = Kept::default();
        kept.milestone(opened);
        Self {
            latest: facts.opened,
            facts,
            kept,
            state,
        }
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
            RoomWhat::Opened(_)
            | RoomWhat::Moved(_)
            | RoomWhat::NotSent { .. }
            | RoomWhat::TimerFired { .. }
            | RoomWhat::OwnerSilent { .. } => {}
        }
        self.kept.milestone(event.clone());
        None
    }

    fn happened(&mut self, event: &RoomEvent, happening: &Happening) -> Option<Span> {
        match happening {
            Happening::Computed { .. } => {
                self.kept.chunk(event.clone());
                return None;
            }
            Happening::Delivered { count, .. } => {
                let gap = self.state.stream.batch(event.at, *count);
                if gap.is_none_or(|gap| gap >= Stream::STALL) {
                    self.kept.chunk(event.clone());
                }
                return gap;
            }
            Happening::Transition(step) => {
                self.state.generation = event.generation;
                if step.to == PhaseKind::Queued {
                    self.state.attempts = self.state.attempts.saturating_add(1);
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
            Happening::AttemptFailed { .. }
            | Happening::Granted { .. }
            | Happening::Published { .. }
            | Happening::Paused
            | Happening::Resumed
            | Happening::LegReturned { .. }
            | Happening::ToldAgain { .. }
            | Happening::DrainOverdue { .. } => {}
        }
        self.kept.milestone(event.clone());
        None
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
}
