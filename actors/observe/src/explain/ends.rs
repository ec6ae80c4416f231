//! Which deadline ends a wait, and what happens then.

use room::{PhaseKind, WaitsFor};

use super::{Ends, Standing};
use crate::facts::Facts;
use crate::history::RoomState;

const NEXT: &str = "the attempt fails, and the next one begins elsewhere, as long as attempts are left";

pub(super) fn ends(facts: &Facts, state: &RoomState, standing: &Standing<'_>) -> Option<Ends> {
    let at = standing.deadline?;
    let (deadline, then) = if state.phase.is_live() && at >= facts.deadline {
        (
            "the request's own deadline".to_owned(),
            format!(
                "it ends: expired in {} (its client is told 504, with the phase)",
                state.phase
            ),
        )
    } else {
        of_phase(state.phase, standing)
    };
    Some(Ends {
        in_ms: (at - standing.now).as_millis(),
        deadline,
        then,
    })
}

fn of_phase(phase: PhaseKind, standing: &Standing<'_>) -> (String, String) {
    let (deadline, then) = match phase {
        PhaseKind::Queued if standing.no_worker => (
            "the longest wait for a worker of a kind that there is none of",
            "it ends: failed, no_worker (503, with Retry-After)",
        ),
        PhaseKind::Queued => (
            "the longest wait for credit",
            "it ends: failed, no_credit (429, with Retry-After), or if it had begun: 503",
        ),
        PhaseKind::Reserving => ("the longest wait for blocks and a slot", NEXT),
        PhaseKind::Prefilling => ("the longest time without progress of a prompt", NEXT),
        PhaseKind::Pulling => ("the longest time of one pull", NEXT),
        PhaseKind::Decoding => ("the longest time between two tokens", NEXT),
        PhaseKind::Draining => {
            let who = match standing.waits_for {
                WaitsFor::Proof { worker, .. } => standing.name(worker),
                WaitsFor::Credit
                | WaitsFor::Pause { .. }
                | WaitsFor::Grant { .. }
                | WaitsFor::Prompt { .. }
                | WaitsFor::Kv { .. }
                | WaitsFor::Token { .. }
                | WaitsFor::Reader
                | WaitsFor::Nothing => "the worker".to_owned(),
            };
            return (
                "the longest wait for proof that a lease is returned".to_owned(),
                format!("{who} is fenced: its link is cut, and with it all that it holds for this gateway"),
            );
        }
        PhaseKind::Ended => ("none", "nothing"),
    };
    (deadline.to_owned(), then.to_owned())
}
