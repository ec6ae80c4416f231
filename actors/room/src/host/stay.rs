//! One attempt's stay at a worker.

use crate::host::input::Job;
use crate::id::Attempt;
use crate::ledger::Holds;
use crate::outcome::AttemptError;
use crate::phase::PhaseKind;
use crate::time::{Span, Time};

/// A stay's phase without its data: what is shown, counted, and looked up in the table of legal messages.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum StayPhase {
    /// Has blocks and a slot; waits for Prefill or Pull.
    Reserved,
    /// The engine computes the prompt.
    Prefilling,
    /// The KV is on offer.
    Published,
    /// The KV is being read.
    Pulling,
    /// The engine generates.
    Decoding,
    /// The lease is closed; waits for the proof that nobody touches its blocks.
    Closing,
}

impl StayPhase {
    /// Every phase, in order.
    pub const ALL: [Self; 6] = [
        Self::Reserved,
        Self::Prefilling,
        Self::Published,
        Self::Pulling,
        Self::Decoding,
        Self::Closing,
    ];

    /// What the owner calls the time that is spent in this phase.
    #[must_use]
    pub fn at_owner(self) -> PhaseKind {
        match self {
            Self::Reserved => PhaseKind::Reserving,
            Self::Prefilling => PhaseKind::Prefilling,
            Self::Published | Self::Pulling => PhaseKind::Pulling,
            Self::Decoding => PhaseKind::Decoding,
            Self::Closing => PhaseKind::Draining,
        }
    }
}

/// A phase with its data.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(super) enum Phase {
    Reserved,
    Prefilling,
    Published,
    Pulling,
    Decoding,
    /// `answer`: the owner asked for it and hears `Closed`.
    Closing {
        answer: bool,
    },
}

impl Phase {
    pub(super) fn kind(self) -> StayPhase {
        match self {
            Self::Reserved => StayPhase::Reserved,
            Self::Prefilling => StayPhase::Prefilling,
            Self::Published => StayPhase::Published,
            Self::Pulling => StayPhase::Pulling,
            Self::Decoding => StayPhase::Decoding,
            Self::Closing { .. } => StayPhase::Closing,
        }
    }
}

/// One attempt here. Its phase cannot be set without a deadline.
#[derive(Clone, Debug)]
pub(super) struct Stay {
    phase: Phase,
    since: Time,
    deadline: Time,
    /// When it came.
    pub(super) opened: Time,
    /// Counts arrivals here: who came later is evicted first.
    pub(super) arrival: u64,
    /// Whether it was reserved, and gives the whole answer. If not, it gives the KV and the first token.
    pub(super) whole: bool,
    /// When it ends at the latest: the request's deadline and some grace.
    pub(super) ends: Time,
    /// Positions whose KV is needed before this attempt samples its first token.
    pub(super) positions: u32,
    /// Positions whose KV is known to be here.
    pub(super) computed: u32,
    /// Index in the whole answer of the next token sampled here.
    pub(super) answered: u32,
    /// The first of them that may not be sampled yet.
    pub(super) until: u32,
    /// Whether it is among those that the host counts as using a slot.
    pub(super) uses_slot: bool,
}

impl Stay {
    /// A reserved stay: until the request ends, it may wait for its owner.
    pub(super) fn new(now: Time, arrival: u64, job: &Job, whole: bool, grace: Span) -> Self {
        let ends = job.deadline + grace;
        Self {
            phase: Phase::Reserved,
            since: now,
            deadline: ends,
            opened: now,
            arrival,
            whole,
            ends,
            positions: job.positions,
            computed: 0,
            answered: job.delivered,
            until: job.until.max(job.delivered.saturating_add(1)),
            uses_slot: false,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    pub(super) fn kind(&self) -> StayPhase {
        self.phase.kind()
    }

    pub(super) fn deadline(&self) -> Time {
        self.deadline
    }

    pub(super) fn enter(&mut self, now: Time, phase: Phase, deadline: Time) {
        self.phase = phase;
        self.since = now;
        self.deadline = deadline;
    }

    /// Whether the answer has come as far as it may: it waits for its reader, and nothing here is late.
    pub(super) fn is_ahead(&self) -> bool {
        self.answered >= self.until
    }

    /// There was progress: the phase may last until `deadline` now.
    pub(super) fn rearm(&mut self, deadline: Time) {
        self.deadline = deadline;
    }

    /// The owner of a closing stay is to hear `Closed`.
    pub(super) fn expect_answer(&mut self) {
        if let Phase::Closing { answer } = &mut self.phase {
            *answer = true;
        }
    }

    pub(super) fn view(&self, attempt: Attempt, blocks: u32, holds: Holds) -> StayView {
        StayView {
            attempt,
            phase: self.kind(),
            opened: self.opened,
            since: self.since,
            deadline: self.deadline,
            blocks,
            waits_for: holds,
        }
    }
}

/// A stay as shown to people: which phase, for how long, until when, and what it has.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct StayView {
    /// Whose stay.
    pub attempt: Attempt,
    /// Its phase.
    pub phase: StayPhase,
    /// When it came.
    pub opened: Time,
    /// When it entered its phase.
    pub since: Time,
    /// When the host will act on it, whatever happens.
    pub deadline: Time,
    /// Blocks leased to it, or quarantined because of it.
    pub blocks: u32,
    /// Who may be touching its blocks: what a closing stay waits for.
    pub waits_for: Holds,
}

/// A change of a stay's phase, from which spans, metrics and logs are made.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct StayTransition {
    /// When.
    pub at: Time,
    /// Whose stay.
    pub attempt: Attempt,
    /// The phase it left; none if it came.
    pub from: Option<StayPhase>,
    /// The phase it entered; none if it is gone.
    pub to: Option<StayPhase>,
    /// Why.
    pub why: StayCause,
    /// Who may be touching its blocks then: what a closing stay waits for.
    pub holds: Holds,
}

/// Why a stay's phase changed.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum StayCause {
    /// The owner asked for the next step.
    Owner,
    /// The engine got there.
    Engine,
    /// The transfer got there.
    Transfer,
    /// The answer is whole.
    Finished,
    /// The owner closed or released it.
    ClosedByOwner,
    /// The owner's digest does not know it: its Close was lost.
    NotInDigest,
    /// The link with its owner is over.
    GatewayLost,
    /// A later generation of the room came.
    Superseded,
    /// It failed here.
    Failed(AttemptError),
    /// It is closing and stays so: the proof is late, and those who owe it are told to stop again.
    ProofOverdue,
    /// The last proof came.
    Proven,
}
