//! What a worker tells a gateway.

use rkyv::{Archive, Deserialize, Serialize};

use crate::check::{Check, at_most, listener, some_at_most, text};
use crate::error::Invalid;
use crate::kind::Kind;
use crate::limits::{MAX_REASON_BYTES, MAX_ROOMS, MAX_TRANSPORT_BYTES, MAX_WHY_BYTES};
use crate::token::RoomTokens;
use crate::work::{RoomKey, Ticket};

/// A frame from a worker to a gateway.
#[derive(Archive, Serialize, Deserialize, Clone, PartialEq, Debug)]
pub enum ToGateway {
    /// The worker lives, has dropped what heartbeat `n` did not list, and holds this for the gateway.
    HeartbeatAck {
        /// The heartbeat's number.
        n: u64,
        /// Every attempt of the gateway's that is here, in order.
        held: Vec<Held>,
        /// How the worker is.
        stats: WorkerStats,
    },
    /// Blocks and a slot are granted. Said once more, or for the first time, when the worker begins to compute a prompt: so much of it
    /// need not be computed.
    Reserved {
        /// Which attempt.
        key: RoomKey,
        /// Leading blocks whose contents are here already.
        cached_blocks: u32,
    },
    /// What was asked for is not granted; nothing is held for the attempt.
    Refused {
        /// Which attempt.
        key: RoomKey,
        /// Why.
        why: Refusal,
    },
    /// The prompt's KV has come this far.
    Progress {
        /// Which attempt.
        key: RoomKey,
        /// Positions with KV, cached ones included.
        positions: u32,
    },
    /// Tokens, of one step of the engine as a rule.
    Tokens {
        /// Of each room.
        batch: Vec<RoomTokens>,
    },
    /// The KV can be read.
    Published {
        /// Which attempt.
        key: RoomKey,
        /// With this.
        ticket: Ticket,
    },
    /// The KV has arrived, and generating begins.
    Pulled {
        /// Which attempt.
        key: RoomKey,
        /// Bytes moved.
        bytes: u64,
        /// Pieces they were moved in.
        descriptors: u32,
        /// How long it took, in microseconds.
        micros: u64,
        /// What carried them.
        transport: String,
    },
    /// The attempt failed here. Why in words, if there is more to say, was said before: [`Reason`](Self::Reason).
    Failed {
        /// Which attempt.
        key: RoomKey,
        /// Why.
        why: AttemptError,
    },
    /// Nothing of the attempt is here, and nobody here touches blocks of it.
    Closed {
        /// Which attempt.
        key: RoomKey,
    },
    /// The worker is leaving in order: it takes no new attempt, and the link ends.
    Leaving {
        /// Why, for people.
        reason: String,
    },
    /// Why the attempt is about to fail here: [`Failed`](Self::Failed) follows. Nobody decides anything by it. Since version 3.
    Reason {
        /// Which attempt.
        key: RoomKey,
        /// Why, for people.
        why: String,
    },
    /// What the hello does not say of the worker. The first frame of a link, if there is anything to say. Since version 3.
    About {
        /// Where operators find the worker: the address and the port of its admin listener, as it was bound.
        admin: String,
    },
    /// What becomes of an order. Since version 4.
    Ordered {
        /// The order's number.
        n: u64,
        /// Why the worker does not do so, for people; none if it does.
        refused: Option<String>,
    },
}

/// One attempt that a worker holds.
#[derive(Archive, Serialize, Deserialize, Copy, Clone, Eq, PartialEq, Debug)]
pub struct Held {
    /// Which attempt.
    pub key: RoomKey,
    /// What it is at.
    pub phase: StayPhase,
    /// Blocks it has.
    pub blocks: u32,
    /// How long it has been here, in milliseconds.
    pub age_ms: u64,
    /// Until the end of its phase, in milliseconds.
    pub deadline_ms: u64,
}

/// What an attempt is at, on a worker.
#[derive(Archive, Serialize, Deserialize, Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum StayPhase {
    /// Has blocks and a slot; waits for the KV.
    Reserved,
    /// The prompt is computed.
    Prefilling,
    /// The KV is on offer.
    Published,
    /// The KV is being fetched.
    Pulling,
    /// Tokens are generated.
    Decoding,
    /// Over; waits for the proof that nobody touches its blocks.
    Closing,
}

/// How a worker is.
#[derive(Archive, Serialize, Deserialize, Clone, Eq, PartialEq, Debug, Default)]
pub struct WorkerStats {
    /// Blocks in the pool: the sum of the next four.
    pub blocks_total: u32,
    /// Blocks with nothing in them.
    pub blocks_free: u32,
    /// Blocks that nobody has and whose contents may be of use again.
    pub blocks_cached: u32,
    /// Blocks that attempts have.
    pub blocks_leased: u32,
    /// Blocks of attempts that are gone, which an unfinished move still touches.
    pub blocks_quarantined: u32,
    /// Sequences that can be decoded at a time.
    pub slots_total: u32,
    /// Of those, taken.
    pub slots_used: u32,
    /// Prompt tokens accepted and not yet computed.
    pub prefill_backlog_tokens: u64,
    /// Takes no new attempt.
    pub draining: bool,
    /// KV bytes fetched since the worker started.
    pub kv_bytes_in: u64,
    /// KV bytes given since the worker started.
    pub kv_bytes_out: u64,
    /// What carries KV to this worker.
    pub kv_transport: String,
}

/// Why something is not granted.
#[derive(Archive, Serialize, Deserialize, Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum Refusal {
    /// Not enough free blocks now.
    NoBlocks,
    /// Every batch slot is taken.
    NoSlot,
    /// The worker takes no new rooms.
    Draining,
    /// More blocks than the whole pool has.
    TooLarge,
    /// The generation is older than one already seen, or was closed.
    Stale,
    /// The message does not fit the state of the attempt here.
    OutOfOrder,
}

/// In which phase an attempt made no progress, in the owner's terms.
#[derive(Archive, Serialize, Deserialize, Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum WaitedIn {
    /// Waited for credit.
    Queued,
    /// Waited for blocks and a slot.
    Reserving,
    /// The prompt was being computed.
    Prefilling,
    /// The KV was being fetched.
    Pulling,
    /// Tokens were being generated.
    Decoding,
    /// Leases were being proven returned.
    Draining,
    /// Nothing was left.
    Ended,
}

/// Why an attempt ended without an answer.
#[derive(Archive, Serialize, Deserialize, Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum AttemptError {
    /// The worker's link is fenced.
    WorkerLost,
    /// No progress for as long as the phase allows.
    NoProgress(WaitedIn),
    /// The KV could not be moved.
    PullFailed,
    /// The engine failed on this sequence.
    EngineFailed,
    /// Tokens are missing.
    Gap,
    /// The worker does not have the attempt.
    UnknownAttempt,
    /// The worker took its blocks back to serve others.
    Evicted,
    /// No blocks or no slot after all.
    Refused(Refusal),
    /// The sequence has no next token.
    NoToken,
}

impl ToGateway {
    pub(crate) const KINDS: &[Kind] = &[
        Kind::HeartbeatAck,
        Kind::Reserved,
        Kind::Refused,
        Kind::Progress,
        Kind::Tokens,
        Kind::Published,
        Kind::Pulled,
        Kind::Failed,
        Kind::Closed,
        Kind::Leaving,
        Kind::Reason,
        Kind::About,
        Kind::Ordered,
    ];

    pub(crate) fn kind_of(&self) -> Kind {
        match self {
            Self::HeartbeatAck { .. } => Kind::HeartbeatAck,
            Self::Reserved { .. } => Kind::Reserved,
            Self::Refused { .. } => Kind::Refused,
            Self::Progress { .. } => Kind::Progress,
            Self::Tokens { .. } => Kind::Tokens,
            Self::Published { .. } => Kind::Published,
            Self::Pulled { .. } => Kind::Pulled,
            Self::Failed { .. } => Kind::Failed,
            Self::Closed { .. } => Kind::Closed,
            Self::Leaving { .. } => Kind::Leaving,
            Self::Reason { .. } => Kind::Reason,
            Self::About { .. } => Kind::About,
            Self::Ordered { .. } => Kind::Ordered,
        }
    }
}

impl Check for ToGateway {
    fn check(&self) -> Result<(), Invalid> {
        match self {
            Self::HeartbeatAck { held, stats, .. } => {
                at_most("heartbeat_ack.held", held.len(), MAX_ROOMS)?;
                text("stats.kv_transport", &stats.kv_transport, MAX_TRANSPORT_BYTES)
            }
            Self::Tokens { batch } => {
                at_most("tokens.batch", batch.len(), MAX_ROOMS)?;
                batch.check()
            }
            Self::Published { ticket, .. } => ticket.check(),
            Self::Pulled { transport, .. } => text("pulled.transport", transport, MAX_TRANSPORT_BYTES),
            Self::Leaving { reason } => text("leaving.reason", reason, MAX_REASON_BYTES),
            Self::Reason { why, .. } => {
                some_at_most("reason.why", why.len(), MAX_WHY_BYTES)?;
                text("reason.why", why, MAX_WHY_BYTES)
            }
            Self::About { admin } => listener("about.admin", admin),
            Self::Ordered { refused, .. } => match refused {
                Some(why) => {
                    some_at_most("ordered.refused", why.len(), MAX_REASON_BYTES)?;
                    text("ordered.refused", why, MAX_REASON_BYTES)
                }
                None => Ok(()),
            },
            Self::Reserved { .. }
            | Self::Refused { .. }
            | Self::Progress { .. }
            | Self::Failed { .. }
            | Self::Closed { .. } => Ok(()),
        }
    }
}
