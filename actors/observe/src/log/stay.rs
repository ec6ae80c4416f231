//! What happens to a stay, as lines.

use std::sync::Arc;

use ::room::{AttemptError, StayCause};
use tracing::{debug, info, warn};

use crate::event::{StayEvent, StayWhat};
use crate::facts::StayFacts;
use crate::labels;

const TARGET: &str = "runtime::stay";

pub(super) fn write(event: &StayEvent, facts: Option<&Arc<StayFacts>>) {
    let room = event.attempt;
    let worker = facts.map_or("", |facts| &*facts.name);
    match &event.what {
        StayWhat::Opened(facts) => {
            let trace_id = facts.trace.map(|trace| tracing::field::display(trace.id));
            debug!(target: TARGET, worker, %room, trace_id, positions = facts.positions, "opened");
        }
        StayWhat::Refused(why) => debug!(target: TARGET, node = %event.worker, %room, ?why, "refused"),
        StayWhat::Step(step) => {
            let (from, to, why) = (step.from, step.to, step.why);
            match why {
                StayCause::ProofOverdue => {
                    let holds = labels::holds(step.holds);
                    warn!(target: TARGET, worker, %room, holds, "timeout: nobody has proven yet that its blocks are not touched any more");
                }
                StayCause::Failed(AttemptError::NoProgress(phase)) => {
                    warn!(target: TARGET, worker, %room, ?from, ?to, ?why, %phase, "stay");
                }
                StayCause::Failed(_) | StayCause::NotInDigest | StayCause::Superseded => {
                    info!(target: TARGET, worker, %room, ?from, ?to, ?why, "stay");
                }
                StayCause::Owner
                | StayCause::Engine
                | StayCause::Transfer
                | StayCause::Finished
                | StayCause::ClosedByOwner
                | StayCause::GatewayLost
                | StayCause::Proven => debug!(target: TARGET, worker, %room, ?from, ?to, ?why, "stay"),
            }
        }
        StayWhat::PromptStarted { cached } => {
            debug!(target: TARGET, worker, %room, cached, "the engine is given the prompt");
        }
        StayWhat::Computed { positions } => {
            debug!(target: TARGET, worker, %room, positions, "a chunk is computed");
        }
        StayWhat::Sampled { .. } => {}
        StayWhat::WantsBlocks { blocks } => {
            debug!(target: TARGET, worker, %room, blocks, "its sequence wants blocks");
        }
        StayWhat::EngineFailed { why } => {
            warn!(target: TARGET, worker, %room, why = &**why, "its sequence fails in the engine");
        }
        StayWhat::NotCommanded { why } => {
            warn!(target: TARGET, worker, %room, why = &**why, "the engine takes no command");
        }
        StayWhat::Offered { blocks } => debug!(target: TARGET, worker, %room, blocks, "its KV is on offer"),
        StayWhat::NotOffered { why } => {
            warn!(target: TARGET, worker, %room, why = &**why, "blocks cannot be offered");
        }
        StayWhat::Withdrawn => debug!(target: TARGET, worker, %room, "nobody reads what was offered"),
        StayWhat::ReadStarted {
            blocks,
            cached_blocks,
        } => debug!(target: TARGET, worker, %room, blocks, cached_blocks, "a pull begins"),
        StayWhat::ReadDone {
            bytes,
            descriptors,
            transport,
            lasted,
        } => {
            debug!(target: TARGET, worker, %room, bytes, descriptors, transport = &**transport, micros = lasted.micros, "pulled");
        }
        StayWhat::ReadFailed { why, lasted } => {
            info!(target: TARGET, worker, %room, why = &**why, lasted_ms = lasted.as_millis(), "a pull ended without the KV");
        }
    }
}
