//! What a gateway tells a worker.

use rkyv::{Archive, Deserialize, Serialize};

use crate::check::{Check, at_most, number, some_at_most, text};
use crate::error::Invalid;
use crate::hello::Role;
use crate::kind::Kind;
use crate::limits::{MAX_DEADLINE_MS, MAX_REASON_BYTES, MAX_ROOMS, MAX_TOKENS};
use crate::token::TokenOut;
use crate::work::{Kept, RoomKey, Ticket, Work};

/// A frame from a gateway to a worker.
///
/// Deadlines are the time left when the frame is made, in milliseconds: nodes share no clock.
#[derive(Archive, Serialize, Deserialize, Clone, PartialEq, Debug)]
pub enum ToWorker {
    /// The gateway lives, and these are all the attempts that it has open on this worker. The worker drops any other of
    /// this gateway's, then answers with [`ToGateway::HeartbeatAck`](crate::ToGateway::HeartbeatAck).
    Heartbeat {
        /// Counts up from 1 on each link.
        n: u64,
        /// The attempts whose opening frame was sent before this one, and no closing frame.
        open: Vec<Kept>,
    },
    /// Grant blocks and a slot for decoding, or refuse.
    Reserve {
        /// Which attempt.
        key: RoomKey,
        /// What it will be about.
        work: Work,
        /// How far its answer may go at first: see [`Kept::until`].
        until: u32,
        /// Until the request ends.
        deadline_ms: u64,
    },
    /// Compute the prompt and what was delivered, sample one token, publish. Where the attempt is reserved too: go on
    /// to the end of the answer instead.
    Prefill {
        /// Which attempt.
        key: RoomKey,
        /// What to compute.
        work: Work,
        /// How far its answer may go at first: see [`Kept::until`].
        until: u32,
        /// Until the request ends.
        deadline_ms: u64,
    },
    /// Get the KV with this ticket, then generate.
    Pull {
        /// Which attempt; it was reserved.
        key: RoomKey,
        /// Where the KV is.
        ticket: Ticket,
        /// The tokens that the prefill worker sampled. They follow those of the reserved work; their KV is nowhere.
        first: Vec<TokenOut>,
    },
    /// The answer may go on: its reader has caught up. What is less than was said before changes nothing. Not answered.
    Allow {
        /// Which attempt.
        key: RoomKey,
        /// How far: see [`Kept::until`].
        until: u32,
    },
    /// What was published has been fetched.
    Release {
        /// Which attempt.
        key: RoomKey,
    },
    /// The attempt is over: stop, give everything back, and say [`ToGateway::Closed`](crate::ToGateway::Closed). For an
    /// attempt that is not here too. May be repeated.
    Close {
        /// Which attempt.
        key: RoomKey,
    },
    /// The gateway is leaving in order: no new attempt comes, and the link ends.
    Goodbye {
        /// Why, for people.
        reason: String,
    },
    /// A room that is over is traced after all: the worker hands over what it remembers of all attempts at it. Not answered, and of no
    /// consequence where nothing is remembered. Since version 3.
    KeepTrace {
        /// Which of the gateway's rooms.
        seq: u64,
    },
    /// An operator of this gateway wants something of the worker as a whole. Answered with
    /// [`ToGateway::Ordered`](crate::ToGateway::Ordered). Since version 4.
    Order {
        /// Repeated in the answer.
        n: u64,
        /// What.
        order: Order,
    },
}

/// What an operator can want of a worker. It is the worker's own state, the same for all its gateways, until it is undone or the worker's
/// process ends.
#[derive(Archive, Serialize, Deserialize, Copy, Clone, Eq, PartialEq, Debug)]
pub enum Order {
    /// Take no new attempt; those that are there go on.
    Drain,
    /// Take new attempts again.
    Undrain,
    /// Take no new attempt, and once those that are there are over, leave and come back in another role, as a new incarnation.
    Role {
        /// Which. Its certificate must name it.
        role: Role,
        /// How long what is there may take, in milliseconds; what is left then goes on elsewhere.
        within_ms: u64,
    },
}

impl ToWorker {
    pub(crate) const KINDS: &[Kind] = &[
        Kind::Heartbeat,
        Kind::Reserve,
        Kind::Prefill,
        Kind::Pull,
        Kind::Release,
        Kind::Close,
        Kind::Goodbye,
        Kind::Allow,
        Kind::KeepTrace,
        Kind::Order,
    ];

    pub(crate) fn kind_of(&self) -> Kind {
        match self {
            Self::Heartbeat { .. } => Kind::Heartbeat,
            Self::Reserve { .. } => Kind::Reserve,
            Self::Prefill { .. } => Kind::Prefill,
            Self::Pull { .. } => Kind::Pull,
            Self::Release { .. } => Kind::Release,
            Self::Close { .. } => Kind::Close,
            Self::Goodbye { .. } => Kind::Goodbye,
            Self::Allow { .. } => Kind::Allow,
            Self::KeepTrace { .. } => Kind::KeepTrace,
            Self::Order { .. } => Kind::Order,
        }
    }

    /// Which attempt it is about, if about one.
    #[must_use]
    pub fn key(&self) -> Option<RoomKey> {
        match self {
            Self::Reserve { key, .. }
            | Self::Prefill { key, .. }
            | Self::Pull { key, .. }
            | Self::Allow { key, .. }
            | Self::Release { key }
            | Self::Close { key } => Some(*key),
            Self::Heartbeat { .. } | Self::Goodbye { .. } | Self::KeepTrace { .. } | Self::Order { .. } => {
                None
            }
        }
    }
}

impl Check for ToWorker {
    fn check(&self) -> Result<(), Invalid> {
        match self {
            Self::Heartbeat { open, .. } => at_most("heartbeat.open", open.len(), MAX_ROOMS),
            Self::Reserve {
                work, deadline_ms, ..
            }
            | Self::Prefill {
                work, deadline_ms, ..
            } => {
                number(
                    "deadline_ms",
                    deadline_ms,
                    *deadline_ms <= MAX_DEADLINE_MS,
                    "at most a week",
                )?;
                work.check()
            }
            Self::Pull { ticket, first, .. } => {
                ticket.check()?;
                some_at_most("pull.first", first.len(), MAX_TOKENS)?;
                first.check()
            }
            Self::Allow { .. } | Self::Release { .. } | Self::Close { .. } | Self::KeepTrace { .. } => Ok(()),
            Self::Goodbye { reason } => text("goodbye.reason", reason, MAX_REASON_BYTES),
            Self::Order { order, .. } => order.check(),
        }
    }
}

impl Check for Order {
    fn check(&self) -> Result<(), Invalid> {
        let Self::Role { role, within_ms } = self else {
            return Ok(());
        };
        let is_worker = *role != Role::Gateway;
        number("order.role", role, is_worker, "the role of a worker")?;
        let is_short = *within_ms <= MAX_DEADLINE_MS;
        number("order.within_ms", within_ms, is_short, "at most a week")
    }
}
