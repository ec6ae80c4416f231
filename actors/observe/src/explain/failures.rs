//! Failed attempts, in words: why, how far they had come, and whether their workers were there.

use room::{AttemptError, Generation, PhaseKind};

use super::names::Names;
use super::times::lasting;
use super::{Tone, words};
use crate::event::Text;
use crate::facts::Facts;
use crate::history::{Failed, RoomHistory};

/// A worker that has reported nothing for this long, in milliseconds, is silent: several heartbeats of any sensible length.
pub(super) const SILENT_MS: u64 = 1_000;

/// Where to look when a worker is alive and does nothing.
pub(super) const LOOK: &str = "look at that worker's engine and its log";

/// How many failed attempts are out of the ordinary enough to be told of by themselves: the last ones.
const TOLD: usize = 3;

/// Why an attempt failed, and what was known then.
fn why(failed: &Failed, link_end: Option<&Text>, facts: &Facts) -> String {
    let mut why = words::attempt_error(failed.error);
    if let Some(link_end) = link_end {
        why.push_str(&format!(" ({link_end})"));
    }
    if let AttemptError::NoProgress(_) = failed.error {
        why.push_str(&format!(" for {}", lasting(failed.in_phase.as_millis())));
        why.push_str(&how_far(failed, facts));
        why.push_str(&link(failed));
    }
    why
}

fn how_far(failed: &Failed, facts: &Facts) -> String {
    match failed.phase {
        PhaseKind::Prefilling => format!(" ({} of {} computed)", failed.computed, failed.positions),
        PhaseKind::Decoding => format!(
            " ({} of at most {} tokens delivered)",
            failed.delivered, facts.max_tokens
        ),
        PhaseKind::Queued
        | PhaseKind::Reserving
        | PhaseKind::Pulling
        | PhaseKind::Draining
        | PhaseKind::Ended => String::new(),
    }
}

fn link(failed: &Failed) -> String {
    let Some(silent) = failed.silent.map(room::Span::as_millis) else {
        return String::new();
    };
    match silent < SILENT_MS {
        true => format!(", though its link was alive (heard {} ago)", lasting(silent)),
        false => format!(", and nothing was heard of it for {}", lasting(silent)),
    }
}

/// As a line of the history.
pub(super) fn line(
    history: &RoomHistory,
    attempt: Generation,
    (who, error): (&str, AttemptError),
    retried: bool,
) -> (Tone, String) {
    let known = history.failed().find(|(failed, _)| failed.attempt == attempt);
    let why = known.map_or_else(
        || words::attempt_error(error),
        |(failed, link_end)| why(failed, link_end, history.facts()),
    );
    let then = match retried {
        true => "it is tried again",
        false => "it is not tried again",
    };
    let tone = match error.is_fault() {
        true => Tone::Fault,
        false => Tone::Warn,
    };
    (tone, format!("the attempt failed at {who}: {why}; {then}"))
}

/// The last attempts in which something was broken, each by itself.
pub(super) fn told(history: &RoomHistory, names: &Names<'_>) -> Vec<String> {
    let broken = history.failed().filter(|(failed, _)| failed.error.is_fault());
    let mut told: Vec<String> = broken
        .rev()
        .take(TOLD)
        .map(|(failed, link_end)| {
            let stuck = matches!(failed.error, AttemptError::NoProgress(_));
            let alive = failed.silent.is_some_and(|silent| silent.as_millis() < SILENT_MS);
            let look = match stuck && alive {
                true => format!(": {LOOK}"),
                false => String::new(),
            };
            format!(
                "attempt {} failed at {}: {}{look}",
                failed.attempt.0,
                names.of(failed.worker),
                why(failed, link_end, history.facts())
            )
        })
        .collect();
    told.reverse();
    told
}
