//! How a room ends, and why things are refused or fail. Closed lists: whoever adds a reason says how it is shown.

use crate::phase::PhaseKind;

/// The one outcome of a room (INV-03). Set once, by its owner.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum Outcome {
    /// The answer is whole.
    Completed(Finish),
    /// Somebody did not want it any more.
    Aborted(AbortBy),
    /// It could not be had, retries included.
    Failed(Failure),
    /// The request's own deadline passed while the room was in this phase. (The queue's deadline is
    /// [`Failure::NoCredit`].)
    Expired(PhaseKind),
}

/// Why a whole answer is whole.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum Finish {
    /// The model ended it, or a stop string of the client's did.
    Stop,
    /// It reached the allowed number of tokens.
    Length,
}

/// Who ended a room early.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum AbortBy {
    /// The client's connection or stream is gone.
    ClientGone,
    /// An operator asked for it.
    Operator,
    /// The gateway is shutting down.
    Shutdown,
    /// A sibling room of the same request failed, so the request has no use for this one.
    Sibling,
}

/// Why a room could not be served.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum Failure {
    /// No worker of the needed role is connected.
    NoWorker,
    /// The queue is full: nothing was started.
    QueueFull,
    /// No credit came before the queue's deadline, or none that its worker stood by: the client has nothing yet, and may
    /// come again.
    NoCredit,
    /// Every attempt failed; the last one so.
    Attempts(AttemptError),
    /// The request can never fit: it needs more blocks than any worker has.
    TooLarge,
    /// The actor that owned the room died; its supervisor drained the room.
    OwnerLost,
}

/// Why one attempt ended without an answer. All of these lead to the next generation while restarts last.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum AttemptError {
    /// The worker's link is fenced: dead, frozen, or cut off.
    WorkerLost,
    /// The worker made no progress for as long as the phase allows.
    NoProgress(PhaseKind),
    /// The KV could not be moved.
    PullFailed,
    /// The engine failed on this sequence.
    EngineFailed,
    /// The worker's account of the answer does not continue what was delivered: tokens are missing.
    Gap,
    /// The worker does not have the attempt (any more).
    UnknownAttempt,
    /// The worker took its blocks back to serve others; the room goes on elsewhere or later.
    Evicted,
    /// The model has no next token for this sequence. That lies in the sequence, or in what the worker has of it: the room is tried
    /// once elsewhere, and no more.
    NoToken,
    /// The worker had no blocks or no slot after all.
    Refused(Refusal),
}

impl AttemptError {
    /// Whether something is broken, so that the attempt counts against the bound on restarts and the worker is
    /// avoided. What is not a fault is a lack of credit, which passes.
    #[must_use]
    pub fn is_fault(self) -> bool {
        !matches!(
            self,
            Self::Evicted | Self::Refused(Refusal::NoBlocks | Refusal::NoSlot | Refusal::Draining)
        ) || planted!(QueueTimeIsFault)
    }
}

/// Why a worker's host does not grant what was asked.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum Refusal {
    /// Not enough free blocks now.
    NoBlocks,
    /// Every batch slot is taken.
    NoSlot,
    /// The worker takes no new rooms (it is being drained).
    Draining,
    /// More blocks than the whole pool has.
    TooLarge,
    /// The generation is older than one already seen, or was closed.
    Stale,
    /// The message does not fit the state of the attempt here.
    OutOfOrder,
}
