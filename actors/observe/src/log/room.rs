//! What happens to a room, as lines.

use ::room::{AttemptError, Happening, NodeId, Outcome, Span};
use tracing::{debug, error, info, warn};

use crate::event::{RoomEvent, RoomWhat, Text};
use crate::facts::Facts;
use crate::history::{RoomState, Workers};
use crate::labels;
use crate::roster::Roster;

const TARGET: &str = "runtime::room";

pub(super) fn write(event: &RoomEvent, facts: &Facts, state: &RoomState, roster: &Roster) {
    let (room, attempt) = (event.room, event.generation.0);
    let age_ms = (event.at - facts.arrived()).as_millis();
    let name = |worker: &NodeId| roster.called(*worker);
    match &event.what {
        RoomWhat::Opened(facts) => {
            let (request_id, trace_id) = (&facts.request_id, facts.trace.id);
            debug!(target: TARGET, %room, %request_id, %trace_id, prompt_tokens = facts.prompt_tokens, max_tokens = facts.max_tokens, "opened");
        }
        RoomWhat::Room(happening) => happened(event, happening, (state, roster), age_ms),
        RoomWhat::Cached { worker, tokens } => {
            debug!(target: TARGET, %room, attempt, worker = &*name(worker), tokens, "a part of the prompt is cached");
        }
        RoomWhat::Moved(moved) => {
            let transport = &moved.transport;
            debug!(target: TARGET, %room, attempt, from = &*name(&moved.from), to = &*name(&moved.to), bytes = moved.bytes, descriptors = moved.descriptors, micros = moved.lasted.micros, %transport, "pulled");
        }
        RoomWhat::NotSent { worker, why } => {
            warn!(target: TARGET, %room, attempt, worker = &*name(worker), node = %worker, why = &**why, "an order cannot be sent");
        }
        RoomWhat::WorkerSaid {
            worker,
            generation,
            why,
        } => {
            warn!(target: TARGET, %room, attempt = generation.0, worker = &*name(worker), node = %worker, why = &**why, "the worker says why it gives the attempt up");
        }
        // What it leads to has its own line.
        RoomWhat::TimerFired { phase } => {
            debug!(target: TARGET, %room, attempt, %phase, age_ms, "something is due: the room's owner is told");
        }
        RoomWhat::OwnerSilent { phase } => {
            warn!(target: TARGET, %room, attempt, %phase, age_ms, "timeout: the room's owner does not answer and is killed");
        }
        RoomWhat::OwnerDied { phase, why, deaths } => {
            error!(target: TARGET, %room, attempt, %phase, age_ms, deaths, why = &**why, "the room's owner died; its supervisor drains the room");
        }
        RoomWhat::Buried { workers } => {
            error!(target: TARGET, %room, attempt, age_ms, workers, "the room's owners die again and again: its workers are fenced");
        }
        RoomWhat::Answered { outcome, delivered } => {
            answered(event, facts, (state, roster), *outcome, *delivered);
        }
        RoomWhat::Ended { .. } => debug!(target: TARGET, %room, attempt, age_ms, "nothing is left"),
    }
}

fn happened(event: &RoomEvent, happening: &Happening, around: (&RoomState, &Roster), age_ms: u64) {
    let (room, attempt) = (event.room, event.generation.0);
    let name = |worker: NodeId| around.1.called(worker);
    match *happening {
        Happening::Transition(step) => {
            let (from, to, why) = (step.from, step.to, labels::why(step.why));
            let reason = labels::why_so(step.why);
            debug!(target: TARGET, %room, attempt, %from, %to, why, reason, lasted_ms = step.lasted.as_millis(), "phase");
        }
        Happening::AttemptFailed {
            worker,
            error,
            retried,
        } => failed(event, (worker, error, retried), around, age_ms),
        Happening::Routed(route) => {
            debug!(target: TARGET, %room, attempt, prefill = &*name(route.prefill), decode = &*name(route.decode), "credit granted");
        }
        Happening::Granted {
            worker,
            cached_blocks,
        } => {
            debug!(target: TARGET, %room, attempt, worker = &*name(worker), cached_blocks, "blocks and a slot granted");
        }
        Happening::Computed {
            worker,
            positions,
            of,
        } => {
            debug!(target: TARGET, %room, attempt, worker = &*name(worker), positions, of, "a chunk is computed");
        }
        Happening::Published { worker } => {
            debug!(target: TARGET, %room, attempt, worker = &*name(worker), "published");
        }
        Happening::Delivered { from: 0, .. } => debug!(target: TARGET, %room, attempt, age_ms, "first token"),
        Happening::Delivered { .. } => {}
        Happening::Paused => debug!(target: TARGET, %room, attempt, "paused: its reader is behind"),
        Happening::Resumed => debug!(target: TARGET, %room, attempt, "goes on: its reader has caught up"),
        Happening::LegOpened { worker } => {
            debug!(target: TARGET, %room, attempt, worker = &*name(worker), "leg opened");
        }
        Happening::LegReturned { worker, of, by } => {
            debug!(target: TARGET, %room, attempt = of.0, worker = &*name(worker), by = labels::proof(by), "leg returned");
        }
        Happening::ToldAgain { worker, of, told } => {
            debug!(target: TARGET, %room, attempt = of.0, worker = &*name(worker), told, "told again to return its lease");
        }
        Happening::DrainOverdue { worker, of, told } => {
            warn!(target: TARGET, %room, attempt = of.0, worker = &*name(worker), node = %worker, told, age_ms, "timeout: the worker has not proven its lease returned");
        }
        Happening::Fenced { worker, of } => {
            warn!(target: TARGET, %room, attempt = of.0, worker = &*name(worker), node = %worker, age_ms, "the worker is fenced: it did not return a lease");
        }
    }
}

/// A lack of room passes and is common where there is much to do: it is told, and is no warning.
fn failed(
    event: &RoomEvent,
    (worker, error, retried): (NodeId, AttemptError, bool),
    (state, roster): (&RoomState, &Roster),
    age_ms: u64,
) {
    let (room, attempt) = (event.room, event.generation.0);
    let (name, reason) = (roster.called(worker), labels::attempt_error(error));
    let then = state.failed.filter(|failed| failed.attempt == event.generation);
    let phase = then.map(|failed| failed.phase.name());
    if !error.is_fault() {
        let refusal = labels::refused(error);
        info!(target: TARGET, %room, attempt, phase, worker = &*name, node = %worker, reason, refusal, age_ms, retried, "the worker has no room for the attempt");
        return;
    }
    let is_lost = error == AttemptError::WorkerLost;
    let why = is_lost.then(|| roster.link_end(worker)).flatten();
    warn!(
        target: TARGET,
        %room,
        attempt,
        phase,
        worker = &*name,
        node = %worker,
        reason,
        refusal = labels::refused(error),
        why = why.as_deref(),
        age_ms,
        in_phase_ms = then.map(|failed| failed.in_phase.as_millis()),
        computed = then.map(|failed| failed.computed),
        positions = then.map(|failed| failed.positions),
        delivered = then.map(|failed| failed.delivered),
        heard_ms_ago = then.and_then(|failed| failed.silent).map(Span::as_millis),
        retried,
        "the attempt failed"
    );
}

fn called(workers: &Workers, roster: &Roster) -> String {
    let names: Vec<Text> = workers.iter().map(|worker| roster.called(worker)).collect();
    names.join(",")
}

/// The one line that has everything.
fn answered(
    event: &RoomEvent,
    facts: &Facts,
    (state, roster): (&RoomState, &Roster),
    fixed: Outcome,
    delivered: u32,
) {
    let (outcome, reason) = labels::outcome(fixed);
    let ended_in = state.ended_in.unwrap_or(state.phase);
    let workers = called(&state.workers, roster);
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
                first_token_ms = state.to_first_token(facts).map(Span::as_millis),
                total_ms = (event.at - facts.arrived()).as_millis(),
                workers,
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
