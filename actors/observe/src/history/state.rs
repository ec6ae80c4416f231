//! What a room's events add up to.

use room::{AttemptError, Generation, NodeId, Outcome, PhaseKind, Route, Span, Time};

use super::stream::Stream;
use crate::facts::Facts;

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
    /// Attempts that failed because something is broken, and not for a lack of room: these are bounded.
    pub faults: u32,
    /// Positions of the current attempt that are computed, and how many it has; none before the first are.
    pub computed: Option<(u32, u32)>,
    /// The last attempt that failed.
    pub failed: Option<Failed>,
}

/// An attempt that failed, as it was then.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct Failed {
    /// Which.
    pub attempt: Generation,
    /// The worker that is blamed.
    pub worker: NodeId,
    /// Why.
    pub error: AttemptError,
    /// The phase it was in.
    pub phase: PhaseKind,
    /// For how long.
    pub in_phase: Span,
    /// Positions that were computed: of the prompt, and of what was delivered before.
    pub computed: u32,
    /// How many it had.
    pub positions: u32,
    /// Tokens of the answer that were delivered, by this attempt and those before it.
    pub delivered: u32,
    /// For how long the worker had not been heard; none if that is not known.
    pub silent: Option<Span>,
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

impl Workers {
    /// How many are remembered.
    pub const MOST: usize = 8;

    pub(super) fn meet(&mut self, worker: NodeId) {
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
