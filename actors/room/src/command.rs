//! What a room wants done.

use std::collections::BTreeSet;

use crate::fair::Share;
use crate::id::{Attempt, NodeId};
use crate::outcome::Outcome;
use crate::time::Time;

/// One output of a [`Room`](crate::Room). The caller performs them in order, and adds the content.
#[derive(Clone, Eq, PartialEq, Debug)]
pub enum Command {
    /// Ask the desk for credit.
    Enqueue(Bid),
    /// Take the attempt out of the desk's queue, and give back what it may have been granted in the meantime.
    LeaveQueue {
        /// The attempt that was enqueued.
        attempt: Attempt,
    },
    /// Credit is not needed any more.
    GiveBack {
        /// The attempt it was granted to.
        attempt: Attempt,
        /// At which worker.
        worker: NodeId,
        /// How much of it.
        credit: Credit,
    },
    /// Send an order to a worker.
    Send {
        /// The worker.
        to: NodeId,
        /// The attempt it is about.
        attempt: Attempt,
        /// The order.
        order: Order,
    },
    /// Of the tokens in the report that was just handled, give the client these. The rest is a repetition,
    /// or beyond the allowed length.
    Deliver {
        /// How many of the batch to leave out at its beginning.
        skip: u32,
        /// How many to take then.
        take: u32,
    },
    /// Cut the worker off: it did not prove a lease returned in time. Answer with
    /// [`Input::WorkerLost`](crate::Input::WorkerLost); repeated until then.
    Fence {
        /// The worker.
        worker: NodeId,
    },
    /// Tell the client. Exactly one per room, before the leases are proven returned.
    Answer(Outcome),
    /// All is proven returned; forget the room. The last command.
    End,
}

/// An order to a worker about one attempt.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum Order {
    /// To decode: grant blocks and a slot.
    Reserve(Work),
    /// To prefill: compute the prompt and what was delivered of the answer, and sample the next token.
    Prefill {
        /// How much.
        work: Work,
        /// How many blocks from the beginning decode holds already: they need not be offered.
        decode_has_blocks: u32,
        /// Go on to decode under the same lease, instead of publishing.
        then_decode: bool,
    },
    /// To decode: pull the KV, then generate.
    Pull {
        /// Who offers it.
        from: NodeId,
    },
    /// To decode: the answer may go on so far. Never less far than said before of the same attempt.
    Allow {
        /// As [`Work::until`].
        until: u32,
    },
    /// To prefill: decode has the KV; the blocks may become cache.
    Release,
    /// To either: stop, and give the blocks back.
    Close,
}

/// The size of an attempt.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct Work {
    /// Positions known at its start: the prompt and what was delivered.
    pub positions: u32,
    /// Of those, tokens of the answer.
    pub delivered: u32,
    /// Positions at most, the whole answer included.
    pub max_positions: u32,
    /// Place in the whole answer of the first token that may not be sampled yet: its reader is too far behind.
    pub until: u32,
    /// The request's deadline, on the owner's clock.
    pub deadline: Time,
}

/// Which part of a credit.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum Credit {
    /// The place among the prefills under way at the worker: it has computed.
    Compute,
    /// Everything: the lease was never opened, or is proven returned.
    All,
}

/// How urgent a room is. The higher value goes first.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug, Default)]
pub struct Priority(pub u8);

/// A request for credit.
#[derive(Clone, Eq, PartialEq, Debug)]
pub struct Bid {
    /// Which attempt asks.
    pub attempt: Attempt,
    /// Goes before arrival.
    pub priority: Priority,
    /// Whose it is: those of one priority take turns.
    pub share: Share,
    /// When the *room* arrived: a later attempt keeps its place among those of its tenant.
    pub arrived: Time,
    /// Whether the client has begun to read the answer.
    pub begun: bool,
    /// Positions to be computed at once: the prompt and what was delivered.
    pub positions: u32,
    /// Positions at most.
    pub max_positions: u32,
    /// Workers that failed the room: taken only if no other could serve it, or if the room would hold up others.
    pub avoid: BTreeSet<NodeId>,
}
