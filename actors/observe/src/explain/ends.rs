//! Which deadline ends a wait, and what happens then.

use room::{PhaseKind, WaitsFor};

use super::names::Names;
use super::words::ordinal;
use super::{Ends, Standing};
use crate::facts::Facts;
use crate::history::RoomState;

pub(super) fn ends(
    facts: &Facts,
    state: &RoomState,
    standing: &Standing<'_>,
    names: &Names<'_>,
) -> Option<Ends> {
    let at = standing.deadline?;
    let (deadline, then) = if state.phase.is_live() && at >= facts.deadline {
        (
            "the request's own deadline",
            format!(
                "it ends: expired in {} (its client is told 504, with the phase)",
                state.phase
            ),
        )
    } else {
        of_phase(state, standing, names)
    };
    Some(Ends {
        in_ms: (at - standing.now).as_millis(),
        deadline: deadline.to_owned(),
        then,
    })
}

fn of_phase(state: &RoomState, standing: &Standing<'_>, names: &Names<'_>) -> (&'static str, String) {
    let then = match state.phase {
        PhaseKind::Queued if standing.no_worker => {
            return (
                "the longest wait for a worker of a kind that there is none of",
                "it ends: failed, no_worker (503, with Retry-After)".to_owned(),
            );
        }
        PhaseKind::Queued => {
            "it ends: failed, no_credit (429, with Retry-After), or if it had begun: 503".to_owned()
        }
        PhaseKind::Reserving | PhaseKind::Prefilling | PhaseKind::Pulling | PhaseKind::Decoding => {
            attempt_fails(state, standing.most_faults)
        }
        PhaseKind::Draining => {
            let who = match standing.waits_for {
                WaitsFor::Proof { worker, .. } => names.of(worker),
                WaitsFor::Credit
                | WaitsFor::Pause { .. }
                | WaitsFor::Grant { .. }
                | WaitsFor::Prompt { .. }
                | WaitsFor::Kv { .. }
                | WaitsFor::Token { .. }
                | WaitsFor::Reader
                | WaitsFor::Nothing => "the worker".to_owned(),
            };
            format!("{who} is fenced: its link is cut, and with it all that it holds for this gateway")
        }
        PhaseKind::Ended => "nothing".to_owned(),
    };
    (deadline(state.phase), then)
}

/// The deadline that each phase has.
pub(super) fn deadline(phase: PhaseKind) -> &'static str {
    match phase {
        PhaseKind::Queued => "the longest wait for credit",
        PhaseKind::Reserving => "the longest wait for blocks and a slot",
        PhaseKind::Prefilling => "the longest time without progress of a prompt",
        PhaseKind::Pulling => "the longest time of one pull",
        PhaseKind::Decoding => "the longest time between two tokens",
        PhaseKind::Draining => "the longest wait for proof that a lease is returned",
        PhaseKind::Ended => "none",
    }
}

/// Attempts that fail by a fault are bounded; those that only lacked room are not.
fn attempt_fails(state: &RoomState, most: u32) -> String {
    let fault = state.faults.saturating_add(1);
    let which = match state.attempts == fault {
        true => format!("attempt {fault} of {most} fails"),
        false => format!(
            "attempt {} fails, as the {} of {most} that may",
            state.attempts,
            ordinal(fault)
        ),
    };
    match fault < most {
        true => format!("{which}, and the next one begins elsewhere"),
        false => format!("{which}, and with it the room"),
    }
}
