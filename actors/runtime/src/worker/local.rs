//! What the rest of the program can ask of the workers of its own node.

use std::sync::{Arc, Mutex, PoisonError};

use observe::StayHistory;
use ractor::ActorRef;
use room::{NodeId, RoomId, Span};
use wire::{Order, Role, WorkerStats};

use super::board::StayBoard;
use crate::pool::{PoolMessage, pass};

/// The workers of a node. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct LocalWorkers(Arc<Mutex<Vec<LocalWorker>>>);

/// A worker as it sees itself, over all its incarnations. Cheap to clone.
#[derive(Clone, Debug)]
pub struct LocalWorker {
    name: String,
    board: Arc<StayBoard>,
    pool: ActorRef<PoolMessage>,
}

/// What a worker last said of itself.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Its incarnation.
    pub node: NodeId,
    /// What it does.
    pub role: Role,
    /// Gateways that it is linked with.
    pub gateways: usize,
    /// For how long its engine was in a step; zero between two.
    pub step_lasts: Span,
    /// What it tells them with every heartbeat.
    pub stats: WorkerStats,
}

impl LocalWorkers {
    pub(crate) fn add(&self, name: String, board: Arc<StayBoard>, pool: ActorRef<PoolMessage>) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(LocalWorker { name, board, pool });
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> Vec<LocalWorker> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl LocalWorker {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether an incarnation of it is there: its model is loaded, and it dials its gateways.
    #[must_use]
    pub fn is_built(&self) -> bool {
        self.board.is_built()
    }

    /// Has it do what an operator wants, and says so to all its gateways. A change of its role has only begun when this returns.
    ///
    /// # Errors
    /// Why it does not.
    pub async fn order(&self, order: Order) -> Result<(), String> {
        pass(&self.pool, order).await
    }

    /// Whether an operator wants it to take no rooms.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.board.is_drained()
    }

    /// What it last said of itself; none before its first heartbeat, and none while no incarnation of it runs.
    #[must_use]
    pub fn figures(&self) -> Option<Figures> {
        self.board.figures()
    }

    /// Messages that wait for its actor.
    #[must_use]
    pub fn mailbox(&self) -> usize {
        self.board.mailbox()
    }

    /// The stays that are there, by their attempts.
    #[must_use]
    pub fn stays(&self) -> Vec<StayHistory> {
        self.board.open()
    }

    /// Those that ended lately, oldest first; bounded.
    #[must_use]
    pub fn stays_ended(&self) -> Vec<Arc<StayHistory>> {
        self.board.lately_ended()
    }

    /// All that is known here of a room: its attempts, oldest first.
    #[must_use]
    pub fn find(&self, room: RoomId) -> Vec<Arc<StayHistory>> {
        let is_of = |history: &StayHistory| history.facts().attempt.room == room;
        let ended = self.stays_ended().into_iter().filter(|history| is_of(history));
        let open = self.stays().into_iter().filter(is_of).map(Arc::new);
        ended.chain(open).collect()
    }
}
