//! INV-10: a fault touches only what the policy says. Nothing fails where nothing was wrong, and nothing fails for a reason that was
//! never there.

use room::{AbortBy, AttemptError, Failure, Outcome, PhaseKind};

use crate::client::{End, Manner, Seen};
use crate::evidence::Evidence;
use crate::fault::{Fault, GatewayAt, MachineAt};

pub(super) fn check(evidence: &Evidence) -> Vec<String> {
    let mut wrong = Vec::new();
    for seen in &evidence.seen {
        let here = MachineAt::Gateway(GatewayAt(seen.gateway));
        let met = |these: &dyn Fn(&Fault) -> bool| evidence.met(seen.asked, seen.ended, these);
        let near = Near {
            any: met(&|_| true),
            moves_fail: evidence.plan.moves_fail > 0.0,
            gateway_stops: met(&|fault| matches!(fault, Fault::Restart(at) if *at == here)),
            gateway_ends: met(
                &|fault| matches!(fault, Fault::Restart(at) | Fault::Crash(at, _) if *at == here),
            ),
            owners_fail: met(&|fault| matches!(fault, Fault::OwnersFail(at, _) if at.0 == seen.gateway)),
        };
        for (room, answer) in seen.rooms.iter().zip(&seen.answers) {
            let Some((at, outcome)) = answer.outcome else {
                continue;
            };
            let why = match outcome {
                Outcome::Completed(_) => None,
                Outcome::Aborted(by) => abort(seen, by, &near),
                Outcome::Expired(_) if at < seen.asked + seen.job.timeout => Some("before its deadline"),
                // Who waits for credit all the time has met no fault.
                Outcome::Expired(_) => None,
                Outcome::Failed(failure) => fails(seen, failure, &near),
            };
            if let Some(why) = why {
                wrong.push(format!(
                    "{room} ({}, {:?}) asked at {:?} is {outcome:?} at {at:?}: {why}",
                    seen.job.request_id, seen.manner, seen.asked
                ));
            }
        }
        if seen.end == End::GatewayDied && !near.gateway_ends {
            wrong.push(format!(
                "{} lost its gateway, which did not die",
                seen.job.request_id
            ));
        }
    }
    wrong
}

/// What was wrong around a request.
struct Near {
    /// Anything.
    any: bool,
    /// Moves of KV now and then.
    moves_fail: bool,
    /// Its gateway was told to stop.
    gateway_stops: bool,
    /// Its gateway was told to stop, or lost its power.
    gateway_ends: bool,
    /// Owners of requests of its gateway panicked.
    owners_fail: bool,
}

fn abort(seen: &Seen, by: AbortBy, near: &Near) -> Option<&'static str> {
    let fits = match by {
        AbortBy::ClientGone => false,
        AbortBy::Operator => seen.aborted.is_some(),
        AbortBy::Shutdown => near.gateway_stops,
        AbortBy::Sibling => seen.job.n > 1,
    };
    (!fits).then_some("nobody did that")
}

fn fails(seen: &Seen, failure: Failure, near: &Near) -> Option<&'static str> {
    let fits = match failure {
        // Overload is no fault, and needs none.
        Failure::QueueFull | Failure::NoCredit => true,
        Failure::TooLarge => return Some("it fits every worker"),
        Failure::OwnerLost => near.owners_fail || matches!(seen.manner, Manner::OwnerPanics(_)),
        // Every attempt may have met one.
        Failure::Attempts(AttemptError::PullFailed | AttemptError::NoProgress(PhaseKind::Pulling)) => {
            near.moves_fail || near.any
        }
        Failure::NoWorker | Failure::Attempts(_) => near.any,
    };
    (!fits).then_some("nothing was wrong that could be its cause")
}
