//! The request supervisor: starts a request's actor for every job, holds the timers, and inherits the rooms of an actor that dies.
//!
//! When a room's deadline passes, the actor that owns it is told by a timeout message; this is what a lost abort, a lost close or any
//! other lost message becomes. An actor that does not answer within a grace is killed. The rooms of an actor that died, for whatever
//! reason, go to an heir: see [`estate`](super::estate).

use std::collections::BTreeMap;
use std::sync::Arc;

use observe::RoomWhat;
use ractor::{Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use room::{Alarm, Failure, Outcome, RoomId, Span};

use super::handle::{Refused, Started};
use super::job::Job;
use super::opening::Opened;
use super::placement::PlacementMessage;
use super::request::{Birth, Mandate, Request, RequestArguments, RequestMessage};
use super::shared::{RequestId, Shared};
use crate::answer::{AnswerSink, FromReader, TellOwner, answer};

/// What the supervisor is told.
pub(crate) enum SupervisorMessage {
    /// A client's job.
    Submit(Job, RpcReplyPort<Result<Started, Refused>>),
    /// The timer's: a deadline passed, or its owner does not answer.
    Alarm(Alarm<RequestId>),
    /// Take no more jobs.
    Close,
    /// To be handed on to the desk, which answers.
    Ping(RpcReplyPort<()>),
}

/// What it is started with.
pub(crate) struct SupervisorArguments {
    pub(crate) shared: Arc<Shared>,
    pub(crate) max_requests: usize,
}

/// What it owns.
pub(crate) struct SupervisorState {
    pub(super) shared: Arc<Shared>,
    max_requests: usize,
    pub(super) next_room: u64,
    next_request: u64,
    open: BTreeMap<RequestId, Owner>,
    by_actor: BTreeMap<ActorId, RequestId>,
    closed: bool,
}

/// Who owns a request's rooms.
pub(super) struct Owner {
    actor: ActorRef<RequestMessage>,
    mandate: Mandate,
    pub(super) rooms: Vec<(RoomId, usize)>,
    pub(super) sink: AnswerSink,
    /// How many owners before this one died.
    pub(super) deaths: u32,
}

/// The actor.
pub(crate) struct Supervisor;

impl Actor for Supervisor {
    type Msg = SupervisorMessage;
    type State = SupervisorState;
    type Arguments = SupervisorArguments;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        arguments: SupervisorArguments,
    ) -> Result<SupervisorState, ActorProcessingErr> {
        let SupervisorArguments { shared, max_requests } = arguments;
        shared.watch.spawn(shared.clock, move |alarm| {
            // A supervisor that is gone is its own supervisor's business.
            let _ = myself.cast(SupervisorMessage::Alarm(alarm));
        });
        Ok(SupervisorState {
            shared,
            max_requests,
            next_room: 1,
            next_request: 1,
            open: BTreeMap::new(),
            by_actor: BTreeMap::new(),
            closed: false,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: SupervisorMessage,
        state: &mut SupervisorState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            SupervisorMessage::Submit(job, reply) => {
                let started = state.submit(&myself, job).await;
                // A caller that gave up dropped the stream with it, and that is the abort.
                let _ = reply.send(started);
            }
            SupervisorMessage::Alarm(Alarm::Ask(request)) => state.ask(request),
            SupervisorMessage::Alarm(Alarm::Kill(request)) => state.kill(&myself, request).await,
            SupervisorMessage::Close => state.closed = true,
            SupervisorMessage::Ping(reply) => {
                // One that is gone takes the gateway with it.
                let _ = state.shared.placement.cast(PlacementMessage::Ping(reply));
            }
        }
        Ok(())
    }

    /// A request's actor ended: in order, or not. Never an end of the supervisor itself.
    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<Self::Msg>,
        event: SupervisionEvent,
        state: &mut SupervisorState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorTerminated(cell, _, _) => state.ended(&myself, &cell, "killed").await,
            SupervisionEvent::ActorFailed(cell, why) => state.ended(&myself, &cell, &why.to_string()).await,
            _ => {}
        }
        Ok(())
    }
}

impl SupervisorState {
    async fn submit(
        &mut self,
        myself: &ActorRef<SupervisorMessage>,
        mut job: Job,
    ) -> Result<Started, Refused> {
        if self.closed {
            return Err(Refused::ShuttingDown);
        }
        if self.open.len() >= self.max_requests {
            return Err(Refused::TooManyRequests {
                limit: self.max_requests,
            });
        }
        let Opened {
            rooms,
            trace,
            deadline,
        } = self.open_rooms(&mut job);
        let ids: Vec<(RoomId, usize)> = rooms
            .iter()
            .enumerate()
            .map(|(index, (id, _))| (*id, index))
            .collect();
        let request = RequestId(self.next_request);
        self.next_request += 1;
        // Armed before anything is sent.
        self.shared.watch.arm(request, deadline);
        let give_up_at = self.shared.clock.instant(deadline + GIVE_UP_GRACE);
        let slot = OwnerSlot::default();
        let (sink, stream) = answer(
            rooms.len(),
            give_up_at,
            self.shared.limits.read_step(),
            slot.teller(),
        );
        let birth = Birth::New(Arc::new(job), rooms);
        match self.start(myself, request, birth, ids.clone(), sink, 0).await {
            Some(actor) => {
                slot.fill(actor.clone());
                Ok(Started {
                    trace,
                    rooms: ids.into_iter().map(|(id, _)| id).collect(),
                    stream,
                    actor,
                })
            }
            None => {
                let lost = Outcome::Failed(Failure::OwnerLost);
                for (id, _) in ids {
                    self.shared.directory.remove(id);
                    let (outcome, delivered) = (lost, 0);
                    self.shared
                        .happened(id, |_| RoomWhat::Answered { outcome, delivered });
                    self.shared.ended(id, Some(lost));
                }
                Err(Refused::NotStarted)
            }
        }
    }

    /// Starts an actor for a request's rooms, or for what a dead one left. Waits for nothing but its `pre_start`, which waits for nothing.
    pub(super) async fn start(
        &mut self,
        myself: &ActorRef<SupervisorMessage>,
        request: RequestId,
        birth: Birth,
        rooms: Vec<(RoomId, usize)>,
        sink: AnswerSink,
        deaths: u32,
    ) -> Option<ActorRef<RequestMessage>> {
        let mandate = Mandate::default();
        let named: Vec<RoomId> = rooms.iter().map(|(room, _)| *room).collect();
        let arguments = RequestArguments {
            id: request,
            shared: Arc::clone(&self.shared),
            birth,
            sink: sink.clone(),
            mandate: mandate.clone(),
        };
        match Actor::spawn_linked(None, Request, arguments, myself.get_cell()).await {
            Ok((actor, _)) => {
                self.by_actor.insert(actor.get_id(), request);
                self.open.insert(
                    request,
                    Owner {
                        actor: actor.clone(),
                        mandate,
                        rooms,
                        sink,
                        deaths,
                    },
                );
                Some(actor)
            }
            Err(why) => {
                self.died(&named, &format!("its owner cannot be started: {why}"), deaths);
                self.shared.watch.disarm(request);
                None
            }
        }
    }

    /// The timeout message.
    fn ask(&self, request: RequestId) {
        if let Some(owner) = self.open.get(&request) {
            for (room, _) in &owner.rooms {
                self.shared.happened(*room, |known| RoomWhat::TimerFired {
                    phase: known.state().phase,
                });
            }
            // A dead actor is reported by its supervision event.
            let _ = owner.actor.cast(RequestMessage::Timeout);
        }
    }

    /// The owner did not answer. Its rooms are taken from it at once: it may never come to its end.
    async fn kill(&mut self, myself: &ActorRef<SupervisorMessage>, request: RequestId) {
        // Armed anew: it answered meanwhile, or another owns the rooms by now.
        if self.shared.watch.is_armed(request) {
            return;
        }
        let Some(owner) = self.open.remove(&request) else {
            return;
        };
        for (room, _) in &owner.rooms {
            self.shared.happened(*room, |known| RoomWhat::OwnerSilent {
                phase: known.state().phase,
            });
        }
        self.by_actor.remove(&owner.actor.get_id());
        owner.mandate.revoke();
        owner.actor.kill();
        self.inherit(myself, request, owner, "it did not answer").await;
    }

    /// The owner of these rooms is dead.
    pub(super) fn died(&self, rooms: &[RoomId], why: &str, deaths: u32) {
        for room in rooms {
            self.shared.happened(*room, |known| RoomWhat::OwnerDied {
                phase: known.state().phase,
                why: why.into(),
                deaths,
            });
        }
    }

    /// An actor is gone.
    async fn ended(&mut self, myself: &ActorRef<SupervisorMessage>, cell: &ActorCell, why: &str) {
        // The end of one that was given up before is no news.
        let request = self.by_actor.remove(&cell.get_id());
        let Some((request, owner)) = request.and_then(|request| self.open.remove_entry(&request)) else {
            return;
        };
        self.inherit(myself, request, owner, why).await;
    }
}

/// How long after a request's deadline its reader gives up by itself.
const GIVE_UP_GRACE: Span = Span::from_millis(2_000);

/// The reader's way to the owner, which exists before the actor does.
#[derive(Clone, Default)]
struct OwnerSlot(Arc<std::sync::OnceLock<ActorRef<RequestMessage>>>);

impl OwnerSlot {
    fn teller(&self) -> TellOwner {
        let slot = self.clone();
        Box::new(move |said| {
            if let Some(actor) = slot.0.get() {
                let message = match said {
                    FromReader::Read => RequestMessage::Read,
                    FromReader::Gone => RequestMessage::Abort(room::AbortBy::ClientGone),
                };
                // An actor that is gone has ended the rooms, or its heir will.
                let _ = actor.cast(message);
            }
        })
    }

    fn fill(&self, actor: ActorRef<RequestMessage>) {
        // Filled once, before the stream is handed out.
        let _ = self.0.set(actor);
    }
}
