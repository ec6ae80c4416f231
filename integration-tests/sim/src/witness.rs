//! What the cluster says of stays, attempts and outcomes as they happen: the gateways are only looked at now and then, and what is
//! wrong for less than that would not be seen.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use observe::{Listener, NodeEvent, NodeWhat, RoomEvent, RoomWhat, StayEvent, StayWhat, Told};
use room::{Attempt, Generation, Happening, NodeId, PhaseKind, RoomId, StayPhase};

use crate::trace::Trace;

/// Something that was said.
#[derive(Clone, Eq, PartialEq, Debug)]
pub enum Said {
    /// A stay began at a worker.
    Opened(String, Attempt),
    /// A stay has lost its lease: it is gone, or waits for its proofs.
    Closed(String, Attempt),
    /// A worker's incarnation is over, and with it all that was there.
    Over(String),
    /// The attempts at a room up to this generation are over for its owner.
    Past(RoomId, Generation),
    /// The next attempt at a room begins.
    Next(RoomId, Generation),
    /// An attempt failed, in words.
    Failed(Attempt, String),
    /// A client was told how a room ended.
    Outcome(RoomId),
    /// A worker is fenced for a lease of a room that it did not return.
    Fenced(RoomId),
    /// A worker may hold a lease of an attempt from now on.
    Leased(Attempt, NodeId),
    /// A lease is proven returned.
    Returned(Attempt, NodeId),
    /// For its owner, nothing of a room is left anywhere.
    Left(RoomId),
}

impl Said {
    /// Every name.
    pub const NAMES: [&str; 11] = [
        "stay opened",
        "stay closed",
        "worker over",
        "attempts over",
        "next attempt",
        "attempt failed",
        "outcome told",
        "worker fenced",
        "lease given",
        "lease returned",
        "nothing left",
    ];

    /// The name it is counted by.
    #[must_use]
    pub fn name(&self) -> &'static str {
        let at = match self {
            Self::Opened(..) => 0,
            Self::Closed(..) => 1,
            Self::Over(_) => 2,
            Self::Past(..) => 3,
            Self::Next(..) => 4,
            Self::Failed(..) => 5,
            Self::Outcome(_) => 6,
            Self::Fenced(_) => 7,
            Self::Leased(..) => 8,
            Self::Returned(..) => 9,
            Self::Left(_) => 10,
        };
        Self::NAMES[at]
    }
}

/// All that was said, in order. Cloning gives the same one.
#[derive(Clone)]
pub(crate) struct Witness {
    trace: Trace,
    said: Arc<Mutex<Vec<(Duration, Said)>>>,
}

impl Witness {
    /// One that has heard nothing yet; times are the trace's.
    pub(crate) fn new(trace: &Trace) -> Self {
        Self {
            trace: trace.clone(),
            said: Arc::default(),
        }
    }

    /// All so far.
    pub(crate) fn all(&self) -> Vec<(Duration, Said)> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Witness {
    /// A machine has no power any more.
    pub(crate) fn off(&self, machine: &str) {
        self.hears(Said::Over(machine.to_owned()));
    }

    fn hears(&self, said: Said) {
        let mut all = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((self.trace.now(), said));
    }
}

impl Listener for Witness {
    fn told(&self, told: &Told<'_>) {
        let said = match told {
            Told::Room { event, .. } => of_room(event),
            Told::Stay {
                event,
                facts: Some(facts),
                ..
            } => of_stay(event, &facts.name),
            Told::Node(NodeEvent {
                what: NodeWhat::WorkerEnded { name, .. },
                ..
            }) => Some(Said::Over(name.to_string())),
            Told::Stay { facts: None, .. } | Told::Node(_) => None,
        };
        if let Some(said) = said {
            self.hears(said);
        }
    }
}

fn of_room(event: &RoomEvent) -> Option<Said> {
    let (room, generation) = (event.room, event.generation);
    match &event.what {
        RoomWhat::Room(Happening::Transition(step)) => match step.to {
            PhaseKind::Queued => Some(Said::Next(room, generation)),
            PhaseKind::Draining => Some(Said::Past(room, generation)),
            PhaseKind::Ended => Some(Said::Left(room)),
            _ => None,
        },
        RoomWhat::Room(Happening::AttemptFailed { error, .. }) => {
            Some(Said::Failed(Attempt { room, generation }, format!("{error:?}")))
        }
        RoomWhat::Room(Happening::Fenced { .. }) => Some(Said::Fenced(room)),
        RoomWhat::Room(Happening::LegOpened { worker }) => {
            Some(Said::Leased(Attempt { room, generation }, *worker))
        }
        RoomWhat::Room(Happening::LegReturned { worker, of, .. }) => {
            let attempt = Attempt {
                room,
                generation: *of,
            };
            Some(Said::Returned(attempt, *worker))
        }
        RoomWhat::OwnerDied { .. } => Some(Said::Past(room, Generation(u32::MAX))),
        RoomWhat::Answered { .. } => Some(Said::Outcome(room)),
        _ => None,
    }
}

fn of_stay(event: &StayEvent, worker: &str) -> Option<Said> {
    let StayWhat::Step(step) = &event.what else {
        return None;
    };
    let (worker, attempt) = (worker.to_owned(), event.attempt);
    match (step.from, step.to) {
        (None, _) => Some(Said::Opened(worker, attempt)),
        // It stays where it is, and tells those who hold its blocks again.
        (Some(StayPhase::Closing), Some(StayPhase::Closing)) => None,
        (_, None | Some(StayPhase::Closing)) => Some(Said::Closed(worker, attempt)),
        _ => None,
    }
}
