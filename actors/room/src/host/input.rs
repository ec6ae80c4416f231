//! Everything that can happen to a host.

use crate::id::{Attempt, BlockHash, NodeId};
use crate::outcome::Finish;
use crate::time::Time;

/// Something that happened. Fed with [`Host::handle_input`](crate::Host::handle_input).
#[derive(Clone, Eq, PartialEq, Debug)]
pub enum HostInput {
    /// A message from the gateway that owns `attempt`. The runtime takes the gateway from the link, never from the
    /// message.
    Owner {
        /// What it is about.
        attempt: Attempt,
        /// What the owner wants.
        message: FromOwner,
    },
    /// A heartbeat's digest: every attempt of `gateway` that is not in `open` is dropped, and the answer lists what is
    /// held afterwards. Its link brings it neither before nor after its turn among the orders.
    Digest {
        /// Whose digest it is.
        gateway: NodeId,
        /// The heartbeat's number, repeated in the answer.
        n: u64,
        /// The attempts which that gateway has open on this worker.
        open: Vec<Kept>,
    },
    /// The link with `gateway` is over (silent for the lease time, closed, or replaced by a new incarnation): its
    /// leases end.
    GatewayLost {
        /// Which gateway.
        gateway: NodeId,
    },
    /// The engine did something with a sequence.
    Engine {
        /// Whose sequence.
        attempt: Attempt,
        /// What it did.
        event: EngineInput,
    },
    /// The engine thread is gone: it touches no block any more, and every sequence in it is lost. So is the worker: a new
    /// engine comes with a new incarnation, which has a host of its own.
    EngineDown,
    /// The KV transfer did something for an attempt.
    Transfer {
        /// Whose blocks.
        attempt: Attempt,
        /// What it did.
        event: TransferInput,
    },
    /// The worker takes no new attempt from now on; those here go on.
    Drain,
    /// It takes new attempts again, if its engine is there.
    Undrain,
}

/// An attempt that its owner wants kept.
#[derive(Copy, Clone, Eq, PartialEq, Hash, Debug)]
pub struct Kept {
    /// Which.
    pub attempt: Attempt,
    /// How far it was allowed to go, as in [`FromOwner::Allow`].
    pub until: u32,
}

/// What an owner wants of an attempt.
#[derive(Clone, Eq, PartialEq, Debug)]
pub enum FromOwner {
    /// Grant blocks and a slot for decoding. Opens the stay.
    Reserve(Job),
    /// Compute the prompt. Opens the stay, unless it is reserved here: then this worker, which is a mixed one, also gives
    /// the whole answer, with the job that was reserved.
    Prefill(Job),
    /// Get the KV from where it was published, and decode.
    Pull {
        /// Answer tokens that the prefill worker sampled. They are in the sequence, their KV is not.
        sampled: u32,
    },
    /// The answer's reader has caught up so far.
    Allow {
        /// Place in the whole answer of the first token that may not be sampled yet. What is less than was said before changes nothing.
        until: u32,
    },
    /// What was published is not needed any more.
    Release,
    /// The attempt is over.
    Close,
}

/// How much there is to do in one attempt. Counts only: what the tokens are does not matter here.
#[derive(Clone, Eq, PartialEq, Debug)]
pub struct Job {
    /// Positions to have KV for before the next token can be sampled: prompt and delivered tokens. At least 1.
    pub positions: u32,
    /// Positions that the sequence can reach at most.
    pub max_positions: u32,
    /// Answer tokens that the client already has; the next one sampled has this index in the answer.
    pub delivered: u32,
    /// Place in the whole answer of the first token that may not be sampled yet. The next one always may.
    pub until: u32,
    /// Names of the full blocks among `positions`, in order; empty where nothing is to be shared.
    pub hashes: Vec<BlockHash>,
    /// When the request ends, on this worker's clock.
    pub deadline: Time,
}

/// What the engine did with a sequence.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum EngineInput {
    /// The first `positions` positions of the sequence have their KV.
    Computed {
        /// Counted from the start of the sequence, cached ones included.
        positions: u32,
    },
    /// It sampled tokens. With a finish, or with the first token of a sequence that was started to give one token
    /// only, this is proof that the sequence left the engine.
    Sampled {
        /// How many tokens of the answer.
        count: u32,
        /// Set if the answer is whole with these.
        finish: Option<Finish>,
    },
    /// The sequence needs more blocks to go on.
    NeedBlocks {
        /// How many.
        n: u32,
    },
    /// The sequence has no next token, and left the engine.
    NoToken,
    /// Proof that the sequence is not in the engine (any more). Also fed when the engine did not take it, or ended it
    /// unasked: then the attempt fails.
    Stopped,
}

/// What the KV transfer did for an attempt.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum TransferInput {
    /// The blocks are on offer: whoever presents the ticket can read them.
    Offered,
    /// Proof that nobody reads the offered blocks any more. Also fed when they could not be offered: then the attempt
    /// fails.
    Withdrawn,
    /// Proof that no byte of the read can land any more. Also fed when the read could not be started.
    ReadEnded {
        /// Whether every block arrived.
        ok: bool,
    },
}
