//! The node: the root of a process's actors, with at most one gateway and any number of pools beneath it.
//!
//! A gateway's failure, or a pool that gave up, ends the node, and with it the process: whoever runs the process starts it anew, under
//! new names, and every peer's lease on it has ended by then.

use std::sync::Arc;
use std::time::Duration;

use observe::{NodeEvent, NodeWhat, Recorder};
use ractor::concurrency::oneshot;
use ractor::{Actor, ActorProcessingErr, ActorRef, Message, RpcReplyPort, SupervisionEvent};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use wire::Role;

use crate::clock::Clock;
use crate::gateway::{self, GatewayHandle, GatewayMessage, GatewaySpec};
use crate::pool::{BUILD_PATIENCE, BuildWorker, Pool, PoolArguments, PoolMessage};
use crate::vitals::Vitals;
use crate::worker::{LocalWorkers, StayBoard};

/// How often a draining worker is asked what it has left.
const DRAIN_POLL: Duration = Duration::from_millis(50);

/// How long a worker may take to say what it has left.
const DRAIN_PATIENCE: Duration = Duration::from_secs(1);

/// How long a gateway or a worker may take to end its links: longer than the mesh's own bounds on that.
const LEAVE_PATIENCE: Duration = Duration::from_secs(6);

struct Root;

/// What the root tells of its end: whoever waits for it, and whoever listens.
struct Ending {
    ended: watch::Sender<Option<String>>,
    recorder: Recorder,
    clock: Clock,
}

impl Actor for Root {
    type Msg = ();
    type State = Ending;
    type Arguments = Ending;

    async fn pre_start(
        &self,
        _: ActorRef<Self::Msg>,
        ending: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(ending)
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<Self::Msg>,
        event: SupervisionEvent,
        ending: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let why = match event {
            SupervisionEvent::ActorTerminated(_, _, why) => {
                why.unwrap_or_else(|| "a part of the node stopped".to_owned())
            }
            SupervisionEvent::ActorFailed(_, why) => why.to_string(),
            _ => return Ok(()),
        };
        ending.recorder.node(&NodeEvent {
            at: ending.clock.now(),
            what: NodeWhat::NodeEnds {
                why: why.as_str().into(),
            },
        });
        ending.ended.send_replace(Some(why.clone()));
        myself.stop(Some(why));
        Ok(())
    }
}

/// A running node. Dropping it ends everything beneath it at once; [`Node::leave`] ends the links in order before.
pub struct Node {
    root: ActorRef<()>,
    clock: Clock,
    recorder: Recorder,
    ended: watch::Receiver<Option<String>>,
    gateways: Vec<ActorRef<GatewayMessage>>,
    pools: Vec<ActorRef<PoolMessage>>,
    workers: LocalWorkers,
    vitals: Vitals,
}

/// Why a part of the node could not be started.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(pub(crate) String);

impl Node {
    /// An empty node that tells its log what happens, and nobody else.
    ///
    /// # Errors
    /// If its root actor cannot be started.
    pub async fn start() -> Result<Self, StartError> {
        Self::start_with(Clock::start(), Recorder::default()).await
    }

    /// An empty node with this clock, whose events go to this recorder.
    ///
    /// # Errors
    /// If its root actor cannot be started.
    pub async fn start_with(clock: Clock, recorder: Recorder) -> Result<Self, StartError> {
        let (sender, ended) = watch::channel(None);
        let ending = Ending {
            ended: sender,
            recorder: recorder.clone(),
            clock,
        };
        let (root, _) = Actor::spawn(None, Root, ending)
            .await
            .map_err(|why| StartError(why.to_string()))?;
        Ok(Self {
            root,
            clock,
            recorder,
            ended,
            gateways: Vec::new(),
            pools: Vec::new(),
            workers: LocalWorkers::default(),
            vitals: Vitals::default(),
        })
    }

    /// Starts the gateway.
    ///
    /// # Errors
    /// If it cannot listen, or its actors cannot be started.
    pub async fn gateway(&mut self, spec: GatewaySpec) -> Result<GatewayHandle, StartError> {
        let (handle, gateway) =
            gateway::start(spec, self.clock, self.recorder.clone(), &self.root.get_cell()).await?;
        let asked = gateway.clone();
        let ask = move |reply| asked.cast(GatewayMessage::Ping(reply)).unwrap_or_default();
        self.vitals.add("the gateway".to_owned(), Arc::new(ask));
        self.gateways.push(gateway);
        Ok(handle)
    }

    /// Starts a pool with one worker, which has this role at first. Returns at once; the worker dials its gateways when it is built.
    ///
    /// # Errors
    /// If the pool's actor cannot be started.
    pub async fn pool(&mut self, name: String, role: Role, build: BuildWorker) -> Result<(), StartError> {
        let board = Arc::<StayBoard>::default();
        let arguments = PoolArguments {
            name: name.clone(),
            role,
            clock: self.clock,
            recorder: self.recorder.clone(),
            board: Arc::clone(&board),
            build,
            patience: BUILD_PATIENCE,
        };
        let spawned = Actor::spawn_linked(None, Pool, arguments, self.root.get_cell()).await;
        let (pool, _) = spawned.map_err(|why| StartError(why.to_string()))?;
        self.workers.add(name.clone(), board, pool.clone());
        let asked = pool.clone();
        let ask = move |reply| asked.cast(PoolMessage::Ping(reply)).unwrap_or_default();
        self.vitals.add(name, Arc::new(ask));
        self.pools.push(pool);
        Ok(())
    }

    /// Tells every worker to take no new rooms, and waits until none of them has any left, for `grace` at most. Returns whether that
    /// was so.
    pub async fn drain_within(&self, grace: Duration) -> bool {
        let drained = async {
            while self.rooms_left().await > 0 {
                sleep(DRAIN_POLL).await;
            }
        };
        timeout(grace, drained).await.is_ok()
    }

    /// Ends all links in order, so that peers know at once that this node is gone: workers give back what they hold for its gateway, and
    /// gateways send nothing more to its workers. To be called when clients have had their time, and after [`Node::drain_within`]: what
    /// is left is ended or handed over by this, and nothing new comes any more.
    pub async fn leave(&self) {
        // One that is gone, or does not answer, is found by its silence.
        tokio::join!(
            ask(&self.pools, PoolMessage::Leave, LEAVE_PATIENCE),
            ask(&self.gateways, GatewayMessage::Leave, LEAVE_PATIENCE),
        );
    }

    /// Tells every worker to drain, and counts what they have left.
    async fn rooms_left(&self) -> usize {
        let answers = ask(&self.pools, PoolMessage::Stop, DRAIN_PATIENCE).await;
        let left = answers.into_iter().map(|answer| match answer {
            Ok(rooms) => rooms,
            // It is busy: asked again.
            Err(Unanswered::Late) => 1,
            // It is gone, or its worker is, and the rooms with it.
            Err(Unanswered::Gone) => 0,
        });
        left.sum()
    }

    /// Waits until the node has ended by itself, and says why. No deadline: to be raced against whatever else ends the process.
    pub async fn ended(&mut self) -> String {
        match self.ended.wait_for(Option::is_some).await {
            Ok(why) => why.clone().unwrap_or_default(),
            Err(_) => "the node's root is gone".to_owned(),
        }
    }

    /// The workers of this node, as they see themselves; those that are started later too.
    #[must_use]
    pub fn workers(&self) -> LocalWorkers {
        self.workers.clone()
    }

    /// Whether the actors of this node go on; those that are started later too.
    #[must_use]
    pub fn vitals(&self) -> Vitals {
        self.vitals.clone()
    }

    /// The node's clock.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.root.stop(None);
    }
}

/// Why no answer came.
enum Unanswered {
    /// Not in time.
    Late,
    /// Nobody is left who could answer.
    Gone,
}

/// Asks all at once, and waits for their answers for `patience` in all.
async fn ask<M: Message, T>(
    actors: &[ActorRef<M>],
    message: impl Fn(RpcReplyPort<T>) -> M,
    patience: Duration,
) -> Vec<Result<T, Unanswered>> {
    let until = Instant::now() + patience;
    let asked: Vec<_> = actors
        .iter()
        .map(|actor| {
            let (reply, answer) = oneshot();
            // An actor that is gone drops the port, and that is an answer.
            let _ = actor.cast(message(RpcReplyPort::from(reply)));
            answer
        })
        .collect();
    let mut answers = Vec::new();
    for answer in asked {
        answers.push(match timeout_at(until, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(Unanswered::Gone),
            Err(_) => Err(Unanswered::Late),
        });
    }
    answers
}
