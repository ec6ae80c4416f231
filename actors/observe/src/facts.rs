//! What is fixed about a room, or a stay, when it is opened.

use std::sync::Arc;

use room::{Attempt, NodeId, Priority, RoomId, Span, Time};

use crate::event::Text;
use crate::ids::Trace;

/// How a request came to be a room: lengths of what lies before its opening, one after the other.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub struct Prepared {
    /// From the door's first look at the request to its opening.
    pub in_all: Span,
    /// Of that: making the prompt of the conversation. Comes before the tokens.
    pub render: Span,
    /// Of that: making tokens of the prompt.
    pub tokenise: Span,
}

/// How tokens are drawn, as the client asked for it.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Drawing {
    /// Its temperature.
    pub temperature: f32,
    /// Its nucleus.
    pub top_p: f32,
    /// Its seed.
    pub seed: u64,
}

/// What is known of a room from its opening on, at its owner.
#[derive(Clone, PartialEq, Debug)]
pub struct Facts {
    /// Which.
    pub room: RoomId,
    /// The first room of the same request: names the request's span.
    pub first: RoomId,
    /// Which of the request's answers it is.
    pub index: u32,
    /// How many the request has.
    pub of: u32,
    /// The request's name at the door.
    pub request_id: Text,
    /// The trace it belongs to.
    pub trace: Trace,
    /// The model that is asked.
    pub model: Text,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Tokens of the answer at most.
    pub max_tokens: u32,
    /// How they are drawn.
    pub drawing: Drawing,
    /// How urgent it is.
    pub priority: Priority,
    /// When it was opened.
    pub opened: Time,
    /// What came before.
    pub prepared: Prepared,
    /// When the request ends, whatever else.
    pub deadline: Time,
}

impl Facts {
    /// When the door took the request in: what latencies are counted from.
    #[must_use]
    pub fn arrived(&self) -> Time {
        Time {
            micros: self.opened.micros.saturating_sub(self.prepared.in_all.micros),
        }
    }
}

/// What is known of a stay from its opening on, at its worker.
#[derive(Clone, PartialEq, Debug)]
pub struct StayFacts {
    /// Whose stay. Its owner is the room's gateway.
    pub attempt: Attempt,
    /// The worker's incarnation.
    pub worker: NodeId,
    /// The worker's name.
    pub name: Text,
    /// The trace it belongs to, with the owner's request span for a parent; none if its owner said none.
    pub trace: Option<Trace>,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Positions to have KV for: the prompt and what was delivered before.
    pub positions: u32,
    /// Tokens of the answer at most, from here on.
    pub max_tokens: u32,
    /// How urgent it is.
    pub priority: u8,
    /// When it came.
    pub opened: Time,
    /// When its request ends, on this worker's clock.
    pub deadline: Time,
}

/// Facts are shared by all that is said of their room.
pub type SharedFacts = Arc<Facts>;
