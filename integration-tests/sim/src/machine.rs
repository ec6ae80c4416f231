//! One simulated machine: a node of the product on a host of the simulated network, with all its switches.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kv::KvTransfer;
use mesh::{DevCa, Target};
use mock::{Canary, MockBackend, no_sleep};
use observe::{Listener, Recorder, Sampling};
use room::{DeskLimits, HostLimits, Limits, NodeId, Span};
use runtime::{BuildTransfer, BuildWorker, Clock, GatewayHandle, GatewaySpec, Node, StartEngine, WorkerSpec};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tracing::info;
use wire::Role;

use crate::fault::MachineAt;
use crate::network::{HostId, Network};
use crate::pace::Pace;
use crate::plan::Plan;
use crate::transfer;
use crate::witness::Witness;

/// Where gateways listen.
const GATEWAY_PORT: u16 = 7_400;

/// Where workers dial from: the first, the next incarnation from the next.
const FIRST_WORKER_PORT: u16 = 20_000;

/// Requests that a gateway may have.
pub(crate) const MAX_REQUESTS: usize = 48;

/// Rooms that may wait at a gateway.
pub(crate) const MAX_WAITING: usize = 24;

/// How long an owner may take to answer.
const ACTOR_GRACE: Span = Span::from_millis(300);

/// How long a machine that ends in order may take to.
const GRACE: Duration = Duration::from_secs(5);

/// What all machines of a simulation have in common.
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) network: Network,
    pub(crate) moves: transfer::Network,
    pub(crate) authority: DevCa,
    pub(crate) epochs: AtomicU64,
    pub(crate) targets: Vec<Target>,
    /// Of all incarnations of all workers.
    pub(crate) canaries: Mutex<Vec<(String, Arc<Canary>)>>,
    /// Hears of all that happens on all machines.
    pub(crate) witness: Witness,
}

impl World {
    /// Numbers grow, so that of two incarnations the younger is known.
    fn new_node(&self) -> NodeId {
        NodeId(self.epochs.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn mesh(&self, faults: &Arc<mesh::Faults>, node: NodeId) -> mesh::Config {
        mesh::Config {
            heartbeat: self.plan.heartbeat,
            lease: self.plan.lease,
            mtu_discovery: false,
            seed: Some(self.plan.seed ^ node.0),
            faults: Arc::clone(faults),
            ..mesh::Config::default()
        }
    }
}

/// A machine that has power.
pub(crate) struct Life {
    node: Node,
    pub(crate) gateway: Option<GatewayHandle>,
    /// Told when it has none any more.
    pub(crate) died: CancellationToken,
    engines: Arc<Mutex<Vec<AbortHandle>>>,
}

/// A machine, over all its lives.
pub(crate) struct Machine {
    pub(crate) at: MachineAt,
    pub(crate) name: String,
    pub(crate) host: HostId,
    /// What its links do to the frames it sends.
    pub(crate) faults: Arc<mesh::Faults>,
    /// Of its engines.
    pub(crate) pace: Arc<Pace>,
    world: Arc<World>,
    dialled: Arc<AtomicU32>,
}

impl Machine {
    pub(crate) fn new(at: MachineAt, world: &Arc<World>) -> Self {
        let host = host(at);
        let name = match at {
            MachineAt::Gateway(at) => format!("gateway-{}", at.0),
            MachineAt::Worker(at) => format!("worker-{}", at.0),
        };
        Self {
            at,
            name,
            host,
            faults: Arc::default(),
            pace: Pace::new(world.plan.latency),
            world: Arc::clone(world),
            dialled: Arc::default(),
        }
    }

    /// Where it stands on the data path.
    pub(crate) fn place(&self) -> transfer::Place {
        transfer::Place(u32::from(self.host.0))
    }

    /// Gives it power.
    pub(crate) async fn start(&self) -> Life {
        let witness: Arc<dyn Listener> = Arc::new(self.world.witness.clone());
        let recorder = Recorder::new(vec![witness], None, Sampling::default());
        let started = Node::start_with(Clock::start(), recorder).await;
        let mut node = started.expect("a node starts");
        let engines = Arc::default();
        let gateway = match self.at {
            MachineAt::Gateway(_) => Some(node.gateway(self.gateway_spec()).await.expect("a gateway starts")),
            MachineAt::Worker(at) => {
                let role = self.world.plan.workers[at.0];
                let build = self.recipe(node.clock(), &engines);
                node.pool(self.name.clone(), role, build)
                    .await
                    .expect("a pool starts");
                None
            }
        };
        info!(machine = self.name, "is on");
        Life {
            node,
            gateway,
            died: CancellationToken::new(),
            engines,
        }
    }

    /// Takes its power. Whether its peers on the data path are told by their systems is as it says.
    pub(crate) fn crash(&self, life: Life, death: transfer::Death) {
        info!(machine = self.name, "is off");
        self.world.witness.off(&self.name);
        life.died.cancel();
        self.world.network.kill(self.host);
        self.world.moves.kill(self.place(), death);
        self.pace.heal();
        for engine in life
            .engines
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
        {
            engine.abort();
        }
        drop(life.node);
    }

    /// Ends it as an operator would.
    pub(crate) async fn stop(&self, life: Life) {
        info!(machine = self.name, "is told to stop");
        if let Some(gateway) = &life.gateway {
            gateway.close();
        }
        let drained = life.node.drain_within(GRACE).await;
        life.node.leave().await;
        info!(machine = self.name, drained, "has left");
        self.crash(life, transfer::Death::Crash);
    }

    fn gateway_spec(&self) -> GatewaySpec {
        let world = &self.world;
        let node = world.new_node();
        let mesh = world.mesh(&self.faults, node);
        let identity = world
            .authority
            .issue(&self.name, &[Role::Gateway])
            .expect("an identity");
        let server = mesh::server_config(&identity, &mesh).expect("an identity is of use");
        GatewaySpec {
            name: self.name.clone(),
            node,
            model: world.plan.mock.name.clone(),
            endpoint: world.network.endpoint(self.host, GATEWAY_PORT, Some(server)),
            mesh,
            limits: Limits::default(),
            desk: DeskLimits {
                queue_rooms: MAX_WAITING,
                ..DeskLimits::default()
            },
            max_requests: MAX_REQUESTS,
            actor_grace: ACTOR_GRACE,
        }
    }

    fn recipe(&self, clock: Clock, engines: &Arc<Mutex<Vec<AbortHandle>>>) -> BuildWorker {
        let builder = Builder {
            name: self.name.clone(),
            host: self.host,
            place: self.place(),
            clock,
            faults: Arc::clone(&self.faults),
            pace: Arc::clone(&self.pace),
            world: Arc::clone(&self.world),
            dialled: Arc::clone(&self.dialled),
            engines: Arc::clone(engines),
        };
        Arc::new(move |role: Role| builder.build(role))
    }
}

/// Where a machine is on the network.
pub(crate) fn host(at: MachineAt) -> HostId {
    let number = match at {
        MachineAt::Gateway(at) => at.0 + 1,
        MachineAt::Worker(at) => at.0 + 101,
    };
    HostId(u8::try_from(number).unwrap_or(u8::MAX))
}

/// Where the gateways of a plan listen.
pub(crate) fn targets(plan: &Plan) -> Vec<Target> {
    let gateways = (0..plan.gateways).map(|at| host(MachineAt::Gateway(crate::fault::GatewayAt(at))));
    gateways
        .map(|host| Target::Address(host.address(GATEWAY_PORT)))
        .collect()
}

/// Builds the incarnations of one worker while its machine has power.
struct Builder {
    name: String,
    host: HostId,
    place: transfer::Place,
    clock: Clock,
    faults: Arc<mesh::Faults>,
    pace: Arc<Pace>,
    world: Arc<World>,
    dialled: Arc<AtomicU32>,
    engines: Arc<Mutex<Vec<AbortHandle>>>,
}

impl Builder {
    fn build(&self, role: Role) -> Result<WorkerSpec, String> {
        let (world, plan) = (&self.world, &self.world.plan);
        let node = world.new_node();
        let mesh = world.mesh(&self.faults, node);
        let identity = world
            .authority
            .issue(&self.name, &[role])
            .map_err(|error| error.to_string())?;
        let backend = MockBackend::new(plan.mock.clone(), no_sleep()).map_err(|error| error.to_string())?;
        world
            .canaries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((self.name.clone(), backend.canary()));
        let nth = u16::try_from(self.dialled.fetch_add(1, Ordering::Relaxed) % 40_000).unwrap_or_default();
        Ok(WorkerSpec {
            name: self.name.clone(),
            node,
            role,
            slots: plan.slots,
            backend: Box::new(backend),
            numerics: "mock".into(),
            engine: engine::EngineConfig {
                chunk_tokens: plan.chunk_tokens,
                ..engine::EngineConfig::default()
            },
            start_engine: self.start_engine(),
            transfer: self.build_transfer(),
            limits: HostLimits::default(),
            endpoint: world.network.endpoint(self.host, FIRST_WORKER_PORT + nth, None),
            client: mesh::client_config(&identity, &mesh)
                .map_err(|error| error.to_string())?
                .into(),
            gateways: world.targets.clone(),
            mesh,
            clock: self.clock,
            admin: None,
        })
    }

    fn start_engine(&self) -> StartEngine {
        let (pace, engines) = (Arc::clone(&self.pace), Arc::clone(&self.engines));
        Box::new(move |backend, config, sink| {
            let (handle, task) = pace.start(backend, config, sink);
            let mut engines = engines.lock().unwrap_or_else(PoisonError::into_inner);
            engines.retain(|engine| !engine.is_finished());
            engines.push(task);
            Ok(handle)
        })
    }

    fn build_transfer(&self) -> BuildTransfer {
        let (moves, place) = (self.world.moves.clone(), self.place);
        Box::new(move |pool, sink| Ok(Arc::new(moves.join(place, pool, sink)) as Arc<dyn KvTransfer>))
    }
}
