//! What happens to a room, as lines.

use ::room::{AttemptError, Happening, Outcome};
use tracing::{debug, error, info, warn};

use crate::event::{RoomEvent, RoomWhat};
use crate::facts::Facts;
use crate::history::RoomState;
use crate::labels;

const TARGET: &str = "runtime::room";

pub(super) fn write(event: &RoomEvent, facts: &Facts, state: &RoomState) {
    let (room, generation) = (event.room, event.generation.0);
    let age_ms = (event.at - facts.arrived()).as_millis();
    match &event.what {
        RoomWhat::Opened(facts) => {
            let (request_id, trace_id) = (&facts.request_id, facts.trace.id);
            debug!(target: TARGET, %room, %request_id, %trace_id, prompt_tokens = facts.prompt_tokens, max_tokens = facts.max_tokens, "opened");
        }
        RoomWhat::Room(happening) => happened(event, happening, age_ms),
        RoomWhat::Cached { worker, tokens } => {
            debug!(target: TARGET, %room, generation, %worker, tokens, "a part of the prompt is cached");
        }
        RoomWhat::Moved(moved) => {
            let (from, to, transport) = (moved.from, moved.to, &moved.transport);
            debug!(target: TARGET, %room, generation, %from, %to, bytes = moved.bytes, descriptors = moved.descriptors, micros = moved.lasted.micros, %transport, "pulled");
        }
        RoomWhat::NotSent { worker, why } => {
            warn!(target: TARGET, %room, generation, %worker, why = &**why, "an order cannot be sent");
        }
        RoomWhat::TimerFired { phase } => {
            info!(target: TARGET, %room, generation, %phase, age_ms, "timeout: a deadline of the room has passed");
        }
        RoomWhat::OwnerSilent { phase } => {
            warn!(target: TARGET, %room, generation, %phase, age_ms, "timeout: the room's owner does not answer and is killed");
        }
        RoomWhat::OwnerDied { phase, why, deaths } => {
            error!(target: TARGET, %room, generation, %phase, age_ms, deaths, why = &**why, "the room's owner died; its supervisor drains the room");
        }
        RoomWhat::Buried { workers } => {
            error!(target: TARGET, %room, generation, age_ms, workers, "the room's owners die again and again: its workers are fenced");
        }
        RoomWhat::Answered { outcome, delivered } => answered(event, facts, state, *outcome, *delivered),
        RoomWhat::Ended { .. } => debug!(target: TARGET, %room, generation, age_ms, "nothing is left"),
    }
}

fn happened(event: &RoomEvent, happening: &Happening, age_ms: u64) {
    let (room, generation) = (event.room, event.generation.0);
    match *happening {
        Happening::Transition(step) => {
            let (from, to, why) = (step.from, step.to, step.why);
            debug!(target: TARGET, %room, generation, %from, %to, ?why, lasted_ms = step.lasted.as_millis(), "phase");
        }
        Happening::AttemptFailed {
            worker,
            error: error @ AttemptError::NoProgress(phase),
            retried,
        } => {
            warn!(target: TARGET, %room, generation, %worker, ?error, %phase, age_ms, retried, "the attempt failed");
        }
        Happening::AttemptFailed {
            worker,
            error,
            retried,
        } => info!(target: TARGET, %room, generation, %worker, ?error, age_ms, retried, "the attempt failed"),
        Happening::Routed(route) => {
            let (prefill, decode) = (route.prefill, route.decode);
            debug!(target: TARGET, %room, generation, %prefill, %decode, "credit granted");
        }
        Happening::Granted {
            worker,
            cached_blocks,
        } => debug!(target: TARGET, %room, generation, %worker, cached_blocks, "blocks and a slot granted"),
        Happening::Computed {
            worker,
            positions,
            of,
        } => debug!(target: TARGET, %room, generation, %worker, positions, of, "a chunk is computed"),
        Happening::Published { worker } => debug!(target: TARGET, %room, generation, %worker, "published"),
        Happening::Delivered { from: 0, .. } => {
            debug!(target: TARGET, %room, generation, age_ms, "first token");
        }
        Happening::Delivered { .. } => {}
        Happening::Paused => debug!(target: TARGET, %room, generation, "paused: its reader is behind"),
        Happening::Resumed => debug!(target: TARGET, %room, generation, "goes on: its reader has caught up"),
        Happening::LegOpened { worker } => debug!(target: TARGET, %room, generation, %worker, "leg opened"),
        Happening::LegReturned { worker, of, by } => {
            debug!(target: TARGET, %room, generation = of.0, %worker, ?by, "leg returned");
        }
        Happening::ToldAgain { worker, of, told } => {
            debug!(target: TARGET, %room, generation = of.0, %worker, told, "told again to return its lease");
        }
        Happening::DrainOverdue { worker, of, told } => {
            warn!(target: TARGET, %room, generation = of.0, %worker, told, age_ms, "timeout: the worker has not proven its lease returned");
        }
        Happening::Fenced { worker, of } => {
            warn!(target: TARGET, %room, generation = of.0, %worker, age_ms, "the worker is fenced: it did not return a lease");
        }
    }
}

/// The one line that has everything.
fn answered(event: &RoomEvent, facts: &Facts, state: &RoomState, fixed: Outcome, delivered: u32) {
    let (outcome, reason) = labels::outcome(fixed);
    let ended_in = state.ended_in.unwrap_or(state.phase);
    macro_rules! line {
        ($level:ident) => {
            $level!(
                target: TARGET,
                room = %event.room,
                request_id = &*facts.request_id,
                trace_id = %facts.trace.id,
                outcome,
                reason,
                %ended_in,
                delivered,
                prompt_tokens = facts.prompt_tokens,
                cached_tokens = state.cached_tokens,
                attempts = state.attempts,
                prepare_ms = facts.prepared.in_all.as_millis(),
                queued_ms = state.queued.as_millis(),
                first_token_ms = state.to_first_token(facts).map(::room::Span::as_millis),
                total_ms = (event.at - facts.arrived()).as_millis(),
                workers = %state.workers,
                "ended"
            )
        };
    }
    if labels::is_in_order(fixed) {
        line!(info);
    } else {
        line!(warn);
    }
}
