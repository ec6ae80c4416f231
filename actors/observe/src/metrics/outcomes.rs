//! The outcomes that there are.

use room::{AbortBy, AttemptError, Failure, Finish, Outcome, PhaseKind, Refusal};

/// Every outcome that a room can have: each is a series from the start, and has its place in the runbook. A refusal stands for all of them: they
/// have one label.
#[must_use]
pub fn outcomes() -> Vec<Outcome> {
    let completed = [Finish::Stop, Finish::Length].map(Outcome::Completed);
    let aborted = [
        AbortBy::ClientGone,
        AbortBy::Operator,
        AbortBy::Shutdown,
        AbortBy::Sibling,
    ];
    let failed = [
        Failure::NoWorker,
        Failure::QueueFull,
        Failure::NoCredit,
        Failure::TooLarge,
        Failure::OwnerLost,
    ];
    let failed = failed
        .into_iter()
        .chain(attempt_errors().into_iter().map(Failure::Attempts));
    let live = PhaseKind::ALL.into_iter().filter(|phase| phase.is_live());
    completed
        .into_iter()
        .chain(aborted.map(Outcome::Aborted))
        .chain(failed.map(Outcome::Failed))
        .chain(live.map(Outcome::Expired))
        .collect()
}

/// Every way in which an attempt can fail.
pub(super) fn attempt_errors() -> Vec<AttemptError> {
    let stuck = [
        PhaseKind::Reserving,
        PhaseKind::Prefilling,
        PhaseKind::Pulling,
        PhaseKind::Decoding,
    ];
    let others = [
        AttemptError::WorkerLost,
        AttemptError::PullFailed,
        AttemptError::EngineFailed,
        AttemptError::Gap,
        AttemptError::UnknownAttempt,
        AttemptError::Evicted,
        AttemptError::NoToken,
        AttemptError::Refused(Refusal::TooLarge),
    ];
    stuck
        .map(AttemptError::NoProgress)
        .into_iter()
        .chain(others)
        .collect()
}
