//! The data of each phase. A phase is one value: what it is waiting for, and until when.

use crate::id::NodeId;
use crate::input::Route;
use crate::phase::PhaseKind;
use crate::room::deadline::Deadline;
use crate::time::Time;

#[derive(Clone, Debug)]
pub(super) struct Queued {
    pub(super) deadline: Deadline,
    /// A refused or evicted attempt pauses before it asks for credit; then this is when it asks.
    pub(super) pause_until: Option<Time>,
}

#[derive(Clone, Debug)]
pub(super) struct Reserving {
    pub(super) deadline: Deadline,
    /// When the wait for credit ends. A grant that is refused is none: the wait goes on where it was.
    pub(super) credit_by: Deadline,
    pub(super) route: Route,
}

#[derive(Clone, Debug)]
pub(super) struct Prefilling {
    pub(super) deadline: Deadline,
    pub(super) route: Route,
    /// Positions done, as last reported.
    pub(super) computed: u32,
    /// The first token of this attempt is here.
    pub(super) sampled: bool,
    /// The KV is on offer.
    pub(super) published: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Pulling {
    pub(super) deadline: Deadline,
    pub(super) route: Route,
}

#[derive(Clone, Debug)]
pub(super) struct Decoding {
    pub(super) deadline: Deadline,
    pub(super) worker: NodeId,
}

/// The phase of a room.
#[derive(Clone, Debug)]
pub(super) enum Phase {
    Queued(Queued),
    Reserving(Reserving),
    Prefilling(Prefilling),
    Pulling(Pulling),
    Decoding(Decoding),
    /// Lasts while legs are closing. Each of those has its own deadline, after which its worker is fenced.
    Draining,
    Ended,
}

impl Phase {
    pub(super) fn kind(&self) -> PhaseKind {
        match self {
            Self::Queued(_) => PhaseKind::Queued,
            Self::Reserving(_) => PhaseKind::Reserving,
            Self::Prefilling(_) => PhaseKind::Prefilling,
            Self::Pulling(_) => PhaseKind::Pulling,
            Self::Decoding(_) => PhaseKind::Decoding,
            Self::Draining => PhaseKind::Draining,
            Self::Ended => PhaseKind::Ended,
        }
    }

    /// Every live phase has one.
    pub(super) fn deadline(&self) -> Option<Deadline> {
        match self {
            Self::Queued(p) => Some(p.deadline),
            Self::Reserving(p) => Some(p.deadline),
            Self::Prefilling(p) => Some(p.deadline),
            Self::Pulling(p) => Some(p.deadline),
            Self::Decoding(p) => Some(p.deadline),
            Self::Draining | Self::Ended => None,
        }
    }

    /// The worker whose turn it is: only its word moves the attempt on, and it is blamed for silence.
    pub(super) fn speaker(&self) -> Option<NodeId> {
        match self {
            Self::Reserving(p) => Some(p.route.decode),
            Self::Prefilling(p) => Some(p.route.prefill),
            Self::Pulling(p) => Some(p.route.decode),
            Self::Decoding(p) => Some(p.worker),
            Self::Queued(_) | Self::Draining | Self::Ended => None,
        }
    }
}
