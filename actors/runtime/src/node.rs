//! The node: the root of a process's actors, with at most one gateway and any number of pools beneath it.
//!
//! A gateway's failure, or a pool that gave up, ends the node, and with it the process: whoever runs the process starts it anew, under
//! new names, and every peer's lease on it has ended by then.

use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, RactorErr, SupervisionEvent};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::error;

use crate::clock::Clock;
use crate::gateway::{self, GatewayHandle, GatewaySpec};
use crate::pool::{BuildWorker, Pool, PoolArguments, PoolMessage};

/// How often a draining worker is asked what it has left.
const DRAIN_POLL: Duration = Duration::from_millis(50);

/// How long a worker may take to end its links: longer than the mesh's own bounds on that.
const LEAVE_MS: u64 = 5_000;

struct Root;

impl Actor for Root {
    type Msg = ();
    type State = watch::Sender<Option<String>>;
    type Arguments = watch::Sender<Option<String>>;

    async fn pre_start(
        &self,
        _: ActorRef<Self::Msg>,
        ended: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(ended)
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<Self::Msg>,
        event: SupervisionEvent,
        ended: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let why = match event {
            SupervisionEvent::ActorTerminated(_, _, why) => {
                why.unwrap_or_else(|| "a part of the node stopped".to_owned())
            }
            SupervisionEvent::ActorFailed(_, why) => why.to_string(),
            _ => return Ok(()),
        };
        error!(why, "the node ends");
        ended.send_replace(Some(why.clone()));
        myself.stop(Some(why));
        Ok(())
    }
}

/// A running node.
pub struct Node {
    root: ActorRef<()>,
    clock: Clock,
    ended: watch::Receiver<Option<String>>,
    pools: Vec<ActorRef<PoolMessage>>,
}

/// Why a part of the node could not be started.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(pub(crate) String);

impl Node {
    /// An empty node.
    ///
    /// # Errors
    /// If its root actor cannot be started.
    pub async fn start() -> Result<Self, StartError> {
        let (sender, ended) = watch::channel(None);
        let (root, _) = Actor::spawn(None, Root, sender)
            .await
            .map_err(|why| StartError(why.to_string()))?;
        Ok(Self {
            root,
            clock: Clock::start(),
            ended,
            pools: Vec::new(),
        })
    }

    /// Starts the gateway.
    ///
    /// # Errors
    /// If it cannot listen, or its actors cannot be started.
    pub async fn gateway(&mut self, spec: GatewaySpec) -> Result<GatewayHandle, StartError> {
        gateway::start(spec, self.clock, &self.root.get_cell()).await
    }

    /// Starts a pool with one worker. Returns at once; the worker dials its gateways when it is built.
    ///
    /// # Errors
    /// If the pool's actor cannot be started.
    pub async fn pool(&mut self, name: String, build: BuildWorker) -> Result<(), StartError> {
        let arguments = PoolArguments {
            name,
            clock: self.clock,
            build,
        };
        let spawned = Actor::spawn_linked(None, Pool, arguments, self.root.get_cell()).await;
        let (pool, _) = spawned.map_err(|why| StartError(why.to_string()))?;
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

    /// Ends the links of every worker in order, so that gateways know at once that it is gone. To be called after
    /// [`Node::drain_within`]: what is left is handed over by this, and nothing new comes any more.
    pub async fn leave(&self) {
        for pool in &self.pools {
            // One that is gone, or does not answer, is found by its silence.
            let _ = ractor::call_t!(pool, PoolMessage::Leave, LEAVE_MS);
        }
    }

    /// Tells every worker to drain, and counts what they have left.
    async fn rooms_left(&self) -> usize {
        let mut left = 0;
        for pool in &self.pools {
            left += match ractor::call_t!(pool, PoolMessage::Drain, 1_000) {
                Ok(rooms) => rooms,
                // It is busy with building its worker: asked again.
                Err(RactorErr::Timeout) => 1,
                // It is gone, or its worker is, and the rooms with it.
                Err(_) => 0,
            };
        }
        left
    }

    /// Waits until the node has ended by itself, and says why. To be raced against whatever else ends the process.
    pub async fn ended(&mut self) -> String {
        match self.ended.wait_for(Option::is_some).await {
            Ok(why) => why.clone().unwrap_or_default(),
            Err(_) => "the node's root is gone".to_owned(),
        }
    }

    /// The node's clock.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }
}
