//! INV-10: a fault touches only what the policy says. Nothing fails where nothing was wrong, and nothing fails for a reason that was
//! never there.

use room::{AbortBy, AttemptError, Failure, Outcome, PhaseKind};

use crate::client::{End, Manner, Seen};
use crate::evidence::Evidence;

pub(super) fn check(evidence: &Evidence) -> Vec<String> {
    let mut wrong = Vec::new();
    for seen in &evidence.seen {
        let siblings = seen.job.n > 1;
        let disturbed = evidence.disturbed(seen.asked, seen.ended);
        let moves_fail = evidence.plan.moves_fail > 0.0;
        for (room, answer) in seen.rooms.iter().zip(&seen.answers) {
            let Some((at, outcome)) = answer.outcome else {
                continue;
            };
            let why = match outcome {
                Outcome::Completed(_) => None,
                Outcome::Aborted(by) => abort(seen, by, siblings, disturbed),
                Outcome::Expired(_) if at < seen.asked + seen.job.timeout => Some("before its deadline"),
                // Who waits for credit all the time has met no fault.
                Outcome::Expired(_) => None,
                Outcome::Failed(failure) => fails(seen, failure, disturbed, moves_fail),
            };
            if let Some(why) = why {
                wrong.push(format!(
                    "{room} ({}, {:?}) asked at {:?} is {outcome:?} at {at:?}: {why}",
                    seen.job.request_id, seen.manner, seen.asked
                ));
            }
        }
        if seen.end == End::GatewayDied && !disturbed {
            wrong.push(format!(
                "{} lost its gateway, which did not die",
                seen.job.request_id
            ));
        }
    }
    wrong
}

fn abort(seen: &Seen, by: AbortBy, siblings: bool, disturbed: bool) -> Option<&'static str> {
    let fits = match by {
        AbortBy::ClientGone => false,
        AbortBy::Operator => seen.aborted.is_some(),
        AbortBy::Shutdown => disturbed,
        AbortBy::Sibling => siblings,
    };
    (!fits).then_some("nobody did that")
}

fn fails(seen: &Seen, failure: Failure, disturbed: bool, moves_fail: bool) -> Option<&'static str> {
    match failure {
        // Overload is no fault, and needs none.
        Failure::QueueFull | Failure::NoCredit => None,
        Failure::TooLarge => Some("it fits every worker"),
        Failure::OwnerLost if matches!(seen.manner, Manner::OwnerPanics(_)) => None,
        // Every attempt may have met one.
        Failure::Attempts(AttemptError::PullFailed | AttemptError::NoProgress(PhaseKind::Pulling))
            if moves_fail =>
        {
            None
        }
        Failure::OwnerLost | Failure::NoWorker | Failure::Attempts(_) if disturbed => None,
        Failure::OwnerLost | Failure::NoWorker | Failure::Attempts(_) => Some("nothing was wrong"),
    }
}
