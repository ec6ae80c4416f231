//! What happens to a room, and what it waits for, in words.

use room::{
    AbortBy, AttemptError, Failure, Finish, Happening, NodeId, Outcome, PhaseKind, Proof, Time, Transition,
    WaitsFor, Why,
};

use super::times::lasting;
use super::{Standing, Tone};
use crate::event::RoomWhat;
use crate::labels;

/// What a room waits for, in words that follow "it waits for".
#[must_use]
pub fn waits_for(waits_for: WaitsFor, no_worker: bool, now: Time, name: &dyn Fn(NodeId) -> String) -> String {
    if no_worker {
        return "a worker of a kind that there is none of".to_owned();
    }
    match waits_for {
        WaitsFor::Credit => "a worker with room".to_owned(),
        WaitsFor::Pause { until } => format!("{} to ask for room again", lasting((until - now).as_millis())),
        WaitsFor::Grant { worker } => format!("blocks and a slot from {}", name(worker)),
        WaitsFor::Prompt {
            worker,
            computed,
            positions,
        } => {
            format!(
                "{} to compute the prompt ({computed} of {positions})",
                name(worker)
            )
        }
        WaitsFor::Kv { from, to } => format!("{} to pull the KV from {}", name(to), name(from)),
        WaitsFor::Token { worker } => format!("the next token from {}", name(worker)),
        WaitsFor::Reader => "its client to read what it has".to_owned(),
        WaitsFor::Proof { worker, leases } => {
            format!(
                "proof from {} that its lease is returned ({leases} out)",
                name(worker)
            )
        }
        WaitsFor::Nothing => "nothing".to_owned(),
    }
}

pub(super) fn standing(standing: &Standing<'_>) -> String {
    waits_for(standing.waits_for, standing.no_worker, standing.now, &|node| {
        standing.name(node)
    })
}

/// An outcome as a verb in the past.
pub(super) fn outcome(outcome: Outcome) -> String {
    match outcome {
        Outcome::Completed(Finish::Stop) => "completed".to_owned(),
        Outcome::Completed(Finish::Length) => "completed at its limit of tokens".to_owned(),
        Outcome::Aborted(by) => format!(
            "aborted: {}",
            match by {
                AbortBy::ClientGone => "its client left",
                AbortBy::Operator => "an operator ended it",
                AbortBy::Shutdown => "the gateway was stopped",
                AbortBy::Sibling => "another answer of its request failed",
            }
        ),
        Outcome::Failed(why) => format!("failed: {}", failure(why)),
        Outcome::Expired(phase) => format!("expired in {phase}: the request's own deadline passed"),
    }
}

fn failure(why: Failure) -> String {
    match why {
        Failure::NoWorker => "there was no worker of a needed kind".to_owned(),
        Failure::QueueFull => "the queue was full".to_owned(),
        Failure::NoCredit => "no worker had room for it in time".to_owned(),
        Failure::TooLarge => "it needs more blocks than any worker has".to_owned(),
        Failure::OwnerLost => "its owner died".to_owned(),
        Failure::Attempts(error) => format!("no attempt is left; the last one: {}", attempt_error(error)),
    }
}

fn attempt_error(error: AttemptError) -> String {
    match error {
        AttemptError::WorkerLost => "the worker was lost".to_owned(),
        AttemptError::NoProgress(phase) => format!("no progress in {phase}"),
        AttemptError::PullFailed => "the KV could not be pulled".to_owned(),
        AttemptError::EngineFailed => "the engine failed on it".to_owned(),
        AttemptError::Gap => "tokens were missing in what the worker sent".to_owned(),
        AttemptError::UnknownAttempt => "the worker did not have it any more".to_owned(),
        AttemptError::Evicted => "the worker took its blocks back for others".to_owned(),
        AttemptError::NoToken => "the model had no next token".to_owned(),
        AttemptError::Refused(why) => format!("the worker refused it: {}", labels::refusal(why)),
    }
}

/// Something that happened, and how it is to be taken.
pub(super) fn happened(what: &RoomWhat, name: &dyn Fn(NodeId) -> String) -> (Tone, String) {
    match what {
        RoomWhat::Opened(facts) => (
            Tone::Step,
            format!(
                "opened: a prompt of {}, an answer of {} at most",
                counted(facts.prompt_tokens, "token"),
                facts.max_tokens
            ),
        ),
        RoomWhat::Room(happening) => room(happening, name),
        RoomWhat::Cached { worker, tokens } => {
            let who = name(*worker);
            (
                Tone::Note,
                format!("{tokens} tokens of the prompt are in {who}'s cache"),
            )
        }
        RoomWhat::Moved(moved) => (
            Tone::Note,
            format!(
                "{} pulled {} from {} in {} over {}, in {:.1} ms",
                name(moved.to),
                bytes(moved.bytes),
                name(moved.from),
                counted(moved.descriptors, "piece"),
                moved.transport,
                moved.lasted.micros as f64 / 1_000.0
            ),
        ),
        RoomWhat::NotSent { worker, why } => (
            Tone::Fault,
            format!("an order could not be sent to {}: {why}", name(*worker)),
        ),
        RoomWhat::TimerFired { phase } => (Tone::Warn, format!("a deadline passed in {phase}")),
        RoomWhat::OwnerSilent { phase } => (
            Tone::Fault,
            format!("its owner did not answer in {phase} and is killed"),
        ),
        RoomWhat::OwnerDied { phase, why, deaths } => (
            Tone::Fault,
            format!("its owner died in {phase} (death {deaths}): {why}; what is left is drained"),
        ),
        RoomWhat::Buried { workers } => (
            Tone::Fault,
            format!("its heirs died as well: {workers} workers are fenced"),
        ),
        RoomWhat::Answered {
            outcome: fixed,
            delivered,
        } => {
            let tone = if labels::is_in_order(*fixed) {
                Tone::Step
            } else {
                Tone::Fault
            };
            let text = outcome(*fixed);
            (
                tone,
                format!(
                    "{text}; the client was told, and has {}",
                    counted(*delivered, "token")
                ),
            )
        }
        RoomWhat::Ended { .. } => (Tone::Step, "nothing is left of it".to_owned()),
    }
}

fn room(happening: &Happening, name: &dyn Fn(NodeId) -> String) -> (Tone, String) {
    match *happening {
        Happening::Transition(step) => transition(step),
        Happening::AttemptFailed {
            worker,
            error,
            retried,
        } => failed(&name(worker), error, retried),
        Happening::Routed(route) if route.is_mixed() => (
            Tone::Note,
            format!("credit: {} does all of it", name(route.decode)),
        ),
        Happening::Routed(route) => {
            let (prefill, decode) = (name(route.prefill), name(route.decode));
            (
                Tone::Note,
                format!("credit: {prefill} computes the prompt, {decode} the answer"),
            )
        }
        Happening::Granted {
            worker,
            cached_blocks,
        } => (
            Tone::Note,
            format!(
                "{} granted blocks and a slot; it has {cached_blocks} of the blocks already",
                name(worker)
            ),
        ),
        Happening::Computed {
            worker,
            positions,
            of,
        } => (
            Tone::Note,
            format!("{} has computed {positions} of {of}", name(worker)),
        ),
        Happening::Published { worker } => (Tone::Note, format!("{} offers the KV", name(worker))),
        Happening::Delivered { from: 0, .. } => (Tone::Note, "the first token".to_owned()),
        Happening::Delivered { from, count } => (
            Tone::Warn,
            format!("tokens again, after a stall: {count}, from the {}th on", from + 1),
        ),
        Happening::Paused => (Tone::Warn, "paused: its client does not read".to_owned()),
        Happening::Resumed => (Tone::Note, "goes on: its client has read".to_owned()),
        Happening::LegOpened { worker } => (Tone::Note, format!("{} is told of it", name(worker))),
        Happening::LegReturned { worker, of, by } => returned(&name(worker), of.0, by),
        Happening::ToldAgain { worker, told, .. } => (
            Tone::Warn,
            format!("{} is told again to return its lease (time {told})", name(worker)),
        ),
        Happening::DrainOverdue { worker, told, .. } => (
            Tone::Fault,
            format!(
                "{} was told {told} times to return its lease, and has not",
                name(worker)
            ),
        ),
        Happening::Fenced { worker, .. } => (
            Tone::Fault,
            format!("{} is fenced: it did not return its lease", name(worker)),
        ),
    }
}

fn failed(who: &str, error: AttemptError, retried: bool) -> (Tone, String) {
    let then = match retried {
        true => "it is tried again",
        false => "it is not tried again",
    };
    let tone = match error.is_fault() {
        true => Tone::Fault,
        false => Tone::Warn,
    };
    let why = attempt_error(error);
    (tone, format!("the attempt failed at {who}: {why}; {then}"))
}

fn returned(who: &str, attempt: u32, by: Proof) -> (Tone, String) {
    match by {
        Proof::Closed => (
            Tone::Note,
            format!("{who} has returned its lease of attempt {attempt}"),
        ),
        Proof::Refused => (Tone::Note, format!("{who} never granted attempt {attempt}")),
        Proof::NotHeld => (
            Tone::Warn,
            format!("{who} does not hold attempt {attempt} any more: its digest says so"),
        ),
        Proof::Fenced => (
            Tone::Fault,
            format!("{who}'s link is over, and with it its lease of attempt {attempt}"),
        ),
    }
}

fn transition(step: Transition) -> (Tone, String) {
    let why = match step.why {
        Why::Admitted => "credit was granted".to_owned(),
        Why::Reserved => "decode has granted".to_owned(),
        Why::Published => "the prompt is computed".to_owned(),
        Why::Pulled => "decode has the KV".to_owned(),
        Why::FirstToken => "the prompt is computed, and needs no move".to_owned(),
        Why::Retry(error) => attempt_error(error),
        Why::Outcome(fixed) => outcome(fixed),
        Why::Returned => "every lease is proven returned".to_owned(),
    };
    let tone = match (step.why, step.to) {
        (Why::Retry(_), _) => Tone::Warn,
        (Why::Outcome(fixed), _) if !labels::is_in_order(fixed) => Tone::Warn,
        (_, PhaseKind::Ended) => Tone::Note,
        _ => Tone::Step,
    };
    let lasted = match step.lasted.micros {
        short @ 0..10_000 => format!("{:.1} ms", short as f64 / 1_000.0),
        long => lasting(long / 1_000),
    };
    (
        tone,
        format!("{} -> {}: {why} (after {lasted})", step.from, step.to),
    )
}

fn counted(count: u32, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
