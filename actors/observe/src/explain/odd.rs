//! What is out of the ordinary about a room: where to look first.

use room::{NodeId, WaitsFor};

use super::times::lasting;
use super::{Standing, words};
use crate::event::RoomWhat;
use crate::history::{RoomHistory, Stream};

/// A worker that has reported nothing for this long, in milliseconds, is silent: several heartbeats of any sensible length.
const SILENT_MS: u64 = 1_000;

/// A prompt, a pull or a grant that has made no step for this long, in milliseconds, is worth a look.
const STILL_MS: u64 = 2_000;

/// The worst first.
pub(super) fn odd(history: &RoomHistory, standing: &Standing<'_>) -> Vec<String> {
    let mut odd = Vec::new();
    if history.state().ended.is_none() {
        workers(&mut odd, standing);
        still(&mut odd, history, standing);
    }
    past(&mut odd, history);
    odd
}

/// The workers that it waits for, or that hold something for it.
fn workers(odd: &mut Vec<String>, standing: &Standing<'_>) {
    if standing.no_worker {
        odd.push("there is no worker of a kind that it needs".to_owned());
    }
    let mut concerned: Vec<NodeId> = awaited(standing.waits_for);
    concerned.extend(standing.legs.iter().map(|leg| leg.worker));
    concerned.sort_unstable();
    concerned.dedup();
    for node in concerned {
        match standing.peer(node) {
            None => odd.push(format!("{} is not linked any more", standing.name(node))),
            Some(peer) => {
                let silent = peer.heard.map(|heard| (standing.now - heard).as_millis());
                if let Some(silent) = silent.filter(|silent| *silent >= SILENT_MS) {
                    odd.push(format!(
                        "{} has said nothing for {}: dead, stopped, or cut off",
                        peer.name,
                        lasting(silent)
                    ));
                }
                if peer.draining {
                    odd.push(format!("{} is draining: it takes nothing new", peer.name));
                }
            }
        }
    }
}

fn awaited(waits_for: WaitsFor) -> Vec<NodeId> {
    match waits_for {
        WaitsFor::Grant { worker }
        | WaitsFor::Prompt { worker, .. }
        | WaitsFor::Token { worker }
        | WaitsFor::Proof { worker, .. } => vec![worker],
        WaitsFor::Kv { from, to } => vec![from, to],
        WaitsFor::Credit | WaitsFor::Pause { .. } | WaitsFor::Reader | WaitsFor::Nothing => Vec::new(),
    }
}

/// A worker that speaks, and a room that does not move.
fn still(odd: &mut Vec<String>, history: &RoomHistory, standing: &Standing<'_>) {
    let last = history.events().iter().last().map(|event| event.at);
    let last = last.max(history.state().stream.last);
    let Some(still) = last.map(|last| (standing.now - last).as_millis()) else {
        return;
    };
    if still < STILL_MS {
        return;
    }
    let told = match standing.waits_for {
        WaitsFor::Prompt { worker, .. } => format!("{} has computed nothing of it", standing.name(worker)),
        WaitsFor::Token { worker } => format!("{} has sent no token", standing.name(worker)),
        WaitsFor::Kv { from, to } => {
            format!(
                "{} has not got its KV from {}",
                standing.name(to),
                standing.name(from)
            )
        }
        WaitsFor::Grant { worker } => format!("{} has neither granted nor refused it", standing.name(worker)),
        WaitsFor::Proof { worker, .. } => {
            format!("{} has not proven its lease returned", standing.name(worker))
        }
        WaitsFor::Credit | WaitsFor::Pause { .. } | WaitsFor::Reader | WaitsFor::Nothing => return,
    };
    let alive = awaited(standing.waits_for)
        .into_iter()
        .filter_map(|node| standing.peer(node)?.heard)
        .all(|heard| (standing.now - heard).as_millis() < SILENT_MS);
    let though = match alive {
        true => ", though its link is alive: look at that worker's engine and its log",
        false => "",
    };
    odd.push(format!("for {} {told}{though}", lasting(still)));
}

/// What has gone wrong before.
fn past(odd: &mut Vec<String>, history: &RoomHistory) {
    let (facts, state) = (history.facts(), history.state());
    for event in history.events().iter() {
        if let RoomWhat::OwnerDied { why, .. } = &event.what {
            odd.push(format!("its owner died: {why}"));
        }
    }
    if state.fenced {
        odd.push("a worker was fenced for it".to_owned());
    }
    if state.attempts > 1 {
        odd.push(format!("it took {} attempts", state.attempts));
    }
    if state.stream.longest_gap >= Stream::STALL {
        odd.push(format!(
            "its tokens stalled for {}",
            lasting(state.stream.longest_gap.as_millis())
        ));
    }
    if let Some((outcome, at)) = state.outcome
        && let Some(drained) = state.ended.map(|ended| (ended - at).as_millis())
        && drained >= STILL_MS
    {
        odd.push(format!(
            "after it had {}, it took {} to prove everything returned",
            words::outcome(outcome),
            lasting(drained)
        ));
    }
    if facts.prepared.in_all.as_millis() >= STILL_MS {
        odd.push(format!(
            "the door took {} to make tokens of it",
            lasting(facts.prepared.in_all.as_millis())
        ));
    }
}
