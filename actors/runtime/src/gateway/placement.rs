//! The desk's actor: hears of workers and of rooms that want credit, and delivers the desk's verdicts.

use std::sync::{Arc, Mutex, PoisonError};

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use room::{
    Absence, Advert, Attempt, Bid, Credit, Desk, DeskLimits, Input, NodeId, Verdict, WorkerSpec, WorkerView,
};

use super::directory::{Directory, Mail};
use crate::alarm::Alarm;
use crate::clock::Clock;

/// What the desk is told.
#[derive(Debug)]
pub(crate) enum PlacementMessage {
    /// A room asks for credit.
    Enqueue(Bid),
    /// It does not want any more.
    Leave(Attempt),
    /// Credit comes back.
    GiveBack {
        attempt: Attempt,
        worker: NodeId,
        credit: Credit,
    },
    /// A worker's link is up.
    WorkerUp(NodeId, WorkerSpec),
    /// A worker's link is over.
    WorkerDown(NodeId),
    /// What a worker could grant.
    Advertise(NodeId, Advert),
    /// Nothing changed but the time.
    Tick,
    /// Answered when it is come to.
    Ping(RpcReplyPort<()>),
}

/// What anyone may read of the desk: written after every message.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeskView {
    pub(crate) workers: Vec<WorkerView>,
    pub(crate) waiting: usize,
    pub(crate) absence: Option<Absence>,
}

/// The desk's last state, shared.
#[derive(Debug, Default)]
pub(crate) struct DeskBoard(Mutex<DeskView>);

impl DeskBoard {
    pub(crate) fn read(&self) -> DeskView {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn write(&self, view: DeskView) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = view;
    }
}

/// What the actor is started with.
pub(crate) struct PlacementArguments {
    pub(crate) clock: Clock,
    pub(crate) limits: DeskLimits,
    pub(crate) directory: Arc<Directory>,
    pub(crate) board: Arc<DeskBoard>,
}

/// What it owns.
pub(crate) struct PlacementState {
    clock: Clock,
    desk: Desk,
    directory: Arc<Directory>,
    board: Arc<DeskBoard>,
    alarm: Alarm,
}

/// The actor.
pub(crate) struct Placement;

impl Actor for Placement {
    type Msg = PlacementMessage;
    type State = PlacementState;
    type Arguments = PlacementArguments;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        arguments: PlacementArguments,
    ) -> Result<PlacementState, ActorProcessingErr> {
        let PlacementArguments {
            clock,
            limits,
            directory,
            board,
        } = arguments;
        let alarm = Alarm::spawn(clock, move || {
            // An actor that is gone needs no ticks.
            let _ = myself.cast(PlacementMessage::Tick);
        });
        let desk = Desk::new(limits, clock.now());
        Ok(PlacementState {
            clock,
            desk,
            directory,
            board,
            alarm,
        })
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        message: PlacementMessage,
        state: &mut PlacementState,
    ) -> Result<(), ActorProcessingErr> {
        let now = state.clock.now();
        let desk = &mut state.desk;
        match message {
            PlacementMessage::Enqueue(bid) => {
                let attempt = bid.attempt;
                if let Err(failure) = desk.enqueue(bid) {
                    state.tell(attempt, Verdict::Refused { attempt, failure });
                }
            }
            PlacementMessage::Leave(attempt) => desk.leave(attempt),
            PlacementMessage::GiveBack {
                attempt,
                worker,
                credit,
            } => desk.give_back(attempt, worker, credit),
            PlacementMessage::WorkerUp(node, spec) => desk.worker_up(now, node, spec),
            PlacementMessage::WorkerDown(node) => desk.worker_down(now, node),
            PlacementMessage::Advertise(node, advert) => desk.advertise(now, node, advert),
            PlacementMessage::Tick => {}
            // Nobody waits any more if this fails.
            PlacementMessage::Ping(reply) => reply.send(()).unwrap_or_default(),
        }
        while let Some(verdict) = state.desk.poll_verdict(now) {
            let (Verdict::Granted { attempt, .. } | Verdict::Refused { attempt, .. }) = verdict;
            state.tell(attempt, verdict);
        }
        state.alarm.set(state.desk.poll_timeout());
        state.board.write(DeskView {
            workers: state.desk.workers(),
            waiting: state.desk.waiting(),
            absence: state.desk.absence(),
        });
        Ok(())
    }
}

impl PlacementState {
    /// A room that has ended meanwhile has told us, or is about to, that it left.
    fn tell(&mut self, attempt: Attempt, verdict: Verdict) {
        let generation = attempt.generation;
        let input = match verdict {
            Verdict::Granted { route, .. } => Input::Admitted { generation, route },
            Verdict::Refused { failure, .. } => Input::NotAdmitted { generation, failure },
        };
        if !self.directory.deliver(attempt.room.seq, Mail::Input(input)) {
            self.desk.leave(attempt);
        }
    }
}
