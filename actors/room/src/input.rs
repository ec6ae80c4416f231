//! What a room is told.

use crate::id::{Generation, NodeId};
use crate::outcome::{AbortBy, AttemptError, Failure, Finish, Refusal};

/// The workers of one attempt.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct Route {
    /// Computes the prompt.
    pub prefill: NodeId,
    /// Generates the answer. The same as `prefill` on a mixed worker: then nothing is pulled.
    pub decode: NodeId,
}

impl Route {
    /// Whether one worker does both, under one lease.
    #[must_use]
    pub fn is_mixed(self) -> bool {
        self.prefill == self.decode
    }

    /// Its workers, each once.
    pub fn workers(self) -> impl Iterator<Item = NodeId> {
        let other = (!self.is_mixed()).then_some(self.decode);
        std::iter::once(self.prefill).chain(other)
    }
}

/// One input of a [`Room`](crate::Room).
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Input {
    /// The desk granted credit at these workers.
    Admitted {
        /// The attempt that asked.
        generation: Generation,
        /// Where it may go.
        route: Route,
    },
    /// The desk cannot grant credit, now or ever.
    NotAdmitted {
        /// The attempt that asked.
        generation: Generation,
        /// Why not.
        failure: Failure,
    },
    /// A worker said something about an attempt.
    FromWorker {
        /// Which worker: of which incarnation the link is.
        worker: NodeId,
        /// About which attempt.
        generation: Generation,
        /// What.
        report: Report,
    },
    /// The worker is fenced: its link is down for good, or it restarted. Whatever it held for this gateway is
    /// returned by the lease's end.
    WorkerLost {
        /// Which.
        worker: NodeId,
    },
    /// The answer's reader has taken so many of its tokens in all. May be repeated, and come late.
    Read {
        /// Counted over all attempts.
        tokens: u32,
    },
    /// A stop string of the client's ends the answer that was delivered so far.
    StopStringFound,
    /// Somebody does not want the room any more.
    Abort(AbortBy),
}

/// What a worker says about one attempt. The content (tokens, tickets) stays with the caller.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum Report {
    /// Decode granted blocks and a slot.
    Reserved {
        /// How many blocks from the beginning it already holds the contents of.
        cached_blocks: u32,
    },
    /// It does not grant what was asked; it holds nothing for the attempt.
    Refused(Refusal),
    /// Prefill is further with the prompt.
    Progress {
        /// How many positions are done.
        positions: u32,
    },
    /// New tokens.
    Tokens {
        /// The place of the first of them in the whole answer, counted from 0 over all attempts.
        from: u32,
        /// How many.
        count: u32,
    },
    /// Prefill offers the KV.
    Published,
    /// Decode has all of the KV.
    Pulled,
    /// The answer ends.
    Finished {
        /// Why.
        finish: Finish,
        /// How many tokens the whole answer has.
        total: u32,
    },
    /// The worker gave the attempt up.
    Failed(AttemptError),
    /// The worker's lease for the attempt has ended.
    Closed,
    /// The worker's answer to a digest does not name the attempt, though the digest was sent after the last
    /// order about it (the caller sees to that).
    NotHeld,
    /// The worker's answer to a digest names the attempt that it was told to close: it is alive and at it, and is not
    /// fenced yet. Of an attempt that was not told so it says nothing new.
    Held,
}
