//! What holds of all that was said as it happened: INV-03, 07, 08 and 10 once more, for what is over between two looks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use room::{Generation, NodeId, RoomId};

use crate::evidence::Evidence;
use crate::fault::Fault;
use crate::witness::Said;

/// One outcome a room (INV-03), however many saw it.
pub(super) fn one_outcome(evidence: &Evidence) -> Vec<String> {
    let mut told: BTreeMap<RoomId, u32> = BTreeMap::new();
    for (_, said) in &evidence.said {
        if let Said::Outcome(room) = said {
            *told.entry(*room).or_default() += 1;
        }
    }
    let twice = told.into_iter().filter(|(_, times)| *times > 1);
    twice
        .map(|(room, times)| format!("{room} was told its outcome {times} times"))
        .collect()
}

/// What was here before is never opened again, nor is what is older; and the next attempt is a new one (INV-07).
pub(super) fn only_newer(evidence: &Evidence) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut newest: BTreeMap<(&str, RoomId), Generation> = BTreeMap::new();
    let mut current: BTreeMap<RoomId, Generation> = BTreeMap::new();
    for (at, said) in &evidence.said {
        match said {
            Said::Opened(worker, attempt) => {
                let before = newest.insert((worker, attempt.room), attempt.generation);
                if before.is_some_and(|before| before >= attempt.generation) {
                    wrong.push(format!("{worker} opens {attempt} at {at:?} after {before:?}"));
                }
            }
            Said::Next(room, generation) => {
                let before = current.insert(*room, *generation).unwrap_or(Generation::FIRST);
                if before >= *generation {
                    wrong.push(format!(
                        "{room} goes on as {generation:?} at {at:?} after {before:?}"
                    ));
                }
            }
            _ => {}
        }
    }
    wrong
}

/// A room is over only when every lease that a worker may have had of it is proven returned (INV-08): a digest heals what its owner forgot, and
/// nothing else would tell. Of a room whose owner died the heir knows what the links know, and is not asked here.
pub(super) fn every_lease_is_proven(evidence: &Evidence) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut leased: BTreeMap<RoomId, BTreeSet<(Generation, NodeId)>> = BTreeMap::new();
    let mut inherited: BTreeSet<RoomId> = BTreeSet::new();
    for (at, said) in &evidence.said {
        match said {
            Said::Leased(attempt, worker) => {
                let of_room = leased.entry(attempt.room).or_default();
                of_room.insert((attempt.generation, *worker));
            }
            Said::Returned(attempt, worker) => {
                if let Some(of_room) = leased.get_mut(&attempt.room) {
                    of_room.remove(&(attempt.generation, *worker));
                }
            }
            Said::Past(room, Generation(u32::MAX)) => {
                inherited.insert(*room);
            }
            Said::Left(room) => {
                let left = leased.remove(room).unwrap_or_default();
                if !left.is_empty() && !inherited.contains(room) {
                    wrong.push(format!(
                        "{room} is over at {at:?}, and nobody has proven {left:?} returned"
                    ));
                }
            }
            _ => {}
        }
    }
    wrong
}

/// No attempt fails for a reason that cannot be (INV-10).
pub(super) fn possible_failures(evidence: &Evidence) -> Vec<String> {
    let met = |these: fn(&Fault) -> bool| evidence.plan.episodes.iter().any(|episode| these(&episode.fault));
    // What comes before its worker is known to have the KV counts as lost, too.
    let tokens_are_lost = met(|fault| {
        matches!(
            fault,
            Fault::Frames(_, wire::Kind::Tokens, mesh::Fault::Drop | mesh::Fault::Delay(_))
                | Fault::Frames(_, wire::Kind::Pulled, mesh::Fault::Delay(_))
        )
    });
    // An owner that has not heard of it goes on with an attempt that is over.
    let failures_are_lost = met(|fault| {
        matches!(
            fault,
            Fault::Frames(_, wire::Kind::Failed, mesh::Fault::Drop | mesh::Fault::Delay(_))
        )
    });
    let impossible = |error: &str| match error {
        "Refused(TooLarge)" | "Refused(OutOfOrder)" => true,
        "Refused(Stale)" => !failures_are_lost,
        "Gap" => !tokens_are_lost,
        _ => false,
    };
    let mut wrong = Vec::new();
    for (at, said) in &evidence.said {
        match said {
            Said::Failed(attempt, error) if impossible(error) => {
                wrong.push(format!("{attempt} failed by {error} at {at:?}"));
            }
            Said::Fenced(room) if !evidence.disturbed(at.saturating_sub(Duration::from_secs(5)), *at) => {
                wrong.push(format!(
                    "a worker was fenced for {room} at {at:?}, and nothing was wrong"
                ));
            }
            _ => {}
        }
    }
    wrong
}
