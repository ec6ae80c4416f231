//! What happens to a room at its owner's gateway.

use std::fmt;

use ::room::{Generation, Happening, NodeId, Outcome, PhaseKind, RoomId, Span, Time};

use super::Text;
use crate::facts::SharedFacts;

/// One thing that happened to a room.
#[derive(Clone, PartialEq, Debug)]
pub struct RoomEvent {
    /// When.
    pub at: Time,
    /// To which room.
    pub room: RoomId,
    /// In which attempt.
    pub generation: Generation,
    /// What.
    pub what: RoomWhat,
}

/// What happened.
#[derive(Clone, PartialEq, Debug)]
pub enum RoomWhat {
    /// It was opened. The first of its events; the facts have all that is fixed from here on.
    Opened(SharedFacts),
    /// What the room itself says: its phases, attempts, legs, its prompt's chunks and its tokens.
    Room(Happening),
    /// The first worker to compute the prompt found so much of it in its cache.
    Cached {
        /// The worker.
        worker: NodeId,
        /// Tokens of the prompt that need not be computed.
        tokens: u32,
    },
    /// Decode says that it has the KV, and what that took.
    Moved(Moved),
    /// An order could not be sent, or had no content; the room is told that it failed.
    NotSent {
        /// To whom.
        worker: NodeId,
        /// Why.
        why: Text,
    },
    /// A worker says why it gives an attempt up. Told just before the failure that follows from it.
    WorkerSaid {
        /// Which worker.
        worker: NodeId,
        /// Of which attempt.
        generation: Generation,
        /// Why. Comes from a worker, and is as long as a message may be.
        why: Text,
    },
    /// A deadline of the request's rooms has passed, or a worker is to be told again: their owner is told.
    TimerFired {
        /// Where the room was.
        phase: PhaseKind,
    },
    /// The owner does not answer, and is killed.
    OwnerSilent {
        /// Where the room was, as last seen.
        phase: PhaseKind,
    },
    /// The owner is dead; an heir, or in the end the supervisor, drains the room.
    OwnerDied {
        /// Where the room was, as last seen.
        phase: PhaseKind,
        /// Why.
        why: Text,
        /// How many owners died before it.
        deaths: u32,
    },
    /// Heirs died as well: the workers concerned are fenced.
    Buried {
        /// How many workers held something for it.
        workers: u32,
    },
    /// The client was told the outcome. Once a room (INV-05).
    Answered {
        /// Which.
        outcome: Outcome,
        /// Tokens delivered.
        delivered: u32,
    },
    /// Nothing is left of it. The last of its events.
    Ended {
        /// The outcome.
        outcome: Outcome,
    },
}

/// The figures of a pull.
#[derive(Clone, Eq, PartialEq)]
pub struct Moved {
    /// The source.
    pub from: NodeId,
    /// The reader.
    pub to: NodeId,
    /// Bytes of KV.
    pub bytes: u64,
    /// Contiguous pieces they came in.
    pub descriptors: u32,
    /// From the beginning of the read to its end, by the reader's clock.
    pub lasted: Span,
    /// What carried them. Comes from a worker: whoever makes labels of it bounds how many.
    pub transport: Text,
}

impl fmt::Debug for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes in {} pieces from {} to {} by {} in {} us",
            self.bytes, self.descriptors, self.from, self.to, self.transport, self.lasted.micros
        )
    }
}
