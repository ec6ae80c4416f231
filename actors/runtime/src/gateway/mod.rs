//! The gateway: owns every request it accepted.
//!
//! ```text
//! gateway ── request supervisor ── request (one actor each, owns its rooms)
//!        └── placement
//! ```
//!
//! Shared by all of them, each under its own short lock: the [directory] (who owns which room), the [fabric] (the workers' links and what
//! each may hold), the [watch] (the timers) and the [board] (what people see). What happens is told through [telling].

mod board;
mod directory;
mod estate;
mod fabric;
mod handle;
mod job;
mod links;
mod opening;
mod orders;
mod peers;
mod placement;
mod request;
mod shared;
mod supervisor;
mod telling;
mod watch;

use std::sync::Arc;

use mesh::{GatewayNode, Listener};
use observe::Recorder;
use quinn::Endpoint;
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use room::{DeskLimits, Limits, NodeId, Span};

pub use board::{Counts, Find, RoomView};
pub use handle::{Answer, Bookkeeping, GatewayHandle, Refused, WorkerState};
pub use job::{Job, Preparation};
pub use orders::OrderError;
pub use peers::{Layout, Peer};
#[cfg(feature = "faults")]
pub use request::Poison;

use crate::clock::Clock;
use crate::node::StartError;
use directory::Directory;
use fabric::Fabric;
use links::Links;
use peers::LinkBoard;
use placement::{DeskBoard, Placement, PlacementArguments, PlacementMessage};
use shared::Shared;
use supervisor::{Supervisor, SupervisorArguments, SupervisorMessage};
use watch::Watch;

/// What a gateway is started with.
pub struct GatewaySpec {
    /// Its name, for people.
    pub name: String,
    /// Its incarnation: new at every start of the process.
    pub node: NodeId,
    /// The model it serves; workers with another are refused.
    pub model: String,
    /// Where workers dial.
    pub endpoint: Endpoint,
    /// Times and limits of the links.
    pub mesh: mesh::Config,
    /// Deadlines and bounds of rooms.
    pub limits: Limits,
    /// Bounds of the queue.
    pub desk: DeskLimits,
    /// Requests that may be open at once.
    pub max_requests: usize,
    /// How long a request's actor may take to answer its timeout message before it is killed.
    pub actor_grace: Span,
}

/// What the gateway's actor is told.
pub(crate) enum GatewayMessage {
    /// End every room that is still open, and the links to all workers; answered when that is done.
    Leave(RpcReplyPort<()>),
    /// Answered by the last of the gateway's actors that the question goes through.
    Ping(RpcReplyPort<()>),
}

/// The gateway's actor: owns the listener, and ends with either of its children.
struct Gateway;

struct GatewayState {
    shared: Arc<Shared>,
    supervisor: ActorRef<SupervisorMessage>,
    /// Dropped with the state: every link ends, and every worker drops this gateway's rooms. None once it has left them in order.
    listener: Option<Listener>,
}

impl Actor for Gateway {
    type Msg = GatewayMessage;
    type State = GatewayState;
    type Arguments = GatewayState;

    async fn pre_start(
        &self,
        _: ActorRef<GatewayMessage>,
        state: GatewayState,
    ) -> Result<GatewayState, ActorProcessingErr> {
        Ok(state)
    }

    async fn handle(
        &self,
        _: ActorRef<GatewayMessage>,
        message: GatewayMessage,
        state: &mut GatewayState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            GatewayMessage::Leave(reply) => state.leave(reply).await,
            // One that is gone takes the gateway with it.
            GatewayMessage::Ping(reply) => state
                .supervisor
                .cast(SupervisorMessage::Ping(reply))
                .unwrap_or_default(),
        }
        Ok(())
    }

    /// A desk or a supervisor that fails has lost what it knew. Nothing is patched: the gateway ends, its links with it, and with them
    /// every lease.
    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<GatewayMessage>,
        event: SupervisionEvent,
        _: &mut GatewayState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorTerminated(_, _, why) => Err(why
                .unwrap_or_else(|| "a part of the gateway stopped".to_owned())
                .into()),
            SupervisionEvent::ActorFailed(_, why) => Err(why),
            _ => Ok(()),
        }
    }
}

impl GatewayState {
    /// The last thing it does: that nothing else is handled meanwhile is no loss. The mesh bounds it.
    async fn leave(&mut self, reply: RpcReplyPort<()>) {
        // A supervisor that is gone takes no jobs either.
        let _ = self.supervisor.cast(SupervisorMessage::Close);
        self.shared.end_all();
        self.shared.fabric.goodbye("the gateway stops");
        if let Some(listener) = self.listener.take() {
            listener.stop().await;
        }
        // Nobody waits any more if this fails.
        let _ = reply.send(());
    }
}

/// Starts a gateway beneath `root`. Waits for nothing but its actors' `pre_start`, which wait for nothing.
pub(crate) async fn start(
    spec: GatewaySpec,
    clock: Clock,
    recorder: Recorder,
    root: &ActorCell,
) -> Result<(GatewayHandle, ActorRef<GatewayMessage>), StartError> {
    let directory = Arc::new(Directory::new(recorder.clone(), clock));
    let fabric = Arc::new(Fabric::new(spec.node, Arc::clone(&directory)));
    let desk = Arc::new(DeskBoard::default());
    let arguments = PlacementArguments {
        clock,
        limits: spec.desk,
        directory: Arc::clone(&directory),
        board: Arc::clone(&desk),
    };
    let placement: ActorRef<PlacementMessage> = spawned(Actor::spawn(None, Placement, arguments).await)?;
    let shared = Arc::new(Shared {
        clock,
        limits: spec.limits,
        directory,
        fabric,
        watch: Watch::new(spec.actor_grace),
        board: Arc::default(),
        recorder,
        model: spec.model.as_str().into(),
        placement: placement.clone(),
        #[cfg(feature = "faults")]
        doom: request::Doom::default(),
    });
    let arguments = SupervisorArguments {
        shared: Arc::clone(&shared),
        max_requests: spec.max_requests,
    };
    let supervisor: ActorRef<SupervisorMessage> = spawned(Actor::spawn(None, Supervisor, arguments).await)?;
    let links = Arc::new(LinkBoard::default());
    let connected = Links {
        model: spec.model,
        board: Arc::clone(&links),
        shared: Arc::clone(&shared),
    };
    let node = GatewayNode {
        name: spec.name,
        epoch: spec.node.0,
    };
    let listener = Listener::start(spec.endpoint, node, Arc::new(connected), spec.mesh);
    let figures = listener.figures();
    let state = GatewayState {
        shared: Arc::clone(&shared),
        supervisor: supervisor.clone(),
        listener: Some(listener),
    };
    let gateway = spawned(Actor::spawn_linked(None, Gateway, state, root.clone()).await)?;
    placement.link(gateway.get_cell());
    supervisor.link(gateway.get_cell());
    let handle = GatewayHandle {
        shared,
        desk,
        links,
        listener: figures,
        supervisor,
    };
    Ok((handle, gateway))
}

fn spawned<M, T>(spawned: Result<(ActorRef<M>, T), ractor::SpawnErr>) -> Result<ActorRef<M>, StartError> {
    spawned
        .map(|(actor, _)| actor)
        .map_err(|why| StartError(why.to_string()))
}
