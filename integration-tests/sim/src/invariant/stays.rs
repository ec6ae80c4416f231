//! Leases end in time, whatever is lost: INV-08 while it goes on, and not only at the end.

use std::collections::BTreeMap;
use std::time::Duration;

use room::{Attempt, Generation, NodeId, RoomId};

use crate::client::{End, Manner};
use crate::evidence::Evidence;
use crate::fault::Fault;
use crate::witness::Said;

/// Whatever is lost, a worker ends a stay soon after its attempt is over for the owner, or after its gateway has died (INV-08).
pub(super) fn closed_in_time(evidence: &Evidence) -> Vec<String> {
    let plan = &evidence.plan;
    // A link that is cut one way is over at its gateway after a lease, and after another one at its worker.
    let bound = plan.lease * 2 + plan.heartbeat * 2 + Duration::from_millis(500);
    let died = deaths(evidence);
    let last = evidence.samples.last().map_or(Duration::ZERO, |sample| sample.at);
    let mut past: BTreeMap<RoomId, Vec<(Generation, Duration)>> = BTreeMap::new();
    for (at, said) in &evidence.said {
        match said {
            Said::Past(room, generation) => past.entry(*room).or_default().push((*generation, *at)),
            Said::Next(room, next) => {
                let before = Generation(next.0.saturating_sub(1));
                past.entry(*room).or_default().push((before, *at));
            }
            _ => {}
        }
    }
    let over = |attempt: &Attempt| {
        let ends = past.get(&attempt.room).into_iter().flatten();
        let ended = ends
            .filter(|(up_to, _)| *up_to >= attempt.generation)
            .map(|(_, at)| *at);
        ended.chain(died.get(&attempt.room.gateway).copied()).min()
    };
    let mut wrong = Vec::new();
    for stay in stays(evidence, last) {
        let Some(over) = over(&stay.attempt) else { continue };
        let since = over.max(stay.opened);
        let lasted = stay
            .closed
            .saturating_sub(since)
            .saturating_sub(evidence.leapt(since, stay.closed));
        if lasted > bound && !heartbeats_are_lost(evidence, since, stay.closed) {
            wrong.push(format!(
                "{} keeps {} for {lasted:?} after its end at {over:?}",
                stay.worker, stay.attempt
            ));
        }
    }
    wrong
}

/// Nobody is told of anything if both the Close and the digest are lost, as long as other frames keep the link alive.
fn heartbeats_are_lost(evidence: &Evidence, from: Duration, to: Duration) -> bool {
    evidence.plan.episodes.iter().any(|episode| {
        matches!(episode.fault, Fault::Frames(_, wire::Kind::Heartbeat, _))
            && episode.at <= to
            && from <= episode.ends()
    })
}

struct Stay<'a> {
    worker: &'a str,
    attempt: Attempt,
    opened: Duration,
    closed: Duration,
}

/// All stays with their ends; those that are still open end at `last`.
fn stays(evidence: &Evidence, last: Duration) -> Vec<Stay<'_>> {
    let mut open: BTreeMap<(&str, Attempt), Duration> = BTreeMap::new();
    let mut all = Vec::new();
    let ended = |worker, attempt, opened, closed| Stay {
        worker,
        attempt,
        opened,
        closed,
    };
    for (at, said) in &evidence.said {
        match said {
            Said::Opened(worker, attempt) => drop(open.insert((worker, *attempt), *at)),
            Said::Closed(worker, attempt) => {
                if let Some(opened) = open.remove(&(worker.as_str(), *attempt)) {
                    all.push(ended(worker.as_str(), *attempt, opened, *at));
                }
            }
            Said::Over(gone) => {
                let (over, here) = open.into_iter().partition(|((worker, _), _)| *worker == gone);
                open = here;
                let over: BTreeMap<(&str, Attempt), Duration> = over;
                all.extend(
                    over.into_iter()
                        .map(|((worker, attempt), opened)| ended(worker, attempt, opened, *at)),
                );
            }
            _ => {}
        }
    }
    all.extend(
        open.into_iter()
            .map(|((worker, attempt), opened)| ended(worker, attempt, opened, last)),
    );
    all
}

/// When each gateway's incarnation was first missed.
fn deaths(evidence: &Evidence) -> BTreeMap<NodeId, Duration> {
    let mut died = BTreeMap::new();
    for (before, after) in evidence.samples.iter().zip(evidence.samples.iter().skip(1)) {
        for gateway in &before.gateways {
            if !after.gateways.iter().any(|later| later.node == gateway.node) {
                died.insert(gateway.node, after.at);
            }
        }
    }
    died
}

/// Who leaves is noticed at once: its rooms have ended by then, or end now (INV-08).
pub(super) fn leaving_is_noticed(evidence: &Evidence) -> Vec<String> {
    const SOON: Duration = Duration::from_millis(1_000);
    let died = deaths(evidence);
    let mut past: BTreeMap<RoomId, Duration> = BTreeMap::new();
    for (at, said) in &evidence.said {
        if let Said::Past(room, _) = said {
            past.entry(*room).or_insert(*at);
        }
    }
    let mut wrong = Vec::new();
    for seen in evidence.seen.iter().filter(|seen| seen.end == End::Left) {
        for room in &seen.rooms {
            let by = seen.ended + SOON + evidence.leapt(seen.ended, seen.ended + SOON);
            let excused = died.get(&room.gateway).is_some_and(|died| *died <= by + SOON)
                || matches!(seen.manner, Manner::OwnerPanics(_));
            if !excused && past.get(room).is_none_or(|at| *at > by) {
                wrong.push(format!(
                    "{room} goes on after its client has left at {:?}: over at {:?}",
                    seen.ended,
                    past.get(room)
                ));
            }
        }
    }
    wrong
}
