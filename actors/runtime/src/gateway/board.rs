//! "Where is my request?": the live view of every room, and of those that ended lately. Made from the rooms' events and getters, so that
//! it cannot disagree with them; bounded.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use room::{Event, Happening, LegView, Outcome, PhaseKind, Room, RoomId, Time, WaitsFor};

use super::job::Job;

/// One room as shown.
#[derive(Clone, Debug)]
pub struct RoomView {
    /// Its name.
    pub room: RoomId,
    /// The request's name at the door.
    pub request_id: String,
    /// The current attempt.
    pub generation: u32,
    /// Where it is.
    pub phase: PhaseKind,
    /// When it was opened.
    pub born: Time,
    /// When it entered its phase.
    pub since: Time,
    /// What it waits for.
    pub waits_for: WaitsFor,
    /// Whether that is credit, and there is no worker to give it.
    pub no_worker: bool,
    /// What ends that wait at the latest.
    pub deadline: Option<Time>,
    /// Who may hold blocks for it, and for which attempt.
    pub legs: Vec<LegView>,
    /// Tokens delivered.
    pub delivered: u32,
    /// What it was told that changed nothing: stale, out of turn, or repeated.
    pub stale_inputs: u64,
    /// The outcome, once it is fixed.
    pub outcome: Option<Outcome>,
    /// When nothing of it was left.
    pub ended: Option<Time>,
    /// Id of its trace, if it has one.
    pub trace_id: Option<u128>,
}

impl RoomView {
    pub(crate) fn new(room: &Room, job: &Job, now: Time) -> Self {
        Self {
            room: room.id(),
            request_id: job.request_id.clone(),
            generation: room.generation().0,
            phase: room.phase(),
            born: now,
            since: now,
            waits_for: room.waits_for(),
            no_worker: false,
            deadline: room.deadline(),
            legs: Vec::new(),
            delivered: 0,
            stale_inputs: 0,
            outcome: None,
            ended: None,
            trace_id: job.trace.map(|trace| trace.trace_id),
        }
    }
}

/// How many ended rooms are remembered.
const REMEMBERED: usize = 1_024;

/// Transports told apart. Their names come from workers: what is beyond is counted as [`OTHER`].
const TRANSPORTS: usize = 16;
const OTHER: &str = "other";

#[derive(Debug, Default)]
struct Rooms {
    open: BTreeMap<RoomId, RoomView>,
    ended: VecDeque<RoomView>,
    counts: Counts,
}

/// What was counted since the start.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Rooms opened.
    pub opened: u64,
    /// Rooms by outcome, as a label and a reason.
    pub outcomes: BTreeMap<(&'static str, String), u64>,
    /// Attempts that failed and were followed by another.
    pub retries: u64,
    /// Times that an answer was paused for its reader.
    pub pauses: u64,
    /// Leases not proven returned in time.
    pub drains_overdue: u64,
    /// Workers fenced for a lease they did not return.
    pub fences: u64,
    /// What rooms were told that changed nothing.
    pub stale_inputs: u64,
    /// Rooms whose owners died again and again: their workers were fenced.
    pub buried: u64,
    /// Bytes, pieces and pulls by transport.
    pub pulled: BTreeMap<String, (u64, u64, u64)>,
}

/// The board.
#[derive(Debug, Default)]
pub(crate) struct Board {
    rooms: Mutex<Rooms>,
}

impl Board {
    fn with<R>(&self, f: impl FnOnce(&mut Rooms) -> R) -> R {
        f(&mut self.rooms.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A room was opened.
    pub(crate) fn opened(&self, view: RoomView) {
        self.with(|rooms| {
            rooms.counts.opened += 1;
            rooms.open.insert(view.room, view);
        });
    }

    /// Shows a room as it is now.
    pub(crate) fn show(&self, id: RoomId, room: &Room) {
        self.with(|rooms| {
            if let Some(view) = rooms.open.get_mut(&id) {
                view.generation = room.generation().0;
                view.phase = room.phase();
                view.since = room.in_phase_since();
                view.waits_for = room.waits_for();
                view.deadline = room.deadline();
                view.legs = room.legs();
                view.delivered = view.delivered.max(room.delivered());
                view.outcome = view.outcome.or(room.outcome());
                // An heir's room counts anew.
                let new = room.stale_inputs().saturating_sub(view.stale_inputs);
                view.stale_inputs = room.stale_inputs();
                rooms.counts.stale_inputs += new;
            }
        });
    }

    /// Counts an event.
    pub(crate) fn happened(&self, event: &Event) {
        self.with(|rooms| match event.what {
            Happening::AttemptFailed { retried: true, .. } => rooms.counts.retries += 1,
            Happening::Paused => rooms.counts.pauses += 1,
            Happening::DrainOverdue { .. } => rooms.counts.drains_overdue += 1,
            Happening::Fenced { .. } => rooms.counts.fences += 1,
            _ => {}
        });
    }

    /// Counts an outcome.
    pub(crate) fn answered(&self, outcome: Outcome) {
        let key = super::view::labels(outcome);
        self.with(|rooms| *rooms.counts.outcomes.entry(key).or_default() += 1);
    }

    /// Counts a room that nobody could drain.
    pub(crate) fn buried(&self) {
        self.with(|rooms| rooms.counts.buried += 1);
    }

    /// Counts a pull.
    pub(crate) fn pulled(&self, transport: &str, bytes: u64, descriptors: u32) {
        self.with(|rooms| {
            let pulled = &mut rooms.counts.pulled;
            let known = pulled.contains_key(transport) || pulled.len() < TRANSPORTS;
            let name = if known { transport } else { OTHER };
            let total = pulled.entry(name.to_owned()).or_default();
            let (all, pieces) = (
                total.0.saturating_add(bytes),
                total.1.saturating_add(descriptors.into()),
            );
            *total = (all, pieces, total.2 + 1);
        });
    }

    /// Nothing of the room is left; `outcome` is shown where none was before.
    pub(crate) fn ended(&self, id: RoomId, outcome: Option<Outcome>, now: Time) {
        self.with(|rooms| {
            let Some(mut view) = rooms.open.remove(&id) else {
                return;
            };
            view.phase = PhaseKind::Ended;
            view.outcome = view.outcome.or(outcome);
            view.ended = Some(now);
            view.legs.clear();
            view.waits_for = WaitsFor::Nothing;
            if rooms.ended.len() >= REMEMBERED {
                rooms.ended.pop_front();
            }
            rooms.ended.push_back(view);
        });
    }

    /// A room that has not ended.
    pub(crate) fn get(&self, id: RoomId) -> Option<RoomView> {
        self.with(|rooms| rooms.open.get(&id).cloned())
    }

    /// Every room that has not ended.
    pub(crate) fn open(&self) -> Vec<RoomView> {
        self.with(|rooms| rooms.open.values().cloned().collect())
    }

    /// The rooms that ended lately, oldest first.
    pub(crate) fn lately_ended(&self) -> Vec<RoomView> {
        self.with(|rooms| rooms.ended.iter().cloned().collect())
    }

    /// What was counted.
    pub(crate) fn counts(&self) -> Counts {
        self.with(|rooms| rooms.counts.clone())
    }
}

#[cfg(test)]
mod tests {
    use room::{AbortBy, Generation, Input, Limits, NodeId, Report, Room, RoomId, RoomSpec, Time};

    use super::{Board, OTHER, RoomView, TRANSPORTS};
    use crate::testing::job;

    #[test]
    fn what_changes_nothing_is_counted_once() {
        let now = Time::default();
        let id = RoomId {
            gateway: NodeId(1),
            seq: 1,
        };
        let spec = RoomSpec {
            positions: 1,
            max_new: 1,
            deadline: Time { micros: 1 },
            priority: room::Priority(0),
        };
        let job = job(vec![5], 1);
        let mut room = Room::new(id, spec, &Limits::default(), now);
        let board = Board::default();
        board.opened(RoomView::new(&room, &job, now));
        let stray = Input::FromWorker {
            worker: NodeId(7),
            generation: Generation::FIRST,
            report: Report::Published,
        };
        for input in [stray, Input::Abort(AbortBy::ClientGone), stray] {
            room.handle_input(now, input);
            board.show(id, &room);
            board.show(id, &room);
        }
        assert_eq!(board.counts().stale_inputs, 2);
    }

    #[test]
    fn a_worker_cannot_make_up_transports_without_end() {
        let board = Board::default();
        for n in 0..100 {
            board.pulled(&format!("transport-{n}"), u64::MAX, u32::MAX);
        }
        board.pulled("transport-0", 1, 1);
        let pulled = board.counts().pulled;
        assert_eq!(pulled.len(), TRANSPORTS + 1);
        assert_eq!(pulled[OTHER].2, 100 - TRANSPORTS as u64);
        assert_eq!(pulled["transport-0"], (u64::MAX, u64::from(u32::MAX) + 1, 2));
    }
}
