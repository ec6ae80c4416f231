//! "Where is my request?": the live view and the history of every room, and of those that ended lately. Made from the rooms' events and
//! getters, so that it cannot disagree with them; bounded.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use observe::{RoomEvent, RoomHistory, RoomState, RoomWhat, SharedFacts, TraceId, Workers};
use room::{Happening, LegView, Outcome, PhaseKind, Room, RoomId, Span, Time, WaitsFor};

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
    /// The workers that were told of it, in any attempt.
    pub workers: Workers,
    /// Tokens delivered.
    pub delivered: u32,
    /// What it was told that changed nothing: stale, out of turn, or repeated.
    pub stale_inputs: u64,
    /// The outcome, once it is fixed.
    pub outcome: Option<Outcome>,
    /// Of one that has ended, the live phase that it left for good.
    pub ended_in: Option<PhaseKind>,
    /// When nothing of it was left.
    pub ended: Option<Time>,
    /// Id of its trace.
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
            workers: Workers::default(),
            delivered: 0,
            stale_inputs: 0,
            outcome: None,
            ended_in: None,
            ended: None,
            trace_id: job.trace.map(|trace| trace.trace_id),
        }
    }
}

/// How many ended rooms are remembered. A history has at most [`observe::Kept`]'s number of events, of some hundred bytes each: about ten
/// kilobytes for a room that had many attempts and a long prompt, three for most.
const REMEMBERED: usize = 1_024;

/// What is said of a room that has ended without an outcome. There is none such; and nobody ends with a panic for it.
const LOST: Outcome = Outcome::Failed(room::Failure::OwnerLost);

/// Transports told apart. Their names come from workers: what is beyond is counted as [`OTHER`].
const TRANSPORTS: usize = 16;
const OTHER: &str = "other";

#[derive(Debug)]
struct Open {
    view: RoomView,
    history: RoomHistory,
}

#[derive(Debug)]
struct Past {
    view: RoomView,
    history: Arc<RoomHistory>,
}

#[derive(Debug, Default)]
struct Rooms {
    open: BTreeMap<RoomId, Open>,
    ended: VecDeque<Past>,
    counts: Counts,
}

/// An event, and for new tokens how long after those before them they came.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) event: RoomEvent,
    pub(crate) gap: Option<Span>,
}

impl From<RoomEvent> for Recorded {
    fn from(event: RoomEvent) -> Self {
        Self { event, gap: None }
    }
}

/// What events are told with.
#[derive(Debug)]
pub(crate) struct About {
    pub(crate) facts: SharedFacts,
    pub(crate) state: RoomState,
}

impl About {
    pub(crate) fn of(history: &RoomHistory) -> Self {
        Self {
            facts: Arc::clone(history.facts()),
            state: *history.state(),
        }
    }
}

/// What a room is asked for by.
#[derive(Clone, Eq, PartialEq, Debug)]
pub enum Find {
    /// Its name.
    Room(RoomId),
    /// Its request's name at the door, which several may share.
    Request(String),
    /// Its trace.
    Trace(TraceId),
}

impl Find {
    fn is(&self, history: &RoomHistory) -> bool {
        let facts = history.facts();
        match self {
            Self::Room(room) => facts.room == *room,
            Self::Request(id) => *facts.request_id == **id,
            Self::Trace(trace) => facts.trace.id == *trace,
        }
    }
}

/// What was counted since the start.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Rooms opened.
    pub opened: u64,
    /// Rooms by outcome, as a label and a reason.
    pub outcomes: BTreeMap<(&'static str, &'static str), u64>,
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

#[deny(clippy::wildcard_enum_match_arm)]
impl Counts {
    fn count(&mut self, what: &RoomWhat) {
        match what {
            RoomWhat::Opened(_) => self.opened += 1,
            RoomWhat::Room(happening) => self.happened(happening),
            RoomWhat::Moved(moved) => self.moved(&moved.transport, moved.bytes, moved.descriptors),
            RoomWhat::Buried { .. } => self.buried += 1,
            RoomWhat::Answered { outcome, .. } => {
                *self
                    .outcomes
                    .entry(observe::labels::outcome(*outcome))
                    .or_default() += 1;
            }
            RoomWhat::Cached { .. }
            | RoomWhat::NotSent { .. }
            | RoomWhat::WorkerSaid { .. }
            | RoomWhat::TimerFired { .. }
            | RoomWhat::OwnerSilent { .. }
            | RoomWhat::OwnerDied { .. }
            | RoomWhat::Ended { .. } => {}
        }
    }

    fn happened(&mut self, happening: &Happening) {
        match happening {
            Happening::AttemptFailed { retried, .. } => self.retries += u64::from(*retried),
            Happening::Paused => self.pauses += 1,
            Happening::DrainOverdue { .. } => self.drains_overdue += 1,
            Happening::Fenced { .. } => self.fences += 1,
            Happening::Transition(_)
            | Happening::Routed(_)
            | Happening::Granted { .. }
            | Happening::Computed { .. }
            | Happening::Published { .. }
            | Happening::Delivered { .. }
            | Happening::Resumed
            | Happening::LegOpened { .. }
            | Happening::LegReturned { .. }
            | Happening::ToldAgain { .. } => {}
        }
    }

    fn moved(&mut self, transport: &str, bytes: u64, descriptors: u32) {
        let pulled = &mut self.pulled;
        let known = pulled.contains_key(transport) || pulled.len() < TRANSPORTS;
        let name = if known { transport } else { OTHER };
        let total = pulled.entry(name.to_owned()).or_default();
        let (all, pieces) = (
            total.0.saturating_add(bytes),
            total.1.saturating_add(descriptors.into()),
        );
        *total = (all, pieces, total.2 + 1);
    }
}

/// The board. What several threads tell of a room is kept in the order in which it comes here, and never earlier than what came before: they
/// may have looked at the clock in another order.
#[derive(Debug, Default)]
pub(crate) struct Board {
    rooms: Mutex<Rooms>,
}

impl Board {
    fn with<R>(&self, f: impl FnOnce(&mut Rooms) -> R) -> R {
        f(&mut self.rooms.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A room was opened.
    pub(crate) fn opened(&self, view: RoomView, history: RoomHistory) {
        self.with(|rooms| {
            rooms.counts.opened += 1;
            rooms.open.insert(view.room, Open { view, history });
        });
    }

    /// Shows a room as it is now, and keeps what has happened to it. None if it is not open.
    pub(crate) fn show(&self, id: RoomId, room: &Room, events: &mut [Recorded]) -> Option<About> {
        self.with(|rooms| {
            let Rooms { open, counts, .. } = rooms;
            let Open { view, history } = open.get_mut(&id)?;
            view.generation = room.generation().0;
            view.phase = room.phase();
            view.since = room.in_phase_since();
            view.waits_for = room.waits_for();
            view.deadline = room.deadline();
            view.legs = room.legs();
            view.delivered = view.delivered.max(room.delivered());
            view.outcome = view.outcome.or(room.outcome());
            // An heir's room counts anew.
            counts.stale_inputs += room.stale_inputs().saturating_sub(view.stale_inputs);
            view.stale_inputs = room.stale_inputs();
            for recorded in events.iter_mut() {
                recorded.event.at = recorded.event.at.max(history.latest());
                counts.count(&recorded.event.what);
                recorded.gap = history.push(&recorded.event);
            }
            view.workers = history.state().workers;
            (!events.is_empty()).then(|| About::of(history))
        })
    }

    /// Keeps what happened to a room otherwise than by itself; `what` sees what is known of it. None if it is not open.
    pub(crate) fn keep(
        &self,
        id: RoomId,
        now: Time,
        what: impl FnOnce(&RoomHistory) -> RoomWhat,
    ) -> Option<(RoomEvent, About)> {
        self.with(|rooms| {
            let Rooms { open, counts, .. } = rooms;
            let history = &mut open.get_mut(&id)?.history;
            let event = RoomEvent {
                at: now.max(history.latest()),
                room: id,
                generation: history.state().generation,
                what: what(history),
            };
            counts.count(&event.what);
            history.push(&event);
            Some((event, About::of(history)))
        })
    }

    /// Nothing of the room is left; `outcome` is shown where none was before. None if it is not open.
    pub(crate) fn ended(
        &self,
        id: RoomId,
        outcome: Option<Outcome>,
        now: Time,
    ) -> Option<(RoomEvent, Arc<RoomHistory>)> {
        self.with(|rooms| {
            let Open {
                mut view,
                mut history,
            } = rooms.open.remove(&id)?;
            view.phase = PhaseKind::Ended;
            view.outcome = view.outcome.or(outcome);
            view.ended = Some(now);
            view.legs.clear();
            view.waits_for = WaitsFor::Nothing;
            let event = RoomEvent {
                at: now.max(history.latest()),
                room: id,
                generation: history.state().generation,
                what: RoomWhat::Ended {
                    outcome: view.outcome.unwrap_or(LOST),
                },
            };
            history.push(&event);
            view.ended_in = history.state().ended_in;
            let history = Arc::new(history);
            if rooms.ended.len() >= REMEMBERED {
                rooms.ended.pop_front();
            }
            rooms.ended.push_back(Past {
                view,
                history: Arc::clone(&history),
            });
            Some((event, history))
        })
    }

    /// A room that has not ended.
    pub(crate) fn get(&self, id: RoomId) -> Option<RoomView> {
        self.with(|rooms| rooms.open.get(&id).map(|open| open.view.clone()))
    }

    /// The phase in which a room's outcome was fixed; for one that is live, where it is.
    pub(crate) fn ended_in(&self, id: RoomId) -> Option<PhaseKind> {
        self.with(|rooms| {
            let state = rooms.open.get(&id)?.history.state();
            Some(state.ended_in.unwrap_or(state.phase))
        })
    }

    /// Every room that has not ended.
    pub(crate) fn open(&self) -> Vec<RoomView> {
        self.with(|rooms| rooms.open.values().map(|open| open.view.clone()).collect())
    }

    /// The rooms that ended lately, oldest first.
    pub(crate) fn lately_ended(&self) -> Vec<RoomView> {
        self.with(|rooms| rooms.ended.iter().map(|past| past.view.clone()).collect())
    }

    /// The rooms that `find` names, open ones last, with their histories.
    pub(crate) fn find(&self, find: &Find) -> Vec<(RoomView, Arc<RoomHistory>)> {
        self.with(|rooms| {
            let ended = rooms.ended.iter().filter(|past| find.is(&past.history));
            let ended = ended.map(|past| (past.view.clone(), Arc::clone(&past.history)));
            let open = rooms.open.values().filter(|open| find.is(&open.history));
            let open = open.map(|open| (open.view.clone(), Arc::new(open.history.clone())));
            ended.chain(open).collect()
        })
    }

    /// What was counted.
    pub(crate) fn counts(&self) -> Counts {
        self.with(|rooms| rooms.counts.clone())
    }
}

#[cfg(test)]
mod tests;
