//! What happens to a stay, as lines.

use std::sync::Arc;

use ::room::{StayCause, StayPhase, StayTransition};
use tracing::{debug, info, warn};

use super::overdue::{self, Overdue};
use crate::event::{StayEvent, StayWhat};
use crate::facts::StayFacts;
use crate::labels;

const TARGET: &str = "runtime::stay";

pub(super) fn write(event: &StayEvent, facts: Option<&Arc<StayFacts>>, overdue: &Overdue) {
    let room = event.attempt.room;
    let attempt = event.attempt.generation.0;
    let worker = facts.map_or("", |facts| &*facts.name);
    match &event.what {
        StayWhat::Opened(facts) => {
            let trace_id = facts.trace.map(|trace| tracing::field::display(trace.id));
            debug!(target: TARGET, worker, %room, attempt, trace_id, positions = facts.positions, "opened");
        }
        StayWhat::Refused(why) => {
            let why = labels::refusal(*why);
            debug!(target: TARGET, node = %event.worker, %room, attempt, why, "refused");
        }
        StayWhat::Step(step) => stepped(event, step, facts, overdue),
        StayWhat::PromptStarted { cached } => {
            debug!(target: TARGET, worker, %room, attempt, cached, "the engine is given the prompt");
        }
        StayWhat::Computed { positions } => {
            debug!(target: TARGET, worker, %room, attempt, positions, "a chunk is computed");
        }
        StayWhat::Sampled { .. } => {}
        StayWhat::WantsBlocks { blocks } => {
            debug!(target: TARGET, worker, %room, attempt, blocks, "its sequence wants blocks");
        }
        StayWhat::EngineFailed { why } => {
            warn!(target: TARGET, worker, %room, attempt, why = &**why, "its sequence fails in the engine");
        }
        StayWhat::NotCommanded { why } => {
            warn!(target: TARGET, worker, %room, attempt, why = &**why, "the engine takes no command");
        }
        StayWhat::Offered { blocks } => {
            debug!(target: TARGET, worker, %room, attempt, blocks, "its KV is on offer");
        }
        StayWhat::NotOffered { why } => {
            warn!(target: TARGET, worker, %room, attempt, why = &**why, "blocks cannot be offered");
        }
        StayWhat::Withdrawn => {
            debug!(target: TARGET, worker, %room, attempt, "nobody reads what was offered");
        }
        StayWhat::ReadStarted {
            blocks,
            cached_blocks,
        } => debug!(target: TARGET, worker, %room, attempt, blocks, cached_blocks, "a pull begins"),
        StayWhat::ReadDone {
            bytes,
            descriptors,
            transport,
            lasted,
        } => {
            debug!(target: TARGET, worker, %room, attempt, bytes, descriptors, transport = &**transport, micros = lasted.micros, "pulled");
        }
        // Also of one that was not wanted any more: of one that was, the stay fails, and that is a warning.
        StayWhat::ReadFailed { why, lasted } => {
            info!(target: TARGET, worker, %room, attempt, why = &**why, lasted_ms = lasted.as_millis(), "a pull ended without the KV");
        }
    }
}

fn stepped(event: &StayEvent, step: &StayTransition, facts: Option<&Arc<StayFacts>>, overdue: &Overdue) {
    let (room, attempt) = (event.attempt.room, event.attempt.generation.0);
    let worker = facts.map_or("", |facts| &*facts.name);
    let (from, to, why) = (phase(step.from), phase(step.to), labels::stay_cause(step.why));
    let age_ms = facts.map(|facts| (event.at - facts.opened).as_millis());
    if step.to.is_none() {
        overdue.over(event.worker, event.attempt);
    }
    match step.why {
        StayCause::ProofOverdue => {
            let times = overdue.again(event.worker, event.attempt);
            let holds = labels::holds(step.holds);
            if overdue::is_told(times) {
                warn!(target: TARGET, worker, %room, attempt, holds, times, age_ms, "timeout: nobody has proven yet that its blocks are not touched any more");
            } else {
                debug!(target: TARGET, worker, %room, attempt, holds, times, age_ms, "not proven yet");
            }
        }
        StayCause::Failed(error) => {
            let (reason, refusal) = (labels::attempt_error(error), labels::refused(error));
            macro_rules! line {
                ($level:ident) => {
                    $level!(target: TARGET, worker, %room, attempt, from, to, reason, refusal, age_ms, "the attempt failed here")
                };
            }
            if error.is_fault() {
                line!(warn);
            } else {
                line!(info);
            }
        }
        StayCause::NotInDigest | StayCause::Superseded => {
            info!(target: TARGET, worker, %room, attempt, from, to, why, age_ms, "stay");
        }
        StayCause::Owner
        | StayCause::Engine
        | StayCause::Transfer
        | StayCause::Finished
        | StayCause::ClosedByOwner
        | StayCause::GatewayLost
        | StayCause::Proven => {
            debug!(target: TARGET, worker, %room, attempt, from, to, why, age_ms, "stay");
        }
    }
}

fn phase(phase: Option<StayPhase>) -> &'static str {
    phase.map_or("none", labels::stay_phase)
}
