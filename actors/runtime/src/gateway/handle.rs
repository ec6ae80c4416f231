//! What the rest of the program can ask of a gateway.

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use mesh::{LinkStats, ListenerFigures, ListenerStats};
use observe::{NodeWhat, RefusedBecause, RoomHistory, SpanId, SpanKind, Text, Trace, TraceId};
use ractor::{ActorRef, RpcReplyPort};
use room::{AbortBy, NodeId, PhaseKind, RoomId, Time, WaitsFor, WorkerView};
use tokio::time::timeout;
use wire::{Order, Role};

use super::board::{Counts, Find, RoomView};
use super::directory::Mail;
use super::job::Job;
use super::orders::{ORDER_PATIENCE, OrderError};
use super::peers::{LinkBoard, Peer};
use super::placement::DeskBoard;
use super::request::RequestMessage;
use super::shared::Shared;
use super::supervisor::SupervisorMessage;
use crate::answer::{AnswerEvent, AnswerStream};

/// Why a job was not started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The gateway has as many requests open as it allows.
    #[error("{limit} requests are open, which is the limit")]
    TooManyRequests {
        /// The limit.
        limit: usize,
    },
    /// The gateway takes no more requests, or has ended.
    #[error("the gateway is shutting down")]
    ShuttingDown,
    /// No actor could be started for it.
    #[error("the request could not be started")]
    NotStarted,
    /// The supervisor did not answer: it is overloaded.
    #[error("the gateway's supervisor did not answer within {waited_ms} ms")]
    Unavailable {
        /// How long was waited.
        waited_ms: u64,
    },
}

impl Refused {
    fn because(&self) -> RefusedBecause {
        match self {
            Self::TooManyRequests { .. } => RefusedBecause::TooManyRequests,
            Self::ShuttingDown => RefusedBecause::ShuttingDown,
            Self::NotStarted => RefusedBecause::NotStarted,
            Self::Unavailable { .. } => RefusedBecause::Unavailable,
        }
    }
}

/// A job that was started.
pub(crate) struct Started {
    pub(crate) trace: Trace,
    pub(crate) rooms: Vec<RoomId>,
    pub(crate) stream: AnswerStream,
    pub(crate) actor: ActorRef<RequestMessage>,
}

/// The answers to a job. Dropping it before they have ended aborts the request.
pub struct Answer {
    trace: Trace,
    rooms: Vec<RoomId>,
    stream: AnswerStream,
    actor: ActorRef<RequestMessage>,
}

impl Answer {
    /// The rooms, in the order of the answers' indices.
    #[must_use]
    pub fn rooms(&self) -> &[RoomId] {
        &self.rooms
    }

    /// The trace that it belongs to.
    #[must_use]
    pub fn trace(&self) -> Trace {
        self.trace
    }

    /// What a client is told of the trace: the `traceparent` of the request's span. None for a request of no rooms.
    #[must_use]
    pub fn traceparent(&self) -> Option<String> {
        let first = *self.rooms.first()?;
        let span = SpanId::of_room(self.trace.id, first, SpanKind::Request);
        Some(self.trace.header(span))
    }

    /// The next event; `None` when every answer has ended. Cancel-safe, and bounded by the request's deadline.
    pub async fn next(&mut self) -> Option<AnswerEvent> {
        self.stream.next().await
    }

    /// The same for whoever is polled itself. What was given before counts as read with the first call after it.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<AnswerEvent>> {
        self.stream.poll_next(cx)
    }

    /// Tokens of the prompt that did not have to be computed for answer `index`, because the worker that computed the rest had their
    /// KV in its cache. Known when the first event of that answer has come; never more than the prompt has.
    #[must_use]
    pub fn cached_tokens(&self, index: usize) -> u32 {
        self.stream.cached_tokens(index)
    }

    /// The phase that answer `index` was in when its outcome was fixed. Known when its end has come, unless its owner was lost.
    #[must_use]
    pub fn ended_in(&self, index: usize) -> Option<PhaseKind> {
        self.stream.ended_in(index)
    }

    /// Answer `index` is whole: a stop string of the client's was found in it.
    pub fn stop_string_found(&self, index: usize) {
        // An actor that is gone has ended the room already.
        let _ = self.actor.cast(RequestMessage::StopStringFound { index });
    }

    /// Makes the actor that owns the request fail, for a test.
    #[cfg(feature = "faults")]
    pub fn poison(&self, poison: super::request::Poison) {
        // One that has ended cannot fail any more.
        let _ = self.actor.cast(RequestMessage::Poison(poison));
    }
}

/// A worker as a gateway sees it.
#[derive(Clone, Debug)]
pub struct WorkerState {
    /// Who it is and what it last said.
    pub peer: Peer,
    /// What the desk thinks of it; none before its first message.
    pub desk: Option<WorkerView>,
}

/// Sizes of a gateway's tables of what has not ended.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub struct Bookkeeping {
    /// Rooms that are shown as open.
    pub shown: usize,
    /// Rooms that mail is delivered to.
    pub addressed: usize,
    /// Attempts that a worker may hold something for.
    pub legs: usize,
    /// Requests with a deadline armed.
    pub timers: usize,
    /// Attempts with credit at a worker.
    pub promises: usize,
    /// Rooms in the desk's queue.
    pub waiting: usize,
}

/// How long the supervisor may take to start a job.
const SUBMIT_PATIENCE: Duration = Duration::from_secs(2);

/// A running gateway. Cheap to clone.
#[derive(Clone)]
pub struct GatewayHandle {
    pub(crate) shared: Arc<Shared>,
    pub(crate) desk: Arc<DeskBoard>,
    pub(crate) links: Arc<LinkBoard>,
    pub(crate) listener: ListenerFigures,
    pub(crate) supervisor: ActorRef<SupervisorMessage>,
}

impl GatewayHandle {
    /// Opens the job's rooms.
    ///
    /// # Errors
    /// When the gateway takes no more jobs; nothing was started then.
    pub async fn submit(&self, job: Job) -> Result<Answer, Refused> {
        let (request_id, trace) = (Text::from(job.request_id.as_str()), job.trace);
        let answer = self.submitted(job).await;
        if let Err(why) = &answer {
            self.shared.node(NodeWhat::RequestRefused {
                request_id,
                trace: trace.map(|trace| TraceId::new(trace.trace_id)),
                why: why.because(),
            });
        }
        answer
    }

    async fn submitted(&self, job: Job) -> Result<Answer, Refused> {
        let (reply, answer) = ractor::concurrency::oneshot();
        let message = SupervisorMessage::Submit(job, RpcReplyPort::from(reply));
        // A supervisor that is gone takes the gateway with it.
        let gone = Refused::ShuttingDown;
        self.supervisor.cast(message).map_err(|_| gone.clone())?;
        match timeout(SUBMIT_PATIENCE, answer).await {
            Ok(Ok(started)) => started.map(|started| Answer {
                trace: started.trace,
                rooms: started.rooms,
                stream: started.stream,
                actor: started.actor,
            }),
            Ok(Err(_)) => Err(gone),
            Err(_) => Err(Refused::Unavailable {
                waited_ms: u64::try_from(SUBMIT_PATIENCE.as_millis()).unwrap_or(u64::MAX),
            }),
        }
    }

    /// The incarnation of this gateway.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.shared.fabric.gateway()
    }

    /// The gateway's clock, to make ages and remaining times of what it shows.
    #[must_use]
    pub fn now(&self) -> Time {
        self.shared.clock.now()
    }

    /// How many attempts of a room may fail by a fault, until the room does.
    #[must_use]
    pub fn most_faults(&self) -> u32 {
        self.shared.limits.max_faults
    }

    /// Every room that has not ended.
    #[must_use]
    pub fn rooms(&self) -> Vec<RoomView> {
        let mut rooms = self.shared.board.open();
        if let Some(absence) = self.desk.read().absence {
            let waiting = |room: &&mut RoomView| room.waits_for == WaitsFor::Credit;
            for room in rooms.iter_mut().filter(waiting) {
                room.no_worker = true;
                let until = absence.until(room.delivered > 0);
                room.deadline = room.deadline.map(|deadline| deadline.min(until));
            }
        }
        rooms
    }

    /// The rooms that ended lately, oldest first; bounded.
    #[must_use]
    pub fn rooms_ended(&self) -> Vec<RoomView> {
        self.shared.board.lately_ended()
    }

    /// The rooms of that name, open or ended lately, with their histories: the latest last.
    #[must_use]
    pub fn find(&self, find: &Find) -> Vec<(RoomView, Arc<RoomHistory>)> {
        self.shared.board.find(find)
    }

    /// Ends a room on an operator's behalf; `false` if there is none of that name. A name that an earlier incarnation of this gateway gave
    /// is that of no room here.
    pub fn abort(&self, room: RoomId) -> bool {
        room.gateway == self.node()
            && self
                .shared
                .directory
                .deliver(room.seq, Mail::Input(room::Input::Abort(AbortBy::Operator)))
    }

    /// The linked workers.
    #[must_use]
    pub fn workers(&self) -> Vec<WorkerState> {
        let desk = self.desk.read();
        let of = |peer: Peer| {
            let view = desk.workers.iter().find(|view| view.node == peer.node).cloned();
            WorkerState { peer, desk: view }
        };
        self.links.read().into_iter().map(of).collect()
    }

    /// The links to them, by their incarnations: where each leads, and its figures.
    #[must_use]
    pub fn links(&self) -> Vec<(NodeId, SocketAddr, LinkStats)> {
        self.shared.fabric.links()
    }

    /// What became of the connections of workers, since the start.
    #[must_use]
    pub fn connections(&self) -> ListenerStats {
        self.listener.read()
    }

    /// Has the worker of that name do what an operator wants. It is the worker's own state, and it tells all its gateways. A change of its
    /// role has only begun when this returns.
    ///
    /// # Errors
    /// Why it does not.
    pub async fn order(&self, worker: &str, order: Order) -> Result<(), OrderError> {
        let node = self.links.named(worker).ok_or(OrderError::NotLinked)?;
        let (n, answer) = self.links.orders.ask(node).ok_or(OrderError::TooMany)?;
        self.shared.fabric.order(node, n, order)?;
        match timeout(ORDER_PATIENCE, answer).await {
            Ok(Ok(answer)) => answer.map_err(OrderError::Refused),
            Ok(Err(_)) => Err(OrderError::Unlinked),
            Err(_) => Err(OrderError::NoAnswer {
                waited_ms: u64::try_from(ORDER_PATIENCE.as_millis()).unwrap_or(u64::MAX),
            }),
        }
    }

    /// Rooms waiting for credit.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.desk.read().waiting
    }

    /// Whether a request sent now could be served; if not, what is missing.
    ///
    /// # Errors
    /// The missing role, in words.
    pub fn ready(&self) -> Result<(), String> {
        let linked = self.links.read();
        let roles = |role: Role, taking: bool| {
            let of_role = |peer: &&Peer| peer.role == role && !(taking && peer.is_draining());
            linked.iter().filter(of_role).count()
        };
        let lacks = |role: Role| match (roles(role, true), roles(role, false)) {
            (0, 0) => Some(format!("no {role} worker is connected")),
            (0, _) => Some(format!("every {role} worker that is connected is leaving")),
            _ => None,
        };
        let pair = lacks(Role::Prefill).or(lacks(Role::Decode));
        match (lacks(Role::Mixed), pair) {
            (None, _) | (_, None) => Ok(()),
            _ if linked.is_empty() => Err("no worker is connected".to_owned()),
            (Some(missing), Some(_)) if linked.iter().all(|peer| peer.role == Role::Mixed) => Err(missing),
            (Some(_), Some(missing)) => Err(missing),
        }
    }

    /// Messages of workers and of the desk that no owner of a room has read yet.
    #[must_use]
    pub fn unread_mail(&self) -> usize {
        self.shared.directory.unread()
    }

    /// What was counted since the start.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.board.counts()
    }

    /// What is kept about rooms that have not ended. All zero when there are none, an exchange of heartbeats after the last one's end.
    #[must_use]
    pub fn bookkeeping(&self) -> Bookkeeping {
        Bookkeeping {
            shown: self.shared.board.open().len(),
            addressed: self.shared.directory.len(),
            legs: self.shared.fabric.open_legs(),
            timers: self.shared.watch.armed(),
            promises: self
                .desk
                .read()
                .workers
                .iter()
                .map(|worker| worker.attempts)
                .sum(),
            waiting: self.waiting(),
        }
    }

    /// Makes so many of the next owners of requests panic as they are born, and so many of the next heirs right after, for a test.
    #[cfg(feature = "faults")]
    pub fn doom(&self, at_birth: u32, after_birth: u32) {
        self.shared.doom.set(at_birth, after_birth);
    }

    /// Ends every room that is open, because the process is about to end.
    pub fn end_all(&self) {
        self.shared.end_all();
    }

    /// Takes no more jobs; those open go on.
    pub fn close(&self) {
        // A supervisor that is gone takes none either.
        let _ = self.supervisor.cast(SupervisorMessage::Close);
    }
}
