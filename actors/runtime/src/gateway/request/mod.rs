//! The request: one actor for each, which owns the request's rooms.
//!
//! It feeds its rooms what arrives, carries out what they command, and keeps the supervisor's timer armed for the earliest of their
//! deadlines. Every message is handled at once: nothing here waits.

mod mandate;
#[cfg(feature = "faults")]
mod poison;
mod slot;

use std::sync::Arc;

use observe::{RoomEvent, RoomWhat};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use room::{
    AbortBy, AttemptError, Command, Credit, Generation, Inherited, Input, Outcome, Report, Room, RoomId,
};

use super::board::Recorded;
use super::directory::{Inbox, Mail};
use super::job::Job;
use super::placement::PlacementMessage;
use super::shared::{RequestId, Shared};
use crate::answer::AnswerSink;
use crate::convert;
pub(crate) use mandate::Mandate;
#[cfg(feature = "faults")]
pub(crate) use poison::Doom;
#[cfg(feature = "faults")]
pub use poison::Poison;
use slot::Slot;

/// What a request's actor is told. Workers' messages come through its [`Inbox`].
#[derive(Debug)]
pub(crate) enum RequestMessage {
    /// There is mail.
    Wake,
    /// The supervisor's timeout message: a deadline of one of the rooms has passed.
    Timeout,
    /// The reader has read more.
    Read,
    /// Somebody does not want the answers any more.
    Abort(AbortBy),
    /// A stop string of the client's was found in the answer of room `index`.
    StopStringFound { index: usize },
    /// A test wants the actor to fail.
    #[cfg(feature = "faults")]
    Poison(Poison),
}

/// How a request's actor comes to life.
pub(crate) enum Birth {
    /// For a client's job.
    New(Arc<Job>, Vec<(RoomId, Room)>),
    /// For the rooms of an actor that died, to drain them.
    Heir(Vec<(RoomId, usize, Inherited)>),
}

/// What the actor is started with.
pub(crate) struct RequestArguments {
    pub(crate) id: RequestId,
    pub(crate) shared: Arc<Shared>,
    pub(crate) birth: Birth,
    pub(crate) sink: AnswerSink,
    pub(crate) mandate: Mandate,
}

/// The actor.
pub(crate) struct Request;

/// What it owns.
pub(crate) struct RequestState {
    id: RequestId,
    shared: Arc<Shared>,
    inbox: Arc<Inbox>,
    slots: Vec<Open>,
    sink: AnswerSink,
    mandate: Mandate,
    /// What a room has said and was not told yet; empty between two messages.
    said: Vec<Recorded>,
}

/// A room that has not ended.
struct Open {
    id: RoomId,
    /// Which answer of the request it is.
    index: usize,
    slot: Slot,
}

impl Actor for Request {
    type Msg = RequestMessage;
    type State = RequestState;
    type Arguments = RequestArguments;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        arguments: RequestArguments,
    ) -> Result<RequestState, ActorProcessingErr> {
        let RequestArguments {
            id,
            shared,
            birth,
            sink,
            mandate,
        } = arguments;
        let inbox = Inbox::new(myself);
        let now = shared.clock.now();
        #[cfg(feature = "faults")]
        shared.doom.at_birth();
        let slots: Vec<Open> = match birth {
            Birth::New(job, rooms) => rooms
                .into_iter()
                .enumerate()
                .map(|(index, (id, room))| Open {
                    id,
                    index,
                    slot: Slot::new(room, Some(Arc::clone(&job)), index),
                })
                .collect(),
            Birth::Heir(rooms) => rooms
                .into_iter()
                .map(|(id, index, inherited)| {
                    let room = Room::adopt(id, inherited, &shared.limits, now);
                    Open {
                        id,
                        index,
                        slot: Slot::new(room, None, index),
                    }
                })
                .collect(),
        };
        for open in &slots {
            shared.directory.insert(open.id, &inbox, open.index);
        }
        Ok(RequestState {
            id,
            shared,
            inbox,
            slots,
            sink,
            mandate,
            said: Vec::new(),
        })
    }

    async fn post_start(
        &self,
        myself: ActorRef<Self::Msg>,
        state: &mut RequestState,
    ) -> Result<(), ActorProcessingErr> {
        #[cfg(feature = "faults")]
        if state.slots.iter().any(|open| open.slot.is_inherited()) {
            state.shared.doom.after_birth();
        }
        state.settle_all();
        state.rest(&myself);
        Ok(())
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: RequestMessage,
        state: &mut RequestState,
    ) -> Result<(), ActorProcessingErr> {
        if planted!(DeadlineInGuardedLoop) {
            state.timeout();
        }
        match message {
            RequestMessage::Wake => state.read_mail(),
            RequestMessage::Timeout => state.timeout(),
            RequestMessage::Read => state.read(),
            RequestMessage::Abort(by) => state.feed_all(Input::Abort(by)),
            RequestMessage::StopStringFound { index } => state.feed(index, Input::StopStringFound),
            #[cfg(feature = "faults")]
            RequestMessage::Poison(poison) => poison.act(),
        }
        state.rest(&myself);
        Ok(())
    }
}

impl RequestState {
    fn read_mail(&mut self) {
        for (index, mail) in self.inbox.take() {
            match mail {
                Mail::Input(input) => self.feed(index, input),
                Mail::Worker { from, frame } => {
                    let Some(at) = self.position(index) else { continue };
                    let generation = Generation(frame.generation);
                    let slot = &mut self.slots[at].slot;
                    let knew = slot.found();
                    let reports = slot.reports(from, generation, frame.news);
                    if let (None, Some(tokens)) = (knew, slot.found()) {
                        self.sink.found(index, tokens);
                        let cached = RoomWhat::Cached { worker: from, tokens };
                        self.shared.happened(self.slots[at].id, |_| cached);
                    }
                    for report in reports {
                        self.feed(
                            index,
                            Input::FromWorker {
                                worker: from,
                                generation,
                                report,
                            },
                        );
                    }
                }
            }
        }
    }

    fn read(&mut self) {
        let now = self.shared.clock.now();
        for open in &mut self.slots {
            let tokens = self.sink.read(open.index);
            open.slot.room.handle_input(now, Input::Read { tokens });
        }
        self.settle_all();
    }

    fn timeout(&mut self) {
        let now = self.shared.clock.now();
        for open in &mut self.slots {
            open.slot.room.handle_timeout(now);
        }
        self.settle_all();
    }

    fn position(&self, index: usize) -> Option<usize> {
        self.slots.iter().position(|open| open.index == index)
    }

    fn feed(&mut self, index: usize, input: Input) {
        let now = self.shared.clock.now();
        if let Some(at) = self.position(index) {
            self.slots[at].slot.room.handle_input(now, input);
            self.settle(at);
        }
    }

    fn feed_all(&mut self, input: Input) {
        let now = self.shared.clock.now();
        for open in &mut self.slots {
            open.slot.room.handle_input(now, input);
        }
        self.settle_all();
    }

    fn settle_all(&mut self) {
        for at in 0..self.slots.len() {
            self.settle(at);
        }
    }

    /// Shows where a room has come to and tells what it says, then carries out what it commands, until there is nothing more. Shown first:
    /// whoever inherits the room must know of everything that may have been done.
    fn settle(&mut self, at: usize) {
        loop {
            if self.mandate.is_revoked() {
                return;
            }
            let Open { id, slot, .. } = &mut self.slots[at];
            while let Some(event) = slot.room.poll_event() {
                self.said.push(told(event).into());
            }
            self.shared.show(*id, &slot.room, &mut self.said);
            let mut says_more = false;
            while let Some(command) = self.slots[at].slot.room.poll_command() {
                if self.mandate.is_revoked() {
                    return;
                }
                says_more |= self.perform(at, command);
            }
            if !says_more {
                return;
            }
        }
    }

    /// Carries out a command; whether that led to an input of the room's, so that it may have more to say.
    fn perform(&mut self, at: usize, command: Command) -> bool {
        let Open { id, index, slot } = &mut self.slots[at];
        let shared = &self.shared;
        match command {
            Command::Enqueue(bid) => shared.place(PlacementMessage::Enqueue(bid)),
            Command::LeaveQueue { attempt } => shared.place(PlacementMessage::Leave(attempt)),
            Command::GiveBack {
                attempt,
                worker,
                credit,
            } => {
                // With the last of its credit a leg is proven returned. No digest lists it any more: a copy of its order that comes
                // late opens a stay that nobody wants.
                if credit == Credit::All {
                    shared.fabric.proven(worker, convert::room_key(attempt));
                }
                shared.place(PlacementMessage::GiveBack {
                    attempt,
                    worker,
                    credit,
                });
            }
            Command::Send { to, attempt, order } => match slot.frame(attempt, order, shared.clock.now()) {
                Some(frame) => {
                    if let Err(why) = shared.fabric.send(to, attempt, &frame) {
                        let why = why.into();
                        shared.happened(*id, |_| RoomWhat::NotSent { worker: to, why });
                    }
                }
                None => {
                    let why = format!("its content is missing: {order:?}").into();
                    shared.happened(*id, |_| RoomWhat::NotSent { worker: to, why });
                    let report = Report::Failed(AttemptError::PullFailed);
                    let generation = attempt.generation;
                    let input = Input::FromWorker {
                        worker: to,
                        generation,
                        report,
                    };
                    slot.room.handle_input(shared.clock.now(), input);
                    return true;
                }
            },
            Command::Deliver { skip, take } => self.sink.tokens(*index, slot.deliver(skip, take)),
            Command::Fence { worker } => shared.fence(worker, "it did not prove a lease returned"),
            Command::Answer(outcome) => self.answer(at, outcome),
            Command::End => shared.directory.remove(*id),
        }
        false
    }

    /// The client hears at once. Siblings of a room that failed are of no use to the request any more.
    fn answer(&mut self, at: usize, outcome: Outcome) {
        let Open { id, index, .. } = &self.slots[at];
        self.shared.answer(*id, &self.sink, *index, outcome);
        if !matches!(outcome, Outcome::Completed(_) | Outcome::Aborted(_)) && self.slots.len() > 1 {
            for sibling in self.slots.iter().filter(|open| open.id != *id) {
                self.shared
                    .directory
                    .deliver(sibling.id.seq, Mail::Input(Input::Abort(AbortBy::Sibling)));
            }
        }
    }

    /// Forgets rooms that have ended, re-arms the supervisor's timer, and stops when no room is left.
    fn rest(&mut self, myself: &ActorRef<RequestMessage>) {
        if self.mandate.is_revoked() {
            return myself.stop(None);
        }
        let shared = &self.shared;
        self.slots.retain(|open| {
            let ended = open.slot.room.phase() == room::PhaseKind::Ended;
            if ended {
                shared.ended(open.id, open.slot.room.outcome());
            }
            !ended
        });
        match self
            .slots
            .iter()
            .filter_map(|open| open.slot.room.poll_timeout())
            .min()
        {
            Some(deadline) => shared.watch.arm(self.id, deadline),
            None => {
                shared.watch.disarm(self.id);
                myself.stop(None);
            }
        }
    }
}

/// A room's own event, as it is told.
fn told(event: room::Event) -> RoomEvent {
    RoomEvent {
        at: event.at,
        room: event.room,
        generation: event.generation,
        what: RoomWhat::Room(event.what),
    }
}
