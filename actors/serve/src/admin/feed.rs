//! Rooms for those who watch: what has changed since they last looked, and not everything.
//!
//! Every change of a room gets the next *version*; whoever watches says up to which version it knows. A watcher that is slow therefore gets
//! the last state of each room that has changed, once, and one that was away for too long gets all of it anew. What moves all the time (tokens,
//! positions, the deadline that moves with them) is apart from what seldom does, as numbers alone.

use std::collections::{BTreeMap, VecDeque};

use observe::Workers;
use observe::explain::waits_for;
use room::{LegView, NodeId, Outcome, PhaseKind, Time, WaitsFor};
use runtime::RoomView;
use serde::Serialize;

use super::overview::{PhaseRow, phases};
use super::views::once;

/// Rooms that ended, remembered for those who have not heard of it.
const GONE: usize = 20_000;

/// What seldom changes of a room, and is told as a whole when it does.
#[derive(Clone, PartialEq, Debug)]
struct Shape {
    phase: PhaseKind,
    generation: u32,
    since: Time,
    waits_for: WaitsFor,
    no_worker: bool,
    legs: Vec<LegView>,
    workers: Workers,
    outcome: Option<Outcome>,
}

/// What moves: tokens delivered, positions computed and in all, the deadline in milliseconds of the gateway's clock.
type Moving = (u32, u32, u32, u64);

#[derive(Debug)]
struct Entry {
    shape: Shape,
    /// As it is sent.
    row: String,
    changed: u64,
    moving: Moving,
    moved: u64,
}

/// The rooms as they were at the last look.
#[derive(Debug, Default)]
pub(super) struct Feed {
    rooms: BTreeMap<u64, Entry>,
    gone: VecDeque<(u64, u64)>,
    /// Who knows less than this has missed ends that are not remembered.
    forgotten: u64,
    version: u64,
    looked: Option<Time>,
    phases: Vec<PhaseRow>,
}

/// A room as watchers get it. Times are milliseconds of the gateway's clock; the message says what time it is there.
#[derive(Serialize)]
struct Row<'a> {
    seq: u64,
    room: String,
    request: &'a str,
    trace: Option<String>,
    phase: &'static str,
    attempt: u32,
    born: u64,
    since: u64,
    waits: String,
    held: Vec<String>,
    /// Who was told of it before, and holds nothing for it any more.
    before: Vec<String>,
    outcome: Option<&'static str>,
    reason: Option<&'static str>,
}

/// How far a watcher knows the feed.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// Nothing yet: everything is new.
    version: Option<u64>,
    moving: u64,
}

impl Shape {
    fn of(view: &RoomView) -> Self {
        Self {
            phase: view.phase,
            generation: view.generation,
            since: view.since,
            // What moves in it is told apart.
            waits_for: match view.waits_for {
                WaitsFor::Prompt { worker, .. } => WaitsFor::Prompt {
                    worker,
                    computed: 0,
                    positions: 0,
                },
                WaitsFor::Pause { .. } => WaitsFor::Pause {
                    until: Time::default(),
                },
                other => other,
            },
            no_worker: view.no_worker,
            legs: view.legs.clone(),
            workers: view.workers,
            outcome: view.outcome,
        }
    }

    fn row(&self, view: &RoomView, name: &dyn Fn(NodeId) -> String) -> String {
        let labels = self.outcome.map(observe::labels::outcome);
        let held = once(self.legs.iter().map(|leg| name(leg.worker)));
        let before = once(self.workers.iter().map(name));
        let before = before
            .into_iter()
            .filter(|worker| !held.contains(worker))
            .collect();
        let waits = match self.waits_for {
            WaitsFor::Prompt { worker, .. } if !self.no_worker => {
                format!("{} to compute the prompt", name(worker))
            }
            WaitsFor::Pause { .. } => "a moment, to ask for room again".to_owned(),
            other => waits_for(other, self.no_worker, self.since, name),
        };
        let row = Row {
            seq: view.room.seq,
            room: view.room.to_string(),
            request: &view.request_id,
            trace: view.trace_id.map(|id| format!("{id:032x}")),
            phase: self.phase.name(),
            attempt: self.generation,
            born: millis(view.born),
            since: millis(self.since),
            waits,
            held,
            before,
            outcome: labels.map(|(outcome, _)| outcome),
            reason: labels.map(|(_, reason)| reason),
        };
        // Strings and numbers: there is nothing in it that JSON cannot say.
        serde_json::to_string(&row).unwrap_or_default()
    }
}

fn moving(view: &RoomView) -> Moving {
    let (computed, positions) = match view.waits_for {
        WaitsFor::Prompt {
            computed, positions, ..
        } => (computed, positions),
        _ => (0, 0),
    };
    (
        view.delivered,
        computed,
        positions,
        view.deadline.map_or(0, millis),
    )
}

pub(super) fn millis(at: Time) -> u64 {
    at.micros / 1_000
}

impl Feed {
    /// Whether the last look was longer ago than this.
    pub(super) fn is_older_than(&self, now: Time, limit: room::Span) -> bool {
        self.looked.is_none_or(|looked| now - looked >= limit)
    }

    /// Looks: `views` are all open rooms.
    pub(super) fn look(&mut self, now: Time, views: &[RoomView], name: &dyn Fn(NodeId) -> String) {
        self.looked = Some(now);
        self.phases = phases(views, now);
        self.version += 1;
        let version = self.version;
        let mut before = std::mem::take(&mut self.rooms);
        for view in views {
            let (shape, moving) = (Shape::of(view), moving(view));
            let entry = match before.remove(&view.room.seq) {
                Some(mut entry) => {
                    if entry.shape != shape {
                        entry.row = shape.row(view, name);
                        entry.shape = shape;
                        entry.changed = version;
                    }
                    if entry.moving != moving {
                        entry.moving = moving;
                        entry.moved = version;
                    }
                    entry
                }
                None => Entry {
                    row: shape.row(view, name),
                    shape,
                    changed: version,
                    moving,
                    moved: version,
                },
            };
            self.rooms.insert(view.room.seq, entry);
        }
        // In order, so that what is forgotten first was the first to go.
        for seq in before.into_keys() {
            if self.gone.len() >= GONE
                && let Some((forgotten, _)) = self.gone.pop_front()
            {
                self.forgotten = forgotten;
            }
            self.gone.push_back((version, seq));
        }
    }

    /// Every phase, as it was at the last look.
    pub(super) fn phases(&self) -> Vec<PhaseRow> {
        self.phases.clone()
    }

    /// What is new to a watcher that knows so much, as JSON; it knows more then. What moves is told if `moving`. None if there is nothing.
    pub(super) fn news(&self, known: &mut Known, moving: bool) -> Option<String> {
        let all = known.version.is_none_or(|version| version < self.forgotten);
        let since = if all { 0 } else { known.version.unwrap_or(0) };
        let rows: Vec<&str> = self
            .rooms
            .values()
            .filter(|entry| entry.changed > since)
            .map(|entry| entry.row.as_str())
            .collect();
        let gone: Vec<u64> = match all {
            true => Vec::new(),
            false => self
                .gone
                .iter()
                .rev()
                .take_while(|(version, _)| *version > since)
                .map(|(_, seq)| *seq)
                .collect(),
        };
        let moved_since = if all { 0 } else { known.moving };
        let moves: Vec<String> = self
            .rooms
            .iter()
            .filter(|(_, entry)| (moving || all) && entry.moved > moved_since)
            .map(|(seq, entry)| {
                let (tokens, computed, positions, deadline) = entry.moving;
                format!("[{seq},{tokens},{computed},{positions},{deadline}]")
            })
            .collect();
        let is_new = all && known.version != Some(self.version);
        known.version = Some(self.version);
        if moving || all {
            known.moving = self.version;
        }
        if !is_new && rows.is_empty() && gone.is_empty() && moves.is_empty() {
            return None;
        }
        let gone: Vec<String> = gone.iter().map(u64::to_string).collect();
        Some(format!(
            r#"{{"all":{all},"rows":[{}],"gone":[{}],"moving":[{}]}}"#,
            rows.join(","),
            gone.join(","),
            moves.join(",")
        ))
    }
}

#[cfg(test)]
mod tests;
