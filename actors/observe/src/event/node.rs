//! What happens to a node, and is about no single room.

use ::room::{HostCounters, NodeId, Role, Span, Time};

use super::Text;
use crate::ids::TraceId;

/// One thing that happened to a node.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeEvent {
    /// When.
    pub at: Time,
    /// What.
    pub what: NodeWhat,
}

/// What happened. First what a gateway says, then what a worker says of itself, then the node's own.
#[derive(Clone, PartialEq, Debug)]
pub enum NodeWhat {
    /// A request got no room.
    RequestRefused {
        /// The request's name at the door.
        request_id: Text,
        /// Its trace, if it came with one.
        trace: Option<TraceId>,
        /// Why.
        why: RefusedBecause,
    },
    /// A worker is linked.
    WorkerLinked {
        /// Its incarnation.
        worker: NodeId,
        /// Its name.
        name: Text,
        /// What it does.
        role: Role,
        /// Blocks it has.
        blocks: u32,
        /// Tokens a block holds.
        block_tokens: u32,
        /// Sequences it runs at once.
        slots: u32,
    },
    /// A worker came as another did, and does not fit.
    WorkerRefused {
        /// Its incarnation.
        worker: NodeId,
        /// Its name.
        name: Text,
        /// Why.
        why: Text,
    },
    /// A worker says that it leaves.
    WorkerLeaving {
        /// Its incarnation.
        worker: NodeId,
        /// Its name.
        name: Text,
        /// Why.
        why: Text,
    },
    /// This gateway cuts a worker off; the end of its link follows.
    Fencing {
        /// Its incarnation.
        worker: NodeId,
        /// Why.
        why: Text,
    },
    /// A worker's link is over.
    WorkerUnlinked {
        /// Its incarnation.
        worker: NodeId,
        /// Its name.
        name: Text,
        /// What kind of end that is.
        end: LinkEnd,
        /// Why.
        why: Text,
    },
    /// News of a room that its owner could not be given: it does not read its mail.
    MailDropped {
        /// Of which of the gateway's rooms.
        seq: u64,
    },
    /// A worker is linked with a gateway.
    GatewayLinked {
        /// The worker's name.
        name: Text,
        /// The gateway's incarnation.
        gateway: NodeId,
        /// Gateways it is linked with now.
        gateways: u32,
    },
    /// A gateway says that it leaves.
    GatewayLeaving {
        /// The worker's name.
        name: Text,
        /// The gateway's incarnation.
        gateway: NodeId,
        /// Why.
        why: Text,
    },
    /// A gateway's link is over.
    GatewayUnlinked {
        /// The worker's name.
        name: Text,
        /// The gateway's incarnation.
        gateway: NodeId,
        /// Gateways it is linked with now.
        gateways: u32,
        /// What kind of end that is.
        end: LinkEnd,
        /// Why.
        why: Text,
    },
    /// The engine has run a step.
    Step {
        /// The worker's incarnation.
        worker: NodeId,
        /// Sequences in it.
        batch: u32,
        /// Tokens computed in it.
        tokens: u32,
        /// How long it took.
        lasted: Span,
    },
    /// What a worker's host has counted since its start, whenever that has changed: levels, not differences.
    Counted {
        /// The worker's incarnation.
        worker: NodeId,
        /// The worker's name.
        name: Text,
        /// The counts.
        counters: HostCounters,
    },
    /// A frame for a gateway cannot be sent.
    FrameNotSent {
        /// The gateway's incarnation.
        gateway: NodeId,
        /// Why.
        why: Text,
    },
    /// The worker takes no new rooms from now on.
    Draining {
        /// The worker's name.
        name: Text,
        /// Why.
        why: Text,
    },
    /// It takes new rooms again.
    Undrained {
        /// The worker's name.
        name: Text,
    },
    /// A worker's engine is down.
    EngineDown {
        /// The worker's name.
        name: Text,
        /// Why.
        why: Text,
    },
    /// A worker's engine hangs in a step.
    EngineHangs {
        /// The worker's name.
        name: Text,
        /// How long the step lasts.
        lasts: Span,
    },
    /// A worker's KV transfer is down.
    TransferDown {
        /// The worker's name.
        name: Text,
        /// Why.
        why: Text,
    },
    /// A worker runs: its first incarnation, or another one.
    WorkerStarted {
        /// The worker's name.
        name: Text,
        /// The incarnation.
        worker: NodeId,
    },
    /// A worker ended, or could not be built.
    WorkerEnded {
        /// The worker's name.
        name: Text,
        /// Why.
        why: Text,
        /// What comes of it.
        then: WorkerEnd,
    },
    /// The node ends.
    NodeEnds {
        /// Why.
        why: Text,
    },
}

/// Why a request got no room.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum RefusedBecause {
    /// As many requests are open as may be.
    TooManyRequests,
    /// The gateway ends.
    ShuttingDown,
    /// No actor could be started for it.
    NotStarted,
    /// The supervisor did not answer in time.
    Unavailable,
}

/// What the end of a link was.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum LinkEnd {
    /// One side wanted it.
    InOrder,
    /// The side that speaks cut the other off.
    Fence,
    /// Nobody wanted it.
    Loss,
}

/// What comes of the end of a worker.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum WorkerEnd {
    /// A new incarnation is started after a pause.
    Restarts {
        /// The pause.
        after: Span,
    },
    /// A new one is started at once, in another role, because an operator wants it so.
    ChangesRole {
        /// Which.
        role: Role,
    },
    /// It ended again and again: the node ends.
    GivenUp,
    /// It is not built after such a time: the node ends.
    Hangs {
        /// How long was waited.
        waited: Span,
    },
}
