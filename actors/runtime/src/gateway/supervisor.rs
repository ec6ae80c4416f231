//! The request supervisor: starts a request's actor for every job, holds the timers, and inherits the rooms of an actor that dies.
//!
//! When a room's deadline passes, the actor that owns it is told by a timeout message; this is what a lost abort, a lost close or any
//! other lost message becomes. An actor that does not answer within a grace is killed. The rooms of an actor that died, for whatever
//! reason, go to an heir: see [`estate`](super::estate).

use std::collections::BTreeMap;
use std::sync::Arc;

use observe::{Drawing, Facts, Prepared, RoomWhat, SpanId, SpanKind, Trace, TraceId};
use ractor::{Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use room::{Alarm, Failure, Outcome, Priority, Room, RoomId, RoomSpec, Span, Time};

use super::board::RoomView;
use super::handle::{Refused, Started};
use super::job::Job;
use super::request::{Birth, Mandate, Request, RequestArguments, RequestMessage};
use super::shared::{RequestId, Shared};
use crate::answer::{AnswerSink, FromReader, TellOwner, answer};
use crate::convert;

/// What the supervisor is told.
pub(crate) enum SupervisorMessage {
    /// A client's job.
    Submit(Job, RpcReplyPort<Result<Started, Refused>>),
    /// The timer's: a deadline passed, or its owner does not answer.
    Alarm(Alarm<RequestId>),
    /// Take no more jobs.
    Close,
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
    next_room: u64,
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
        let now = self.shared.clock.now();
        let spec = RoomSpec {
            positions: convert::count(job.prompt.len()),
            max_new: job.max_new,
            deadline: now + convert::span(job.timeout),
            priority: Priority(job.priority),
        };
        let first = RoomId {
            gateway: self.shared.fabric.gateway(),
            seq: self.next_room,
        };
        let trace = self.trace(&mut job, first);
        let mut rooms = Vec::new();
        for index in 0..job.n {
            let id = RoomId {
                seq: self.next_room,
                ..first
            };
            self.next_room += u64::from(!planted!(SiblingsShareRoom));
            let room = Room::new(id, spec, &self.shared.limits, now);
            let facts = facts(&job, &room, (first, index), trace, &self.shared.model, now);
            self.shared
                .opened(RoomView::new(&room, &job, now), Arc::new(facts));
            rooms.push((id, room));
        }
        self.next_room += u64::from(planted!(SiblingsShareRoom));
        let ids: Vec<(RoomId, usize)> = rooms
            .iter()
            .enumerate()
            .map(|(index, (id, _))| (*id, index))
            .collect();
        let request = RequestId(self.next_request);
        self.next_request += 1;
        // Armed before anything is sent.
        self.shared.watch.arm(request, spec.deadline);
        let give_up_at = self.shared.clock.instant(spec.deadline + GIVE_UP_GRACE);
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

impl SupervisorState {
    /// The trace of the request whose first room this is: the client's, or one of its own. Workers are told the request's span.
    fn trace(&self, job: &mut Job, first: RoomId) -> Trace {
        let given = job.trace.map(|given| Trace {
            id: TraceId::new(given.trace_id),
            parent: Some(given.span_id).filter(|id| *id != 0).map(SpanId::new),
            flags: given.flags,
        });
        let trace = given.unwrap_or_else(|| Trace::new(TraceId::of_room(first)));
        let trace = self.shared.recorder.sampling().head(trace);
        job.trace = Some(wire::TraceContext {
            trace_id: trace.id.bits(),
            span_id: SpanId::of_room(trace.id, first, SpanKind::Request).bits(),
            flags: trace.flags,
        });
        trace
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
}

fn facts(
    job: &Job,
    room: &Room,
    (first, index): (RoomId, u32),
    trace: Trace,
    model: &observe::Text,
    now: Time,
) -> Facts {
    let spec = room.spec();
    Facts {
        room: room.id(),
        first,
        index,
        of: job.n,
        request_id: job.request_id.as_str().into(),
        trace,
        model: Arc::clone(model),
        prompt_tokens: spec.positions,
        max_tokens: spec.max_new,
        drawing: Drawing {
            temperature: job.sampling.temperature,
            top_p: job.sampling.top_p,
            seed: job.sampling.seed.wrapping_add(u64::from(index)),
        },
        priority: spec.priority,
        opened: now,
        prepared: Prepared {
            in_all: convert::span(job.prepared.in_all),
            render: convert::span(job.prepared.render),
            tokenise: convert::span(job.prepared.tokenise),
        },
        deadline: spec.deadline,
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
