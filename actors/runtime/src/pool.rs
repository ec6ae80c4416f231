//! The pool: keeps one worker alive. A worker that ends, for whatever reason, is a new incarnation with a new name and an empty pool
//! when it comes back; nothing of the old one is believed. It is restarted a bounded number of times.
//!
//! What operators want of the worker is kept here, where it outlives an incarnation: whether it is drained, and its role. See [`orders`].

mod orders;

use std::sync::Arc;
use std::time::Duration;

use observe::{NodeEvent, NodeWhat, Recorder, WorkerEnd};
use orders::Change;
pub(crate) use orders::{Asker, pass};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use room::{NodeId, Restart, Restarts, Span};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use wire::{Order, Role};

use crate::beside::blocking;
use crate::clock::Clock;
use crate::convert;
use crate::worker::{Because, StayBoard, Worker, WorkerArguments, WorkerMessage, WorkerSpec};

/// Makes a worker anew: its backend, its transfer, its dialer.
pub trait Recipe: Send + Sync {
    /// Whether it can be made in this role: asked before a worker that runs is drained for it. May block for a moment.
    ///
    /// # Errors
    /// Why not.
    fn allows(&self, role: Role) -> Result<(), String>;

    /// Makes it. Runs at start, on every restart and for another role, where it may block, and may take as long as loading a model takes.
    ///
    /// # Errors
    /// Why it cannot be made, maybe only this time.
    fn build(&self, role: Role) -> Result<WorkerSpec, String>;
}

/// A recipe for any role.
impl<F: Fn(Role) -> Result<WorkerSpec, String> + Send + Sync> Recipe for F {
    fn allows(&self, _: Role) -> Result<(), String> {
        Ok(())
    }

    fn build(&self, role: Role) -> Result<WorkerSpec, String> {
        self(role)
    }
}

/// A recipe, shared.
pub type BuildWorker = Arc<dyn Recipe>;

/// Longer than any model takes to load. Whoever is not done by then hangs, and will the next time: the node ends.
pub(crate) const BUILD_PATIENCE: Duration = Duration::from_secs(1_800);

/// What a pool is told.
pub(crate) enum PoolMessage {
    /// Start the worker (again).
    Start,
    /// It runs, or could not be built.
    Built(Result<(ActorRef<WorkerMessage>, NodeId), Unbuilt>),
    /// Answered by the worker, if there is one.
    Ping(RpcReplyPort<()>),
    /// The process stops: take no new rooms; answered with how many are left.
    Stop(RpcReplyPort<usize>),
    /// End the links to all gateways, and start no worker any more; answered when that is done.
    Leave(RpcReplyPort<()>),
    /// What an operator wants.
    Order(Order, Asker),
    /// Whether the role that is wanted can be had.
    Allowed(Result<(), String>, Asker),
    /// Nothing is left at the worker that is to change its role, or its time is over.
    Emptied,
}

/// Why there is no worker.
pub(crate) enum Unbuilt {
    /// It failed, as it may not the next time.
    Failed(String),
    /// Its time is over.
    Hangs,
}

/// What a pool is started with.
pub(crate) struct PoolArguments {
    pub(crate) name: String,
    /// What the worker does at first.
    pub(crate) role: Role,
    pub(crate) clock: Clock,
    pub(crate) recorder: Recorder,
    /// The stays of all incarnations of the worker.
    pub(crate) board: Arc<StayBoard>,
    pub(crate) build: BuildWorker,
    /// How long a build may take.
    pub(crate) patience: Duration,
}

/// What it owns.
pub(crate) struct PoolState {
    name: String,
    clock: Clock,
    recorder: Recorder,
    board: Arc<StayBoard>,
    build: BuildWorker,
    patience: Duration,
    restarts: Restarts,
    building: Option<Task>,
    worker: Option<ActorRef<WorkerMessage>>,
    /// What the worker does, or will when it is built.
    role: Role,
    /// An operator wants it to take no rooms.
    drained: bool,
    /// It is to have another role.
    change: Option<Change>,
    /// The process stops.
    stopping: bool,
    leaving: bool,
}

/// A task that works for the pool; it ends with this. What blocks in it goes on to its end, and nothing comes of it.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The actor.
pub(crate) struct Pool;

impl Actor for Pool {
    type Msg = PoolMessage;
    type State = PoolState;
    type Arguments = PoolArguments;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        arguments: PoolArguments,
    ) -> Result<PoolState, ActorProcessingErr> {
        let PoolArguments {
            name,
            role,
            clock,
            recorder,
            board,
            build,
            patience,
        } = arguments;
        myself.cast(PoolMessage::Start)?;
        let restarts = Restarts::new(8, Span::from_millis(60_000), Span::from_millis(250));
        Ok(PoolState {
            name,
            clock,
            recorder,
            board,
            build,
            patience,
            restarts,
            building: None,
            worker: None,
            role,
            drained: false,
            change: None,
            stopping: false,
            leaving: false,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: PoolMessage,
        state: &mut PoolState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            PoolMessage::Start => state.start(&myself),
            PoolMessage::Built(built) => return state.built(&myself, built),
            PoolMessage::Ping(reply) => match &state.worker {
                Some(worker) => worker.cast(WorkerMessage::Ping(reply)).unwrap_or_default(),
                None => reply.send(()).unwrap_or_default(),
            },
            PoolMessage::Stop(reply) => state.stop(reply),
            PoolMessage::Order(order, asker) => state.order(&myself, order, asker),
            PoolMessage::Allowed(allowed, asker) => state.allowed(&myself, allowed, asker),
            PoolMessage::Emptied => state.emptied(),
            PoolMessage::Leave(reply) => {
                state.leaving = true;
                state.change = None;
                state.building = None;
                match &state.worker {
                    Some(worker) => worker.cast(WorkerMessage::Leave(reply)).unwrap_or_default(),
                    None => reply.send(()).unwrap_or_default(),
                }
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<Self::Msg>,
        event: SupervisionEvent,
        state: &mut PoolState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorTerminated(_, _, why) => {
                state.failed(&myself, &why.unwrap_or_else(|| "it stopped".to_owned()))
            }
            SupervisionEvent::ActorFailed(_, why) => state.failed(&myself, &why.to_string()),
            _ => Ok(()),
        }
    }
}

/// Builds a worker and starts it beneath its pool. Beside the pool, which is there for whatever else comes in the meantime.
async fn build(
    (build, role, drains): (BuildWorker, Role, Option<Because>),
    (recorder, board): (Recorder, Arc<StayBoard>),
    patience: Duration,
    pool: ActorRef<PoolMessage>,
) {
    let started = async {
        let spec = match blocking(move || build.build(role)).await {
            Ok(built) => built?,
            Err(panic) => return Err(format!("it cannot be built: {panic}")),
        };
        let node = spec.node;
        let arguments = WorkerArguments {
            spec,
            recorder,
            board,
            drains,
            pool: pool.clone(),
        };
        let spawned = Actor::spawn_linked(None, Worker, arguments, pool.get_cell()).await;
        spawned
            .map(|(worker, _)| (worker, node))
            .map_err(|why| why.to_string())
    };
    let built = match timeout(patience, started).await {
        Ok(started) => started.map_err(Unbuilt::Failed),
        Err(_) => Err(Unbuilt::Hangs),
    };
    let worker = built.as_ref().ok().cloned();
    if pool.cast(PoolMessage::Built(built)).is_err()
        && let Some((worker, _)) = worker
    {
        worker.stop(Some("its pool is gone".to_owned()));
    }
}

impl PoolState {
    fn start(&mut self, myself: &ActorRef<PoolMessage>) {
        if !self.leaving {
            let tells = (self.recorder.clone(), Arc::clone(&self.board));
            let recipe = (Arc::clone(&self.build), self.role, self.takes_nothing());
            let building = build(recipe, tells, self.patience, myself.clone());
            self.building = Some(Task(tokio::spawn(building)));
        }
    }

    fn built(
        &mut self,
        myself: &ActorRef<PoolMessage>,
        built: Result<(ActorRef<WorkerMessage>, NodeId), Unbuilt>,
    ) -> Result<(), ActorProcessingErr> {
        self.building = None;
        match built {
            Ok((worker, _)) if self.leaving => worker.stop(Some("its pool leaves".to_owned())),
            Ok((worker, node)) => {
                self.worker = Some(worker);
                // An operator may have said so while it was built.
                self.tell_whether();
                self.board.begins();
                self.tell(NodeWhat::WorkerStarted {
                    name: self.name.as_str().into(),
                    worker: node,
                });
            }
            Err(Unbuilt::Failed(why)) => return self.failed(myself, &why),
            Err(Unbuilt::Hangs) => {
                let waited_s = self.patience.as_secs();
                let waited = convert::span(self.patience);
                self.tell_end("its build hangs", WorkerEnd::Hangs { waited });
                return Err(format!("{}: not built within {waited_s} s", self.name).into());
            }
        }
        Ok(())
    }

    fn failed(&mut self, myself: &ActorRef<PoolMessage>, why: &str) -> Result<(), ActorProcessingErr> {
        self.worker = None;
        self.board.over();
        if self.leaving || self.changes(myself, why) {
            return Ok(());
        }
        match self.restarts.on_failure(self.clock.now()) {
            Restart::After(pause) => {
                self.tell_end(why, WorkerEnd::Restarts { after: pause });
                // Its task ends with the pause; a pool that is gone by then needs no start.
                drop(myself.send_after(convert::duration(pause), || PoolMessage::Start));
                Ok(())
            }
            Restart::GiveUp => {
                self.tell_end(why, WorkerEnd::GivenUp);
                Err(format!("{}: {why}", self.name).into())
            }
        }
    }
}

impl PoolState {
    fn tell(&self, what: NodeWhat) {
        let at = self.clock.now();
        self.recorder.node(&NodeEvent { at, what });
    }

    fn tell_end(&self, why: &str, then: WorkerEnd) {
        self.tell(NodeWhat::WorkerEnded {
            name: self.name.as_str().into(),
            why: why.into(),
            then,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc::sync_channel;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use ractor::Actor;
    use tokio::time::timeout;
    use wire::Role;

    use super::{Pool, PoolArguments};
    use crate::clock::Clock;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test(flavor = "multi_thread")]
    async fn a_build_that_hangs_ends_the_pool_and_is_not_tried_again() {
        let builds = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&builds);
        let (release, released) = sync_channel::<()>(1);
        let released = Mutex::new(released);
        let build = move |_: Role| {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = released.lock().unwrap().recv_timeout(LONG);
            Err("a test's refusal".to_owned())
        };
        let arguments = PoolArguments {
            name: "w".to_owned(),
            role: Role::Mixed,
            clock: Clock::start(),
            recorder: observe::Recorder::default(),
            board: Arc::default(),
            build: Arc::new(build),
            patience: Duration::from_millis(20),
        };
        let (_pool, ended) = Actor::spawn(None, Pool, arguments).await.unwrap();
        timeout(LONG, ended).await.unwrap().unwrap();
        assert_eq!(builds.load(Ordering::SeqCst), 1);
        drop(release);
    }
}
