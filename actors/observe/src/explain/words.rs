//! What happens to a room, and what it waits for, in words.

use room::{
    AbortBy, AttemptError, Failure, Finish, Happening, NodeId, Outcome, PhaseKind, Proof, Route, Time,
    Transition, WaitsFor, Why,
};

use super::names::Names;
use super::times::lasting;
use super::{Standing, Tone, failures};
use crate::event::{Moved, RoomEvent, RoomWhat};
use crate::history::RoomHistory;
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

pub(super) fn standing(standing: &Standing<'_>, names: &Names<'_>) -> String {
    waits_for(standing.waits_for, standing.no_worker, standing.now, &|node| {
        names.of(node)
    })
}

/// An outcome as a verb in the past, and its reason.
pub(super) fn outcome(outcome: Outcome) -> String {
    with_reason(&verb(outcome), outcome)
}

/// The same, with how long it took: which is no part of the reason.
pub(super) fn outcome_after(outcome: Outcome, millis: u64) -> String {
    with_reason(&format!("{} after {}", verb(outcome), lasting(millis)), outcome)
}

fn with_reason(said: &str, outcome: Outcome) -> String {
    reason(outcome).map_or_else(|| said.to_owned(), |reason| format!("{said}: {reason}"))
}

fn verb(outcome: Outcome) -> String {
    match outcome {
        Outcome::Completed(Finish::Stop) => "completed".to_owned(),
        Outcome::Completed(Finish::Length) => "completed at its limit of tokens".to_owned(),
        Outcome::Aborted(_) => "aborted".to_owned(),
        Outcome::Failed(_) => "failed".to_owned(),
        Outcome::Expired(phase) => format!("expired in {phase}"),
    }
}

fn reason(outcome: Outcome) -> Option<String> {
    let reason = match outcome {
        Outcome::Completed(_) => return None,
        Outcome::Aborted(AbortBy::ClientGone) => "its client left".to_owned(),
        Outcome::Aborted(AbortBy::Operator) => "an operator ended it".to_owned(),
        Outcome::Aborted(AbortBy::Shutdown) => "the gateway was stopped".to_owned(),
        Outcome::Aborted(AbortBy::Sibling) => "another answer of its request failed".to_owned(),
        Outcome::Failed(why) => failure(why),
        Outcome::Expired(_) => "the request's own deadline passed".to_owned(),
    };
    Some(reason)
}

fn failure(why: Failure) -> String {
    match why {
        Failure::NoWorker => "there was no worker of a needed kind".to_owned(),
        Failure::QueueFull => "the queue was full".to_owned(),
        Failure::NoCredit => "no worker had room for it in time".to_owned(),
        Failure::TooLarge => "it needs more blocks than any worker has".to_owned(),
        Failure::OwnerLost => "its owner died".to_owned(),
        Failure::Attempts(error) => format!("no attempt is left (the last one: {})", attempt_error(error)),
    }
}

pub(super) fn attempt_error(error: AttemptError) -> String {
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
pub(super) fn happened(event: &RoomEvent, history: &RoomHistory, names: &Names<'_>) -> (Tone, String) {
    let name = |node: NodeId| names.of(node);
    match &event.what {
        RoomWhat::Opened(facts) => (
            Tone::Step,
            format!(
                "opened: a prompt of {}, an answer of {} at most",
                counted(facts.prompt_tokens, "token"),
                facts.max_tokens
            ),
        ),
        RoomWhat::Room(happening) => room(event, happening, history, &name),
        RoomWhat::Cached { worker, tokens } => {
            let who = name(*worker);
            (
                Tone::Note,
                format!("{tokens} tokens of the prompt are in {who}'s cache"),
            )
        }
        RoomWhat::Moved(moved) => (Tone::Note, pulled(moved, &name)),
        RoomWhat::NotSent { worker, why } => (
            Tone::Fault,
            format!("an order could not be sent to {}: {why}", name(*worker)),
        ),
        RoomWhat::WorkerSaid { worker, why, .. } => (Tone::Note, format!("{} says: {why}", name(*worker))),
        RoomWhat::TimerFired { phase } => (
            Tone::Warn,
            format!("something is due in {phase}: its owner is told"),
        ),
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
        RoomWhat::Answered { outcome, delivered } => answered(*outcome, *delivered),
        RoomWhat::Ended { .. } => (Tone::Step, "nothing is left of it".to_owned()),
    }
}

fn pulled(moved: &Moved, name: &dyn Fn(NodeId) -> String) -> String {
    format!(
        "{} pulled {} from {} in {} over {}, in {:.1} ms",
        name(moved.to),
        bytes(moved.bytes),
        name(moved.from),
        counted(moved.descriptors, "piece"),
        moved.transport,
        moved.lasted.micros as f64 / 1_000.0
    )
}

fn answered(fixed: Outcome, delivered: u32) -> (Tone, String) {
    let tone = match labels::is_in_order(fixed) {
        true => Tone::Step,
        false => Tone::Fault,
    };
    let has = counted(delivered, "token");
    (
        tone,
        format!("{}; the client was told, and has {has}", outcome(fixed)),
    )
}

fn room(
    event: &RoomEvent,
    happening: &Happening,
    history: &RoomHistory,
    name: &dyn Fn(NodeId) -> String,
) -> (Tone, String) {
    match *happening {
        Happening::Transition(step) => transition(step),
        Happening::AttemptFailed {
            worker,
            error,
            retried,
        } => failures::line(history, event.generation, (&name(worker), error), retried),
        Happening::Routed(route) => (Tone::Note, routed(route, name)),
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
            format!(
                "tokens again, after a stall: {count}, from the {} on",
                ordinal(from.saturating_add(1))
            ),
        ),
        Happening::Paused => (Tone::Warn, "paused: its client does not read".to_owned()),
        Happening::Resumed => (Tone::Note, "goes on: its client has read".to_owned()),
        Happening::LegOpened { worker } => (Tone::Note, format!("{} is told of it", name(worker))),
        Happening::LegReturned { worker, of, by } => returned(&name(worker), of.0, by),
        Happening::ToldAgain { worker, of, told } => (Tone::Warn, told_again(&name(worker), of.0, told)),
        Happening::DrainOverdue { worker, of, told } => (Tone::Fault, overdue(&name(worker), of.0, told)),
        Happening::Fenced { worker, of } => (
            Tone::Fault,
            format!(
                "{} is fenced: it did not return its lease of attempt {}",
                name(worker),
                of.0
            ),
        ),
    }
}

fn routed(route: Route, name: &dyn Fn(NodeId) -> String) -> String {
    let (prefill, decode) = (name(route.prefill), name(route.decode));
    match route.is_mixed() {
        true => format!("credit: {decode} does all of it"),
        false => format!("credit: {prefill} computes the prompt, {decode} the answer"),
    }
}

fn told_again(who: &str, attempt: u32, told: u32) -> String {
    format!("{who} has not proven attempt {attempt} returned yet: told again (time {told})")
}

fn overdue(who: &str, attempt: u32, told: u32) -> String {
    format!("{who} was told {told} times to return its lease of attempt {attempt}, and has not")
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
            format!("{who} does not hold attempt {attempt} any more: its digest says so (not_held)"),
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
        format!("{} -> {} after {lasted}: {why}", step.from, step.to),
    )
}

/// A place in an order: `1st`, `2nd`, `11th`.
pub(super) fn ordinal(place: u32) -> String {
    let end = match (place % 10, place % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{place}{end}")
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

#[cfg(test)]
mod tests {
    use super::ordinal;

    #[test]
    fn a_place_ends_as_it_is_spoken() {
        let places = [1, 2, 3, 4, 11, 12, 13, 21, 102, 111, 1_013].map(ordinal);
        assert_eq!(
            places,
            [
                "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th", "1013th"
            ]
        );
    }
}
