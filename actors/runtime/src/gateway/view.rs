//! How what happens to rooms is said in logs and labels. One place, so that no outcome is shown in two ways.

use room::{AbortBy, AttemptError, Event, Failure, Finish, Happening, Outcome, RoomId};
use tracing::{debug, info, warn};

/// Writes an event of a room's to the log.
pub(crate) fn log(event: &Event) {
    let (room, generation) = (event.room, event.generation.0);
    match event.what {
        Happening::Transition(step) => {
            debug!(%room, generation, from = %step.from, to = %step.to, why = ?step.why, lasted_ms = step.lasted.as_millis(), "phase");
        }
        Happening::AttemptFailed {
            worker,
            error,
            retried,
        } => {
            info!(%room, generation, %worker, ?error, retried, "the attempt failed");
        }
        Happening::Paused => debug!(%room, generation, "paused: its reader is behind"),
        Happening::Resumed => debug!(%room, generation, "goes on: its reader has caught up"),
        Happening::LegOpened { worker } => debug!(%room, generation, %worker, "leg opened"),
        Happening::LegReturned { worker, of, by } => {
            debug!(%room, generation = of.0, %worker, ?by, "leg returned");
        }
        Happening::ToldAgain { worker, of, told } => {
            debug!(%room, generation = of.0, %worker, told, "told again to return its lease");
        }
        Happening::DrainOverdue { worker, of, told } => {
            warn!(%room, generation = of.0, %worker, told, "timeout: the worker has not proven its lease returned");
        }
        Happening::Fenced { worker, of } => {
            warn!(%room, generation = of.0, %worker, "the worker is fenced: it did not return a lease");
        }
    }
}

/// Writes a room's outcome to the log.
pub(crate) fn log_outcome(room: RoomId, outcome: Outcome, delivered: u32) {
    let (label, reason) = labels(outcome);
    match outcome {
        Outcome::Completed(_) | Outcome::Aborted(_) => {
            info!(%room, outcome = label, reason, delivered, "ended");
        }
        Outcome::Failed(_) | Outcome::Expired(_) => warn!(%room, outcome = label, reason, delivered, "ended"),
    }
}

/// An outcome as a label and a reason, for metrics and views.
#[must_use]
pub fn labels(outcome: Outcome) -> (&'static str, String) {
    match outcome {
        Outcome::Completed(Finish::Stop) => ("completed", "stop".to_owned()),
        Outcome::Completed(Finish::Length) => ("completed", "length".to_owned()),
        Outcome::Aborted(by) => ("aborted", abort(by).to_owned()),
        Outcome::Failed(why) => ("failed", failure(why)),
        Outcome::Expired(phase) => ("expired", phase.name().to_owned()),
    }
}

fn abort(by: AbortBy) -> &'static str {
    match by {
        AbortBy::ClientGone => "client_gone",
        AbortBy::Operator => "operator",
        AbortBy::Shutdown => "shutdown",
        AbortBy::Sibling => "sibling",
    }
}

fn failure(why: Failure) -> String {
    match why {
        Failure::NoWorker => "no_worker".to_owned(),
        Failure::QueueFull => "queue_full".to_owned(),
        Failure::NoCredit => "no_credit".to_owned(),
        Failure::TooLarge => "too_large".to_owned(),
        Failure::OwnerLost => "owner_lost".to_owned(),
        Failure::Attempts(error) => format!("attempts_{}", attempt_error(error)),
    }
}

/// Why an attempt failed, as a label.
#[must_use]
pub fn attempt_error(error: AttemptError) -> String {
    match error {
        AttemptError::WorkerLost => "worker_lost".to_owned(),
        AttemptError::NoProgress(phase) => format!("no_progress_{phase}"),
        AttemptError::PullFailed => "pull_failed".to_owned(),
        AttemptError::EngineFailed => "engine_failed".to_owned(),
        AttemptError::Gap => "gap".to_owned(),
        AttemptError::UnknownAttempt => "unknown_attempt".to_owned(),
        AttemptError::Evicted => "evicted".to_owned(),
        AttemptError::NoToken => "no_token".to_owned(),
        AttemptError::Refused(_) => "refused".to_owned(),
    }
}
