//! Who hears of what happens, in one place: every event goes to the log and to each listener, and what is over to whoever makes traces.

use std::sync::Arc;

use room::Span;

use crate::event::{Event, NodeEvent, RoomEvent, StayEvent};
use crate::facts::{SharedFacts, StayFacts};
use crate::families::Families;
use crate::history::{RoomHistory, RoomState, StayHistory};
use crate::log::Log;
use crate::roster::Roster;
use crate::sampling::{Keep, Sampling};

/// An event and what it is to be seen with. Borrowed: telling of something costs nothing that nobody asks for.
#[derive(Copy, Clone, Debug)]
pub enum Told<'a> {
    /// Of a room.
    Room {
        /// What happened.
        event: &'a RoomEvent,
        /// What is fixed of the room.
        facts: &'a SharedFacts,
        /// What its events add up to, this one included (and perhaps some that came with it).
        state: &'a RoomState,
        /// For new tokens that are not the first: how long after those before them they came.
        gap: Option<Span>,
    },
    /// Of a stay.
    Stay {
        /// What happened.
        event: &'a StayEvent,
        /// What is fixed of the stay; none of an attempt that is not, or no longer, here.
        facts: Option<&'a Arc<StayFacts>>,
        /// For new tokens that are not the first: how long after those before them they came.
        gap: Option<Span>,
    },
    /// Of the node.
    Node(&'a NodeEvent),
}

impl Told<'_> {
    /// The event by itself.
    #[must_use]
    pub fn event(&self) -> Event {
        match self {
            Self::Room { event, .. } => Event::Room((*event).clone()),
            Self::Stay { event, .. } => Event::Stay((*event).clone()),
            Self::Node(event) => Event::Node((*event).clone()),
        }
    }
}

/// Hears of everything that happens on a node: what metrics are made by, what tests record with. It is called where things happen, on several
/// threads and under no lock of ours: it must neither block nor take long.
pub trait Listener: Send + Sync {
    /// Something happened.
    fn told(&self, told: &Told<'_>);
}

/// Takes what is to be traced. Must not block: what cannot be taken at once is dropped, and counted by whoever implements it.
pub trait TraceSink: Send + Sync {
    /// All rooms of a request are over, and its trace is kept, because of this.
    fn request(&self, rooms: &[Arc<RoomHistory>], keep: Keep);
    /// A stay is over and its trace is kept.
    fn stay(&self, history: &Arc<StayHistory>);
}

/// A node's recorder. Cheap to clone.
#[derive(Clone, Default)]
pub struct Recorder(Arc<Parts>);

#[derive(Default)]
struct Parts {
    listeners: Vec<Arc<dyn Listener>>,
    sink: Option<Arc<dyn TraceSink>>,
    sampling: Sampling,
    families: Families,
    roster: Roster,
    log: Log,
}

impl Recorder {
    /// One that tells the log, these listeners in order, and this sink of traces.
    #[must_use]
    pub fn new(
        listeners: Vec<Arc<dyn Listener>>,
        sink: Option<Arc<dyn TraceSink>>,
        sampling: Sampling,
    ) -> Self {
        Self::with_roster(Roster::default(), listeners, sink, sampling)
    }

    /// The same with a roster that its listeners ask as well.
    #[must_use]
    pub fn with_roster(
        roster: Roster,
        listeners: Vec<Arc<dyn Listener>>,
        sink: Option<Arc<dyn TraceSink>>,
        sampling: Sampling,
    ) -> Self {
        Self(Arc::new(Parts {
            listeners,
            sink,
            sampling,
            families: Families::default(),
            roster,
            log: Log::default(),
        }))
    }

    /// The workers that the node has met.
    #[must_use]
    pub fn roster(&self) -> &Roster {
        &self.0.roster
    }

    /// Something happened.
    pub fn tell(&self, told: Told<'_>) {
        if let Told::Node(event) = &told {
            self.0.roster.learn(event);
        }
        self.0.log.write(&told, &self.0.roster);
        for listener in &self.0.listeners {
            listener.told(&told);
        }
    }

    /// Something happened to the node.
    pub fn node(&self, event: &NodeEvent) {
        self.tell(Told::Node(event));
    }

    /// What is kept, as configured.
    #[must_use]
    pub fn sampling(&self) -> &Sampling {
        &self.0.sampling
    }

    /// Whether anybody makes traces.
    #[must_use]
    pub fn traces(&self) -> bool {
        self.0.sink.is_some()
    }

    /// A room is over. Once that is so for all of its request, and the trace is kept for what has become of them, returns those whose
    /// workers are to be told.
    pub fn room_over(&self, history: &Arc<RoomHistory>) -> Vec<Arc<RoomHistory>> {
        let Some(sink) = &self.0.sink else {
            return Vec::new();
        };
        let rooms = self.0.families.room_over(history);
        let tail = |history: &Arc<RoomHistory>| self.0.sampling.tail(history.facts(), history.state());
        let Some(keep) = rooms.iter().find_map(tail) else {
            return Vec::new();
        };
        sink.request(&rooms, keep);
        if keep.is_late() { rooms } else { Vec::new() }
    }

    /// A stay is over whose trace is kept, or one that was over is to be kept after all.
    pub fn stay_kept(&self, history: &Arc<StayHistory>) {
        if let Some(sink) = &self.0.sink {
            sink.stay(history);
        }
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("listeners", &self.0.listeners.len())
            .field("traces", &self.traces())
            .field("sampling", &self.0.sampling)
            .finish()
    }
}
