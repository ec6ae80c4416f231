//! Which traces are kept. Decided by the owner: when the request comes (the head), and for the rest when the room is over (the tail).

use room::{Outcome, Span};

use crate::facts::Facts;
use crate::history::RoomState;
use crate::ids::Trace;
use crate::labels;

/// What is kept, as configured.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Sampling {
    /// The share of all traces that is kept, from 0 to 1, by the trace's id: nodes agree on it without asking each other.
    pub ratio: f64,
    /// A first token that took this long is kept.
    pub slow_first_token: Span,
    /// An answer that took this long is kept.
    pub slow_total: Span,
}

impl Default for Sampling {
    /// One in a hundred; first tokens that take 5 s, answers that take a minute.
    fn default() -> Self {
        Self {
            ratio: 0.01,
            slow_first_token: Span::from_millis(5_000),
            slow_total: Span::from_millis(60_000),
        }
    }
}

/// Why a trace is kept.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum Keep {
    /// It was decided when the request came.
    Head,
    /// It failed.
    Failed,
    /// A deadline ended it.
    Expired,
    /// It took more than one attempt.
    Migrated,
    /// A worker was fenced for a lease of it.
    Fenced,
    /// Its first token, or the whole of it, took long.
    Slow,
}

impl Keep {
    /// Whether workers do not know of it yet, and have to be told.
    #[must_use]
    pub fn is_late(self) -> bool {
        self != Self::Head
    }

    /// The reason as a label.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::Migrated => "migrated",
            Self::Fenced => "fenced",
            Self::Slow => "slow",
        }
    }
}

impl Sampling {
    /// Marks a trace that is kept from its beginning: the caller said so, or it is one of the configured share.
    #[must_use]
    pub fn head(&self, trace: Trace) -> Trace {
        // The low 56 bits are random by W3C's rules, whoever made the id.
        let place = (trace.id.bits() & LOW) as f64 / (LOW as f64 + 1.0);
        let flag = if place < self.ratio { Trace::SAMPLED } else { 0 };
        Trace {
            flags: trace.flags | flag,
            ..trace
        }
    }

    /// Whether the trace of a room that is over is kept, and why. What was wrong comes first: it says more than that it was drawn.
    #[must_use]
    pub fn tail(&self, facts: &Facts, state: &RoomState) -> Option<Keep> {
        if facts.trace.is_sampled() {
            return Some(Keep::Head);
        }
        let slow = |took: Option<Span>, limit| took.is_some_and(|took| took >= limit);
        match state.outcome {
            Some((Outcome::Expired(_), _)) => Some(Keep::Expired),
            Some((outcome, _)) if !labels::is_in_order(outcome) => Some(Keep::Failed),
            _ if state.fenced => Some(Keep::Fenced),
            _ if state.attempts > 1 => Some(Keep::Migrated),
            _ if slow(state.to_first_token(facts), self.slow_first_token) => Some(Keep::Slow),
            _ if slow(state.to_outcome(facts), self.slow_total) => Some(Keep::Slow),
            _ => None,
        }
    }
}

const LOW: u128 = (1 << 56) - 1;
