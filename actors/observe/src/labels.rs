//! Outcomes, reasons, phases and causes as values of labels: one table, bounded by its types. Metrics, logs, spans and views use these words,
//! and the runbook has a page for each.

use room::{
    AbortBy, AttemptError, Failure, Finish, Hold, Holds, Outcome, PhaseKind, Proof, Refusal, Role, StayCause,
    StayPhase, Why,
};

use crate::event::{LinkEnd, RefusedBecause};

/// An outcome as a label and a reason.
#[must_use]
pub fn outcome(outcome: Outcome) -> (&'static str, &'static str) {
    match outcome {
        Outcome::Completed(Finish::Stop) => ("completed", "stop"),
        Outcome::Completed(Finish::Length) => ("completed", "length"),
        Outcome::Aborted(by) => ("aborted", abort(by)),
        Outcome::Failed(why) => ("failed", failure(why)),
        Outcome::Expired(phase) => ("expired", phase.name()),
    }
}

/// Whether an outcome is nobody's fault: the answer is whole, or was not wanted any more.
#[must_use]
pub fn is_in_order(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Completed(_) | Outcome::Aborted(_) => true,
        Outcome::Failed(_) | Outcome::Expired(_) => false,
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

fn failure(why: Failure) -> &'static str {
    match why {
        Failure::NoWorker => "no_worker",
        Failure::QueueFull => "queue_full",
        Failure::NoCredit => "no_credit",
        Failure::TooLarge => "too_large",
        Failure::OwnerLost => "owner_lost",
        Failure::Attempts(error) => attempts(error),
    }
}

/// As [`attempt_error`], of a room that has no attempt left.
fn attempts(error: AttemptError) -> &'static str {
    match error {
        AttemptError::WorkerLost => "attempts_worker_lost",
        AttemptError::NoProgress(phase) => match phase {
            PhaseKind::Queued => "attempts_no_progress_queued",
            PhaseKind::Reserving => "attempts_no_progress_reserving",
            PhaseKind::Prefilling => "attempts_no_progress_prefilling",
            PhaseKind::Pulling => "attempts_no_progress_pulling",
            PhaseKind::Decoding => "attempts_no_progress_decoding",
            PhaseKind::Draining => "attempts_no_progress_draining",
            PhaseKind::Ended => "attempts_no_progress_ended",
        },
        AttemptError::PullFailed => "attempts_pull_failed",
        AttemptError::EngineFailed => "attempts_engine_failed",
        AttemptError::Gap => "attempts_gap",
        AttemptError::UnknownAttempt => "attempts_unknown_attempt",
        AttemptError::Evicted => "attempts_evicted",
        AttemptError::NoToken => "attempts_no_token",
        AttemptError::Refused(_) => "attempts_refused",
    }
}

/// Why an attempt failed.
#[must_use]
pub fn attempt_error(error: AttemptError) -> &'static str {
    let whole = attempts(error);
    whole.strip_prefix("attempts_").unwrap_or(whole)
}

/// Why a worker refused an attempt, if that is why it failed.
#[must_use]
pub fn refused(error: AttemptError) -> Option<&'static str> {
    if let AttemptError::Refused(why) = error {
        return Some(refusal(why));
    }
    None
}

/// Why a worker did not grant what was asked.
#[must_use]
pub fn refusal(why: Refusal) -> &'static str {
    match why {
        Refusal::NoBlocks => "no_blocks",
        Refusal::NoSlot => "no_slot",
        Refusal::Draining => "draining",
        Refusal::TooLarge => "too_large",
        Refusal::Stale => "stale",
        Refusal::OutOfOrder => "out_of_order",
    }
}

/// What led from one phase to another.
#[must_use]
pub fn why(why: Why) -> &'static str {
    match why {
        Why::Admitted => "admitted",
        Why::Reserved => "reserved",
        Why::Published => "published",
        Why::Pulled => "pulled",
        Why::FirstToken => "first_token",
        Why::Retry(_) => "retry",
        Why::Outcome(_) => "outcome",
        Why::Returned => "returned",
    }
}

/// What was behind it: of a failed attempt why it failed, of an outcome its reason.
#[must_use]
pub fn why_so(why: Why) -> Option<&'static str> {
    match why {
        Why::Retry(error) => Some(attempt_error(error)),
        Why::Outcome(fixed) => Some(outcome(fixed).1),
        Why::Admitted | Why::Reserved | Why::Published | Why::Pulled | Why::FirstToken | Why::Returned => {
            None
        }
    }
}

/// How it is known that a lease is returned.
#[must_use]
pub fn proof(by: Proof) -> &'static str {
    match by {
        Proof::Closed => "closed",
        Proof::Refused => "refused",
        Proof::NotHeld => "not_held",
        Proof::Fenced => "fenced",
    }
}

/// A stay's phase.
#[must_use]
pub fn stay_phase(phase: StayPhase) -> &'static str {
    match phase {
        StayPhase::Reserved => "reserved",
        StayPhase::Prefilling => "prefilling",
        StayPhase::Published => "published",
        StayPhase::Pulling => "pulling",
        StayPhase::Decoding => "decoding",
        StayPhase::Closing => "closing",
    }
}

/// Why a stay's phase changed.
#[must_use]
pub fn stay_cause(why: StayCause) -> &'static str {
    match why {
        StayCause::Owner => "owner",
        StayCause::Engine => "engine",
        StayCause::Transfer => "transfer",
        StayCause::Finished => "finished",
        StayCause::ClosedByOwner => "closed_by_owner",
        StayCause::NotInDigest => "not_in_digest",
        StayCause::GatewayLost => "gateway_lost",
        StayCause::Superseded => "superseded",
        StayCause::Failed(_) => "failed",
        StayCause::ProofOverdue => "proof_overdue",
        StayCause::Proven => "proven",
    }
}

/// Who may be touching blocks: one word for each set.
#[must_use]
pub fn holds(holds: Holds) -> &'static str {
    let has = Hold::ALL.map(|hold| holds.has(hold));
    match has {
        [false, false, false] => "none",
        [true, false, false] => "engine",
        [false, true, false] => "read",
        [false, false, true] => "offer",
        [true, true, false] => "engine_read",
        [true, false, true] => "engine_offer",
        [false, true, true] => "read_offer",
        [true, true, true] => "engine_read_offer",
    }
}

/// What a worker does.
#[must_use]
pub fn role(role: Role) -> &'static str {
    match role {
        Role::Prefill => "prefill",
        Role::Decode => "decode",
        Role::Mixed => "mixed",
    }
}

/// What the end of a link was.
#[must_use]
pub fn link_end(end: LinkEnd) -> &'static str {
    match end {
        LinkEnd::InOrder => "in_order",
        LinkEnd::Fence => "fence",
        LinkEnd::Loss => "loss",
    }
}

/// Why a request got no room.
#[must_use]
pub fn refused_because(why: RefusedBecause) -> &'static str {
    match why {
        RefusedBecause::TooManyRequests => "too_many_requests",
        RefusedBecause::ShuttingDown => "shutting_down",
        RefusedBecause::NotStarted => "not_started",
        RefusedBecause::Unavailable => "unavailable",
    }
}
