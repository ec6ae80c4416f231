//! Everything a host asks of those around it.

use crate::id::{Attempt, BlockId, NodeId};
use crate::outcome::{AttemptError, Finish, Refusal};

/// Something to do now. Taken with [`Host::poll_command`](crate::Host::poll_command), and performed in order.
#[derive(Clone, Eq, PartialEq, Debug)]
pub enum HostCommand {
    /// Tell the gateway `attempt.room.gateway`. If its link is gone the message is dropped.
    Tell {
        /// What it is about.
        attempt: Attempt,
        /// What to tell.
        message: ToOwner,
    },
    /// Answer a digest.
    AnswerDigest {
        /// Whose digest it was.
        gateway: NodeId,
        /// The number of the heartbeat it came with.
        n: u64,
        /// Every attempt of that gateway that is here after the digest was processed, in order.
        held: Vec<Attempt>,
    },
    /// Start computing a prompt. Answered by [`EngineInput`](crate::EngineInput)s.
    StartPrefill {
        /// Whose.
        attempt: Attempt,
        /// Its blocks, in sequence order.
        blocks: Vec<BlockId>,
        /// Positions whose KV is in the leading blocks already; those blocks must not be written.
        computed: u32,
        /// Whether to go on to the end of the answer. If not, the sequence leaves the engine with its first token.
        whole: bool,
        /// Place in the whole answer of the first token that it may not sample yet.
        until: u32,
    },
    /// Start generating: the KV of the first `computed` positions is here.
    StartDecode {
        /// Whose.
        attempt: Attempt,
        /// Its blocks, in sequence order.
        blocks: Vec<BlockId>,
        /// Positions whose KV is in the blocks.
        computed: u32,
        /// Place in the whole answer of the first token that it may not sample yet.
        until: u32,
    },
    /// A sequence in the engine may go on so far.
    Allow {
        /// Whose.
        attempt: Attempt,
        /// Place in the whole answer of the first token that it may not sample yet.
        until: u32,
    },
    /// Give a sequence in the engine more blocks.
    Grow {
        /// Whose.
        attempt: Attempt,
        /// The blocks to add at its end.
        blocks: Vec<BlockId>,
    },
    /// Take the sequence out of the engine at the next step boundary. Answered by
    /// [`EngineInput::Stopped`](crate::EngineInput::Stopped). May be repeated.
    StopEngine {
        /// Whose.
        attempt: Attempt,
    },
    /// Offer the blocks to whoever presents a ticket that the runtime makes. Answered by
    /// [`TransferInput::Offered`](crate::TransferInput::Offered) or, if it cannot be, by `Withdrawn`.
    Offer {
        /// Whose.
        attempt: Attempt,
        /// The blocks that have KV, in sequence order.
        blocks: Vec<BlockId>,
    },
    /// End the offer. Answered by [`TransferInput::Withdrawn`](crate::TransferInput::Withdrawn). May be repeated.
    Withdraw {
        /// Whose.
        attempt: Attempt,
    },
    /// Read published blocks. Answered by exactly one [`TransferInput::ReadEnded`](crate::TransferInput::ReadEnded).
    Read {
        /// Whose.
        attempt: Attempt,
        /// Index, in the published blocks, of the first one wanted.
        from: u32,
        /// Our blocks that receive them, in order.
        into: Vec<BlockId>,
    },
    /// End the read soon. Its `ReadEnded` still comes, and is the proof. May be repeated.
    CancelRead {
        /// Whose.
        attempt: Attempt,
    },
}

/// What a host tells an owner about an attempt.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum ToOwner {
    /// Blocks and a slot are granted.
    Reserved {
        /// Leading blocks whose contents are here already: neither to be computed nor to be moved.
        cached_blocks: u32,
    },
    /// What was asked for is not granted: nothing is held here for the attempt.
    Refused(Refusal),
    /// The prompt's KV has come this far.
    Progress {
        /// Positions with KV, cached ones included.
        positions: u32,
    },
    /// Tokens of the answer. The runtime adds what they are.
    Tokens {
        /// Index in the whole answer of the first of them.
        from: u32,
        /// How many.
        count: u32,
    },
    /// The KV can be read. The runtime adds the ticket.
    Published,
    /// The KV has arrived here, and decoding starts.
    Pulled,
    /// The answer is whole, and the attempt is gone from here.
    Finished {
        /// How it ended.
        finish: Finish,
        /// Tokens in the whole answer, those delivered by earlier attempts included.
        answered: u32,
    },
    /// The attempt failed here. It holds nothing but what still has to be proven returned.
    Failed(AttemptError),
    /// The answer to Close and Release: nothing of the attempt is here, and nobody here touches blocks of it.
    Closed,
}
