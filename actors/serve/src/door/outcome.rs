//! What a client is told of an outcome that is not a whole answer.

use std::time::Duration;

use api::{Failure, FailureKind};
use room::{AbortBy, AttemptError, Outcome, PhaseKind};

/// The failure a client sees; none for a whole answer. `ended_in`: the phase that the room was in, where the outcome does not say.
pub(super) fn failure(outcome: Outcome, ended_in: Option<PhaseKind>, timeout: Duration) -> Option<Failure> {
    let (kind, message, phase) = match outcome {
        Outcome::Completed(_) => return None,
        Outcome::Expired(phase) => {
            let message = format!(
                "the request's deadline of {} ms passed while it was {phase}",
                timeout.as_millis()
            );
            (FailureKind::Expired, message, Some(phase))
        }
        Outcome::Aborted(AbortBy::Operator) => (
            FailureKind::Cancelled,
            "an operator ended the request".to_owned(),
            None,
        ),
        Outcome::Aborted(AbortBy::Shutdown) => (
            FailureKind::Unavailable,
            "the gateway is shutting down".to_owned(),
            None,
        ),
        Outcome::Aborted(by @ (AbortBy::ClientGone | AbortBy::Sibling)) => (
            FailureKind::Internal,
            format!("the request was ended early: {by:?}"),
            None,
        ),
        Outcome::Failed(why) => failed(why),
    };
    Some(Failure {
        kind,
        message,
        phase: phase.or(ended_in).map(|phase| phase.name().to_owned()),
    })
}

fn failed(why: room::Failure) -> (FailureKind, String, Option<PhaseKind>) {
    match why {
        room::Failure::NoWorker => {
            let message = "no worker for this request is connected: try again later";
            (
                FailureKind::Unavailable,
                message.to_owned(),
                Some(PhaseKind::Queued),
            )
        }
        room::Failure::QueueFull => (
            FailureKind::Overloaded,
            "the queue is full: try again later".to_owned(),
            Some(PhaseKind::Queued),
        ),
        room::Failure::NoCredit => {
            let message = "no worker had room in time: try again later";
            (
                FailureKind::Overloaded,
                message.to_owned(),
                Some(PhaseKind::Queued),
            )
        }
        room::Failure::TooLarge => {
            let message = "the request needs more KV blocks than any worker has: shorten the prompt";
            (
                FailureKind::Unavailable,
                message.to_owned(),
                Some(PhaseKind::Queued),
            )
        }
        room::Failure::Attempts(AttemptError::NoProgress(phase)) => {
            let message = format!("every attempt failed; the last one made no progress while it was {phase}");
            (FailureKind::Expired, message, Some(phase))
        }
        room::Failure::Attempts(AttemptError::NoToken) => {
            let message = "the model has no next token here: its numbers are no numbers";
            (FailureKind::Internal, message.to_owned(), None)
        }
        room::Failure::Attempts(error) => {
            let message = format!(
                "every attempt failed; the last one with {}",
                observe::labels::attempt_error(error)
            );
            (FailureKind::Unavailable, message, None)
        }
        room::Failure::OwnerLost => (
            FailureKind::Internal,
            "the actor that owned the request failed".to_owned(),
            None,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(outcome: Outcome, kind: Option<FailureKind>, phase: Option<&str>) {
        let failure = failure(outcome, Some(PhaseKind::Pulling), Duration::from_millis(2_000));
        assert_eq!(failure.as_ref().map(|failure| failure.kind), kind, "{outcome:?}");
        assert_eq!(
            failure.and_then(|failure| failure.phase).as_deref(),
            phase,
            "{outcome:?}"
        );
    }

    #[test]
    fn a_queue_that_takes_too_long_is_no_timeout_of_the_request() {
        check(
            Outcome::Failed(room::Failure::NoCredit),
            Some(FailureKind::Overloaded),
            Some("queued"),
        );
        check(
            Outcome::Expired(PhaseKind::Queued),
            Some(FailureKind::Expired),
            Some("queued"),
        );
    }

    #[test]
    fn failures_name_their_phase() {
        let stuck = room::Failure::Attempts(AttemptError::NoProgress(PhaseKind::Prefilling));
        check(
            Outcome::Failed(stuck),
            Some(FailureKind::Expired),
            Some("prefilling"),
        );
        check(
            Outcome::Expired(PhaseKind::Decoding),
            Some(FailureKind::Expired),
            Some("decoding"),
        );
        check(
            Outcome::Failed(room::Failure::NoWorker),
            Some(FailureKind::Unavailable),
            Some("queued"),
        );
        check(
            Outcome::Failed(room::Failure::Attempts(AttemptError::WorkerLost)),
            Some(FailureKind::Unavailable),
            Some("pulling"),
        );
        check(
            Outcome::Aborted(AbortBy::Operator),
            Some(FailureKind::Cancelled),
            Some("pulling"),
        );
        check(Outcome::Completed(room::Finish::Stop), None, None);
    }
}
