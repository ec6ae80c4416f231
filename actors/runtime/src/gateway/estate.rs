//! What a request's actor leaves when it dies, and who gets it: an heir, which drains the rooms. Their leases end as those of any other
//! room; nothing of a job is lost with its actor.

use observe::RoomWhat;
use ractor::ActorRef;
use room::{Attempt, Failure, Generation, Inherited, Outcome, RoomId};

use super::placement::PlacementMessage;
use super::request::Birth;
use super::shared::RequestId;
use super::supervisor::{Owner, SupervisorMessage, SupervisorState};

/// Beyond this many dead owners the workers concerned are fenced instead: that returns their leases too.
const MAX_DEATHS: u32 = 3;

/// A room that was left, and which answer of the request it is.
type Left = (RoomId, usize, Inherited);

impl SupervisorState {
    /// An owner is gone, or given up. If it left rooms, an heir drains them; if none can, they are buried.
    pub(super) async fn inherit(
        &mut self,
        myself: &ActorRef<SupervisorMessage>,
        request: RequestId,
        owner: Owner,
        why: &str,
    ) {
        let left = self.estate(&owner);
        if left.is_empty() {
            self.shared.watch.disarm(request);
            return;
        }
        for (room, index, inherited) in &left {
            self.died(&[*room], why, owner.deaths);
            self.give_back(*room, inherited.generation);
            if inherited.answered {
                // It may have died between fixing the outcome and saying it.
                self.shared.answer(*room, &owner.sink, *index, inherited.outcome);
            }
        }
        if owner.deaths < MAX_DEATHS {
            let at = self.shared.clock.now() + self.shared.limits.drain_overdue;
            self.shared.watch.arm(request, at);
            let rooms = left.iter().map(|(room, index, _)| (*room, *index)).collect();
            let birth = Birth::Heir(left.clone());
            let sink = owner.sink.clone();
            let heir = self.start(myself, request, birth, rooms, sink, owner.deaths + 1);
            if heir.await.is_some() {
                return;
            }
        }
        self.bury(request, &owner, &left);
    }

    /// Rooms that have not ended, with all that may still be held for them.
    fn estate(&self, owner: &Owner) -> Vec<Left> {
        let open = owner
            .rooms
            .iter()
            .filter_map(|(room, index)| Some((*room, *index, self.shared.board.get(*room)?)));
        open.map(|(room, index, view)| {
            let inherited = Inherited {
                generation: Generation(view.generation),
                legs: self.shared.fabric.legs(room),
                outcome: view.outcome.unwrap_or(Outcome::Failed(Failure::OwnerLost)),
                answered: view.outcome.is_some(),
            };
            (room, index, inherited)
        })
        .collect()
    }

    /// All credit that any attempt at the room was granted, or may yet be: the owner may have died before it gave it back.
    fn give_back(&self, room: RoomId, last: Generation) {
        for generation in Generation::FIRST.0..=last.0 {
            let generation = Generation(generation);
            self.shared
                .place(PlacementMessage::Leave(Attempt { room, generation }));
        }
    }

    /// The last resort, when heirs die as well: the client is answered, and the workers are fenced, which ends the leases.
    fn bury(&self, request: RequestId, owner: &Owner, left: &[Left]) {
        for (room, index, inherited) in left {
            let workers = crate::convert::count(inherited.legs.len());
            self.shared.happened(*room, |_| RoomWhat::Buried { workers });
            self.shared.answer(*room, &owner.sink, *index, inherited.outcome);
            for (worker, _) in &inherited.legs {
                self.shared
                    .fence(*worker, "the owner of a room there dies again and again");
            }
            self.shared.directory.remove(*room);
            self.shared.ended(*room, Some(inherited.outcome));
        }
        self.shared.watch.disarm(request);
    }
}
