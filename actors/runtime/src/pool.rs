//! The pool: keeps one worker alive. A worker that ends, for whatever reason, is a new incarnation with a new name and an empty pool
//! when it comes back; nothing of the old one is believed. It is restarted a bounded number of times.

use std::sync::Arc;
use std::time::Duration;

use observe::{NodeEvent, NodeWhat, Recorder, WorkerEnd};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use room::{NodeId, Restart, Restarts, Span};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::beside::blocking;
use crate::clock::Clock;
use crate::convert;
use crate::worker::{StayBoard, Worker, WorkerArguments, WorkerMessage, WorkerSpec};

/// Makes a worker anew: its backend, its transfer, its dialer. Runs at start and on every restart, where it may block, and may take as
/// long as loading a model takes.
pub type BuildWorker = Arc<dyn Fn() -> Result<WorkerSpec, String> + Send + Sync>;

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
    /// Take no new rooms; answered with how many are left.
    Drain(RpcReplyPort<usize>),
    /// End the links to all gateways, and start no worker any more; answered when that is done.
    Leave(RpcReplyPort<()>),
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
    building: Option<Building>,
    worker: Option<ActorRef<WorkerMessage>>,
    leaving: bool,
}

/// The task that builds a worker; it ends with this. What blocks in it goes on to its end, and nothing comes of it.
struct Building(JoinHandle<()>);

impl Drop for Building {
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
            // A worker that is gone, or not there yet, has no rooms. One that ends now drops the port, which says the same.
            PoolMessage::Drain(reply) => match &state.worker {
                Some(worker) => worker.cast(WorkerMessage::Drain(reply)).unwrap_or_default(),
                None => reply.send(0).unwrap_or_default(),
            },
            PoolMessage::Leave(reply) => {
                state.leaving = true;
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
    build: BuildWorker,
    (recorder, board): (Recorder, Arc<StayBoard>),
    patience: Duration,
    pool: ActorRef<PoolMessage>,
) {
    let started = async {
        let spec = match blocking(move || build()).await {
            Ok(built) => built?,
            Err(panic) => return Err(format!("it cannot be built: {panic}")),
        };
        let node = spec.node;
        let arguments = WorkerArguments {
            spec,
            recorder,
            board,
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
            let building = build(Arc::clone(&self.build), tells, self.patience, myself.clone());
            self.building = Some(Building(tokio::spawn(building)));
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
        if self.leaving {
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

    use super::{Pool, PoolArguments};
    use crate::clock::Clock;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test(flavor = "multi_thread")]
    async fn a_build_that_hangs_ends_the_pool_and_is_not_tried_again() {
        let builds = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&builds);
        let (release, released) = sync_channel::<()>(1);
        let released = Mutex::new(released);
        let build = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = released.lock().unwrap().recv_timeout(LONG);
            Err("a test's refusal".to_owned())
        };
        let arguments = PoolArguments {
            name: "w".to_owned(),
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
