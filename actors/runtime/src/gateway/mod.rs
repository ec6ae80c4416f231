//! The gateway: owns every request it accepted.
//!
//! ```text
//! gateway ── request supervisor ── request (one actor each, owns its rooms)
//!        └── placement
//! ```
//!
//! Shared by all of them, each under its own short lock: the [directory] (who owns which room), the [fabric] (the workers' links and what
//! each may hold), the [watch] (the timers) and the [board] (what people see).

mod board;
mod directory;
mod estate;
mod fabric;
mod handle;
mod job;
mod links;
mod placement;
mod request;
mod shared;
mod supervisor;
mod view;
mod watch;

use std::sync::Arc;

use mesh::{GatewayNode, Listener};
use quinn::Endpoint;
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SupervisionEvent};
use room::{DeskLimits, Limits, NodeId, Span};

pub use board::{Counts, RoomView};
pub use handle::{Answer, Bookkeeping, GatewayHandle, Refused, WorkerState};
pub use job::Job;
pub use links::{Layout, Peer};
#[cfg(feature = "faults")]
pub use request::Poison;
pub use view::{attempt_error, labels};

use crate::clock::Clock;
use crate::node::StartError;
use directory::Directory;
use fabric::Fabric;
use links::{LinkBoard, Links};
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

/// The gateway's actor: owns the listener, and ends with either of its children.
struct Gateway;

struct GatewayState {
    /// Dropped with the state: every link ends, and every worker drops this gateway's rooms.
    _listener: Listener,
}

impl Actor for Gateway {
    type Msg = ();
    type State = GatewayState;
    type Arguments = Listener;

    async fn pre_start(
        &self,
        _: ActorRef<()>,
        listener: Listener,
    ) -> Result<GatewayState, ActorProcessingErr> {
        Ok(GatewayState { _listener: listener })
    }

    /// A desk or a supervisor that fails has lost what it knew. Nothing is patched: the gateway ends, its links with it, and with them
    /// every lease.
    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<()>,
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

/// Starts a gateway beneath `root`.
pub(crate) async fn start(
    spec: GatewaySpec,
    clock: Clock,
    root: &ActorCell,
) -> Result<GatewayHandle, StartError> {
    let directory = Arc::new(Directory::default());
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
        directory: Arc::clone(&directory),
        fabric: Arc::clone(&fabric),
        watch: Watch::new(spec.actor_grace),
        board: Arc::default(),
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
        rooms: Arc::clone(&shared.board),
        directory,
        fabric,
        placement: placement.clone(),
    };
    let node = GatewayNode {
        name: spec.name,
        epoch: spec.node.0,
    };
    let listener = Listener::start(spec.endpoint, node, Arc::new(connected), spec.mesh);
    let gateway = spawned(Actor::spawn_linked(None, Gateway, listener, root.clone()).await)?;
    placement.link(gateway.get_cell());
    supervisor.link(gateway.get_cell());
    Ok(GatewayHandle {
        shared,
        desk,
        links,
        supervisor,
    })
}

fn spawned<M, T>(spawned: Result<(ActorRef<M>, T), ractor::SpawnErr>) -> Result<ActorRef<M>, StartError> {
    spawned
        .map(|(actor, _)| actor)
        .map_err(|why| StartError(why.to_string()))
}
