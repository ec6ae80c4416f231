//! What happens to rooms and links is told: to the room's history and view, to the log, to whoever listens. The one way from what happens at
//! a gateway to what is seen of it.

use observe::{NodeEvent, NodeWhat, RoomHistory, RoomWhat, SharedFacts, Told};
use room::{NodeId, Outcome, Room, RoomId};

use super::board::{About, Recorded, RoomView};
use super::shared::Shared;
use crate::answer::AnswerSink;

impl Shared {
    /// A room is opened.
    pub(crate) fn opened(&self, view: RoomView, facts: SharedFacts) {
        let event = RoomHistory::opening(&facts);
        let history = RoomHistory::new(facts).with_roster(self.recorder.roster().clone());
        let about = About::of(&history);
        self.board.opened(view, history);
        self.tell(&event.into(), &about);
    }

    /// Shows a room as it is now, and tells what it says: `events` is empty after this.
    pub(crate) fn show(&self, id: RoomId, room: &Room, events: &mut Vec<Recorded>) {
        if let Some(about) = self.board.show(id, room, events) {
            for recorded in events.iter() {
                self.tell(recorded, &about);
            }
        }
        events.clear();
    }

    /// Tells what happens to a room otherwise than by itself; `what` sees what is known of it. Of a room that is not open there is nothing
    /// to tell.
    pub(crate) fn happened(&self, id: RoomId, what: impl FnOnce(&RoomHistory) -> RoomWhat) {
        if let Some((event, about)) = self.board.keep(id, self.clock.now(), what) {
            self.tell(&event.into(), &about);
        }
    }

    /// Answers the client, if nobody has, and tells of it.
    pub(crate) fn answer(&self, id: RoomId, sink: &AnswerSink, index: usize, outcome: Outcome) {
        if let Some(outcome) = sink.end(index, outcome, self.board.ended_in(id)) {
            self.happened(id, |known| RoomWhat::Answered {
                outcome,
                delivered: known.state().stream.tokens,
            });
        }
    }

    /// Nothing of the room is left; `outcome` is told where none was before. If its request's trace is kept for what has become of it, the
    /// workers hear so.
    pub(crate) fn ended(&self, id: RoomId, outcome: Option<Outcome>) {
        let Some((event, history)) = self.board.ended(id, outcome, self.clock.now()) else {
            return;
        };
        self.tell(&event.into(), &About::of(&history));
        for late in self.recorder.room_over(&history) {
            for worker in late.state().workers.iter() {
                self.fabric.keep_trace(worker, late.facts().room.seq);
            }
        }
    }

    /// Cuts a worker off.
    pub(crate) fn fence(&self, worker: NodeId, why: &str) {
        self.node(NodeWhat::Fencing {
            worker,
            why: why.into(),
        });
        self.fabric.fence(worker, why);
    }

    /// Tells what happens to links and workers.
    pub(crate) fn node(&self, what: NodeWhat) {
        let at = self.clock.now();
        self.recorder.node(&NodeEvent { at, what });
    }

    fn tell(&self, recorded: &Recorded, about: &About) {
        self.recorder.tell(Told::Room {
            event: &recorded.event,
            facts: &about.facts,
            state: &about.state,
            gap: recorded.gap,
        });
    }
}
