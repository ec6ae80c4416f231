//! What happens to one attempt's stay at a worker.

use std::sync::Arc;

use ::room::{Attempt, NodeId, Refusal, Span, StayTransition, Time};

use super::Text;
use crate::facts::StayFacts;

/// One thing that happened to a stay, or to an attempt that got none.
#[derive(Clone, PartialEq, Debug)]
pub struct StayEvent {
    /// When.
    pub at: Time,
    /// At which worker: its incarnation.
    pub worker: NodeId,
    /// Whose stay.
    pub attempt: Attempt,
    /// What.
    pub what: StayWhat,
}

/// What happened.
#[derive(Clone, PartialEq, Debug)]
pub enum StayWhat {
    /// The stay begins. The first of its events; the facts have all that is fixed from here on.
    Opened(Arc<StayFacts>),
    /// What the owner asked for is not granted. If it asked for a stay, there is none.
    Refused(Refusal),
    /// A step from one phase to another, in the host's words. From none: the stay begins. To none: nothing is left of it.
    Step(StayTransition),
    /// The engine was given the prompt.
    PromptStarted {
        /// Positions whose KV was here already.
        cached: u32,
    },
    /// A chunk of it is computed.
    Computed {
        /// Positions whose KV is here now.
        positions: u32,
    },
    /// Tokens were sampled.
    Sampled {
        /// How many.
        count: u32,
    },
    /// The sequence has full blocks and waits for more.
    WantsBlocks {
        /// How many.
        blocks: u32,
    },
    /// The sequence failed in the engine, or the engine did not take it.
    EngineFailed {
        /// Why.
        why: Text,
    },
    /// The engine took no command about it: its queue is full, or it is gone.
    NotCommanded {
        /// Why.
        why: Text,
    },
    /// The KV is on offer.
    Offered {
        /// Blocks.
        blocks: u32,
    },
    /// It could not be offered.
    NotOffered {
        /// Why.
        why: Text,
    },
    /// Nobody reads what was offered any more.
    Withdrawn,
    /// A read of KV began.
    ReadStarted {
        /// Blocks that are read.
        blocks: u32,
        /// Blocks before them that are here already.
        cached_blocks: u32,
    },
    /// It ended with all of the KV.
    ReadDone {
        /// Bytes.
        bytes: u64,
        /// Contiguous pieces they came in.
        descriptors: u32,
        /// What carried them.
        transport: Text,
        /// How long it took.
        lasted: Span,
    },
    /// It ended, or could not begin, without the KV.
    ReadFailed {
        /// Why.
        why: Text,
        /// How long it took.
        lasted: Span,
    },
}
