//! What happened to a room: the one source of its spans, metrics, logs and of the live view.

use crate::id::{Generation, NodeId, RoomId};
use crate::input::Route;
use crate::outcome::{AttemptError, Outcome};
use crate::phase::PhaseKind;
use crate::time::{Span, Time};

/// One thing that happened.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct Event {
    /// When.
    pub at: Time,
    /// To which room.
    pub room: RoomId,
    /// In which attempt.
    pub generation: Generation,
    /// What.
    pub what: Happening,
}

/// What happened. Closed: whoever adds one says how it is shown.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Happening {
    /// The phase changed.
    Transition(Transition),
    /// The attempt ended without an answer.
    AttemptFailed {
        /// The worker that is blamed.
        worker: NodeId,
        /// Why.
        error: AttemptError,
        /// Whether another attempt follows.
        retried: bool,
    },
    /// The desk granted credit: the workers of the attempt.
    Routed(Route),
    /// Decode granted blocks and a slot.
    Granted {
        /// The worker.
        worker: NodeId,
        /// Blocks from the beginning whose contents it has already: they need not be moved to it.
        cached_blocks: u32,
    },
    /// A chunk of the prompt is computed.
    Computed {
        /// The worker.
        worker: NodeId,
        /// Positions done, of the attempt.
        positions: u32,
        /// Positions in all.
        of: u32,
    },
    /// Prefill offers the KV.
    Published {
        /// The worker.
        worker: NodeId,
    },
    /// New tokens for the client.
    Delivered {
        /// The place of the first of them in the whole answer: 0 is the first token.
        from: u32,
        /// How many.
        count: u32,
    },
    /// The answer is paused: its reader has not taken enough of it.
    Paused,
    /// It goes on.
    Resumed,
    /// A worker was first told of the attempt, and so may hold a lease.
    LegOpened {
        /// The worker.
        worker: NodeId,
    },
    /// A lease is proven returned.
    LegReturned {
        /// The worker.
        worker: NodeId,
        /// Of which attempt.
        of: Generation,
        /// How that is known.
        by: Proof,
    },
    /// A worker was told once more to return a lease: it did not answer in time.
    ToldAgain {
        /// The worker.
        worker: NodeId,
        /// Of which attempt.
        of: Generation,
        /// How often it was told by now.
        told: u32,
    },
    /// A lease is not proven returned after [`Limits::drain_overdue`](crate::Limits::drain_overdue).
    DrainOverdue {
        /// The worker.
        worker: NodeId,
        /// Of which attempt.
        of: Generation,
        /// How often it was told.
        told: u32,
    },
    /// The worker is to be fenced for a lease that it does not return.
    Fenced {
        /// The worker.
        worker: NodeId,
        /// Of which attempt.
        of: Generation,
    },
}

/// A step from one phase to another.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct Transition {
    /// The phase left.
    pub from: PhaseKind,
    /// The phase entered.
    pub to: PhaseKind,
    /// What led to it.
    pub why: Why,
    /// How long the phase left had lasted.
    pub lasted: Span,
}

/// What led from one phase to another.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum Why {
    /// Credit was granted.
    Admitted,
    /// Decode granted.
    Reserved,
    /// Prefill published, and the first token is here.
    Published,
    /// Decode has the KV.
    Pulled,
    /// A mixed worker has computed the prompt.
    FirstToken,
    /// The attempt failed; the next one begins.
    Retry(AttemptError),
    /// The outcome was fixed.
    Outcome(Outcome),
    /// Every lease is proven returned.
    Returned,
}

/// How it is known that a worker holds no lease for an attempt any more.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum Proof {
    /// It said so.
    Closed,
    /// It never granted one.
    Refused,
    /// Its answer to a digest did not name it.
    NotHeld,
    /// Its link is fenced.
    Fenced,
}
