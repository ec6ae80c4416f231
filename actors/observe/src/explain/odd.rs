//! What is out of the ordinary about a room: where to look first.

use room::{Happening, NodeId, Proof, WaitsFor};

use super::failures::{self, LOOK, SILENT_MS};
use super::names::Names;
use super::times::lasting;
use super::{Standing, words};
use crate::event::{RoomEvent, RoomWhat};
use crate::history::{RoomHistory, Stream};

/// A prompt, a pull or a grant that has made no step for this long, in milliseconds, is worth a look.
const STILL_MS: u64 = 2_000;

/// The worst first.
pub(super) fn odd(history: &RoomHistory, standing: &Standing<'_>, names: &Names<'_>) -> Vec<String> {
    let mut odd = Vec::new();
    if history.state().ended.is_none() {
        workers(&mut odd, standing, names);
        still(&mut odd, history, standing, names);
    }
    past(&mut odd, history, names);
    odd
}

/// The workers that it waits for, or that hold something for it.
fn workers(odd: &mut Vec<String>, standing: &Standing<'_>, names: &Names<'_>) {
    if standing.no_worker {
        odd.push("there is no worker of a kind that it needs".to_owned());
    }
    let mut concerned: Vec<NodeId> = awaited(standing.waits_for);
    concerned.extend(standing.legs.iter().map(|leg| leg.worker));
    concerned.sort_unstable();
    concerned.dedup();
    for node in concerned {
        match standing.peer(node) {
            None => odd.push(format!("{} is not linked any more", names.of(node))),
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
fn still(odd: &mut Vec<String>, history: &RoomHistory, standing: &Standing<'_>, names: &Names<'_>) {
    let moves = history.events().iter().filter(|event| is_move(event));
    let last = moves.last().map(|event| event.at);
    let last = last.max(history.state().stream.last);
    let Some(still) = last.map(|last| (standing.now - last).as_millis()) else {
        return;
    };
    if still < STILL_MS {
        return;
    }
    let told = match standing.waits_for {
        WaitsFor::Prompt { worker, .. } => format!("{} has computed nothing of it", names.of(worker)),
        WaitsFor::Token { worker } => format!("{} has sent no token", names.of(worker)),
        WaitsFor::Kv { from, to } => {
            format!("{} has not got its KV from {}", names.of(to), names.of(from))
        }
        WaitsFor::Grant { worker } => format!("{} has neither granted nor refused it", names.of(worker)),
        WaitsFor::Proof { worker, .. } => {
            format!("{} has not proven its lease returned", names.of(worker))
        }
        WaitsFor::Credit | WaitsFor::Pause { .. } | WaitsFor::Reader | WaitsFor::Nothing => return,
    };
    let alive = awaited(standing.waits_for)
        .into_iter()
        .filter_map(|node| standing.peer(node)?.heard)
        .all(|heard| (standing.now - heard).as_millis() < SILENT_MS);
    let though = match alive {
        true => format!(", though its link is alive: {LOOK}"),
        false => String::new(),
    };
    odd.push(format!("for {} {told}{though}", lasting(still)));
}

/// Whether the room goes on by it: that it waits is said again and again, and also of an attempt before the present one.
fn is_move(event: &RoomEvent) -> bool {
    !matches!(
        event.what,
        RoomWhat::TimerFired { .. }
            | RoomWhat::WorkerSaid { .. }
            | RoomWhat::Room(Happening::ToldAgain { .. } | Happening::DrainOverdue { .. })
    )
}

/// What has gone wrong before.
fn past(odd: &mut Vec<String>, history: &RoomHistory, names: &Names<'_>) {
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
    odd.extend(failures::told(history, names));
    odd.extend(lost_words(history, names));
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

/// That a digest made good for a message that did not arrive. Whose it was only the worker knows.
fn lost_words(history: &RoomHistory, names: &Names<'_>) -> Option<String> {
    let mut healed: Vec<String> = Vec::new();
    for event in history.events().iter() {
        if let RoomWhat::Room(Happening::LegReturned {
            worker,
            by: Proof::NotHeld,
            ..
        }) = event.what
        {
            let name = names.of(worker);
            if !healed.contains(&name) {
                healed.push(name);
            }
        }
    }
    let (last, others) = healed.split_last()?;
    let (who, they, has) = match others {
        [] => (last.clone(), "it", "has"),
        others => (format!("{} and {last}", others.join(", ")), "they", "have"),
    };
    Some(format!(
        "a last word between this gateway and {who} was lost, and a digest made good for it: {they} {has} it in /stays/ended, where \
         `not_in_digest` means that this gateway's word was lost, and any other `why` that the worker's was"
    ))
}
