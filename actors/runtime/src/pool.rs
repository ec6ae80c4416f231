//! The pool: keeps one worker alive. A worker that ends, for whatever reason, is a new incarnation with a new name and an empty pool
//! when it comes back; nothing of the old one is believed. It is restarted a bounded number of times.

use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use room::{Restart, Restarts, Span};
use tracing::{error, warn};

use crate::clock::Clock;
use crate::worker::{Worker, WorkerMessage, WorkerSpec};

/// Makes a worker anew: its backend, its transfer, its dialer. Runs on the pool's actor at start and on every restart, and may take as
/// long as loading a model takes.
pub type BuildWorker = Arc<dyn Fn() -> Result<WorkerSpec, String> + Send + Sync>;

/// What a pool is told.
pub(crate) enum PoolMessage {
    /// Start the worker (again).
    Start,
    /// Take no new rooms; answered with how many are left.
    Drain(RpcReplyPort<usize>),
    /// End the links to all gateways; answered when that is done.
    Leave(RpcReplyPort<()>),
}

/// What a pool is started with.
pub(crate) struct PoolArguments {
    pub(crate) name: String,
    pub(crate) clock: Clock,
    pub(crate) build: BuildWorker,
}

/// What it owns.
pub(crate) struct PoolState {
    name: String,
    clock: Clock,
    build: BuildWorker,
    restarts: Restarts,
    worker: Option<ActorRef<WorkerMessage>>,
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
        let PoolArguments { name, clock, build } = arguments;
        myself.cast(PoolMessage::Start)?;
        let restarts = Restarts::new(8, Span::from_millis(60_000), Span::from_millis(250));
        Ok(PoolState {
            name,
            clock,
            build,
            restarts,
            worker: None,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: PoolMessage,
        state: &mut PoolState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            PoolMessage::Start => state.start(&myself).await?,
            PoolMessage::Drain(reply) => match &state.worker {
                // A worker that is gone has no rooms: its reply port is dropped, and the caller asks again.
                Some(worker) => worker.cast(WorkerMessage::Drain(reply)).unwrap_or_default(),
                None => reply.send(0).unwrap_or_default(),
            },
            PoolMessage::Leave(reply) => match &state.worker {
                Some(worker) => worker.cast(WorkerMessage::Leave(reply)).unwrap_or_default(),
                None => reply.send(()).unwrap_or_default(),
            },
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

impl PoolState {
    async fn start(&mut self, myself: &ActorRef<PoolMessage>) -> Result<(), ActorProcessingErr> {
        let build = Arc::clone(&self.build);
        // No deadline: loading a model takes what it takes, and it reads only local files.
        let built = match tokio::task::spawn_blocking(move || build()).await {
            Ok(built) => built,
            Err(panic) => Err(format!("it cannot be built: {panic}")),
        };
        let spawned = match built {
            Ok(spec) => {
                let spawned = Actor::spawn_linked(None, Worker, spec, myself.get_cell()).await;
                spawned.map(|(worker, _)| worker).map_err(|why| why.to_string())
            }
            Err(why) => Err(why),
        };
        match spawned {
            Ok(worker) => {
                self.worker = Some(worker);
                Ok(())
            }
            Err(why) => self.failed(myself, &why),
        }
    }

    fn failed(&mut self, myself: &ActorRef<PoolMessage>, why: &str) -> Result<(), ActorProcessingErr> {
        self.worker = None;
        match self.restarts.on_failure(self.clock.now()) {
            Restart::After(pause) => {
                warn!(
                    worker = self.name,
                    why,
                    pause_ms = pause.as_millis(),
                    "the worker ended; a new one is started"
                );
                // Its task ends with the pause; a pool that is gone by then needs no start.
                drop(myself.send_after(crate::convert::duration(pause), || PoolMessage::Start));
                Ok(())
            }
            Restart::GiveUp => {
                error!(worker = self.name, why, "the worker ends again and again");
                Err(format!("{}: {why}", self.name).into())
            }
        }
    }
}
