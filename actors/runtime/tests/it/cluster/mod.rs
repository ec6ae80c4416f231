//! A cluster under test, and what is asked of it.

mod gate;
mod heard;
mod jobs;
mod oracle;
mod spans;
mod stuck;
mod worker;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mesh::{DevCa, Faults, Target};
use mock::MockConfig;
use observe::{Listener, Recorder, Sampling, TraceSink};
use room::{DeskLimits, HostLimits, Limits, PhaseKind, RoomId, Span};
use runtime::{
    Answer, Bookkeeping, Clock, Find, GatewayHandle, GatewaySpec, Job, LocalWorker, Node, RoomView,
    WorkerState,
};
use tokio::time::{Instant, sleep};
use wire::Role;

pub(crate) use gate::Gate;
pub(crate) use heard::Heard;
use heard::check_history;
pub(crate) use jobs::{aborted, completed, finish, job, next_tokens};
pub(crate) use oracle::expected;
use spans::check_spans;
pub(crate) use stuck::{OF_A_PAIR, Stuck};
pub(crate) use worker::WorkerUnderTest;

/// No wait of a test is longer; none that succeeds is anywhere near.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What a cluster is made of.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) sampling: Sampling,
    pub(crate) roles: Vec<Role>,
    pub(crate) mock: MockConfig,
    /// The faults of each incarnation of each worker, by the worker's place and its incarnation, counted from 0.
    pub(crate) engine_faults: fn(usize, u64) -> mock::Faults,
    pub(crate) slots: u32,
    pub(crate) limits: Limits,
    pub(crate) host_limits: HostLimits,
    pub(crate) desk: DeskLimits,
    pub(crate) max_requests: usize,
    pub(crate) actor_grace: Span,
    pub(crate) heartbeat: Duration,
    pub(crate) lease: Duration,
    /// Where each worker says that operators find it.
    pub(crate) admin: SocketAddr,
}

impl Setup {
    pub(crate) fn of(roles: &[Role]) -> Self {
        let mut mock = MockConfig::default();
        mock.shape.blocks = 64;
        mock.shape.block_tokens = 4;
        mock.shape.layers = 1;
        Self {
            sampling: Sampling::default(),
            roles: roles.to_vec(),
            mock,
            engine_faults: |_, _| mock::Faults::default(),
            slots: 8,
            limits: Limits::default(),
            host_limits: HostLimits::default(),
            desk: DeskLimits {
                promised_answer_tokens: 8,
                no_worker_grace: Span::from_millis(20_000),
                ..DeskLimits::default()
            },
            max_requests: 1_000,
            actor_grace: Span::from_millis(300),
            heartbeat: Duration::from_millis(50),
            lease: Duration::from_millis(2_000),
            admin: ([0, 0, 0, 0], 9_091).into(),
        }
    }

    /// One mixed worker.
    pub(crate) fn mixed() -> Self {
        Self::of(&[Role::Mixed])
    }

    /// One prefill and one decode worker, in this order.
    pub(crate) fn pair() -> Self {
        Self::of(&[Role::Prefill, Role::Decode])
    }

    /// A gateway, and where it is.
    pub(crate) fn gateway(&self, ca: &DevCa, faults: &Arc<Faults>) -> (GatewaySpec, Target) {
        let mesh = self.mesh(faults);
        let identity = ca.issue("gateway", &[Role::Gateway]).unwrap();
        let endpoint = mesh::listen_endpoint(([127, 0, 0, 1], 0).into(), &identity, &mesh).unwrap();
        let target = Target::Address(endpoint.local_addr().unwrap());
        let spec = GatewaySpec {
            name: "gateway".into(),
            node: new_node(),
            model: self.mock.name.clone(),
            endpoint,
            mesh,
            limits: self.limits,
            desk: self.desk,
            max_requests: self.max_requests,
            actor_grace: self.actor_grace,
        };
        (spec, target)
    }

    fn mesh(&self, faults: &Arc<Faults>) -> mesh::Config {
        mesh::Config {
            heartbeat: self.heartbeat,
            lease: self.lease,
            backoff_max: Duration::from_millis(200),
            faults: Arc::clone(faults),
            ..mesh::Config::default()
        }
    }
}

static INCARNATIONS: AtomicU64 = AtomicU64::new(1);

fn new_node() -> room::NodeId {
    room::NodeId(INCARNATIONS.fetch_add(1, Ordering::Relaxed))
}

/// A running cluster.
pub(crate) struct Cluster {
    pub(crate) node: Node,
    pub(crate) setup: Setup,
    pub(crate) gateway: GatewayHandle,
    /// All that is told of on the node.
    pub(crate) heard: Arc<Heard>,
    /// What the gateway's links do to the frames it sends.
    pub(crate) faults: Arc<Faults>,
    /// By their place in [`Setup::roles`].
    pub(crate) workers: Vec<Arc<WorkerUnderTest>>,
}

impl Cluster {
    /// Starts all, and waits until every worker is linked.
    pub(crate) async fn start(setup: Setup) -> Self {
        Self::start_beside(setup, &Arc::new(DevCa::new().unwrap()), Vec::new()).await
    }

    /// The same with certificates of this authority, and workers that dial `others` too.
    pub(crate) async fn start_beside(setup: Setup, ca: &Arc<DevCa>, mut targets: Vec<Target>) -> Self {
        let faults = Arc::<Faults>::default();
        let heard = Arc::<Heard>::default();
        let listener = Arc::clone(&heard) as Arc<dyn Listener>;
        let sink = Arc::clone(&heard) as Arc<dyn TraceSink>;
        let recorder = Recorder::new(vec![listener], Some(sink), setup.sampling);
        let mut node = Node::start_with(Clock::start(), recorder).await.unwrap();
        let (spec, target) = setup.gateway(ca, &faults);
        targets.push(target);
        let gateway = node.gateway(spec).await.unwrap();
        let hub = kv::Hub::new();
        let mut workers = Vec::new();
        for place in 0..setup.roles.len() {
            let worker = WorkerUnderTest::new(place);
            let build = worker.recipe(&setup, ca, &hub, &targets, node.clock());
            node.pool(worker.name.clone(), setup.roles[place], build)
                .await
                .unwrap();
            workers.push(worker);
        }
        let cluster = Self {
            node,
            setup,
            gateway,
            heard,
            faults,
            workers,
        };
        let wanted = cluster.workers.len();
        cluster
            .until("every worker is linked", |c| c.linked().len() == wanted)
            .await;
        cluster
    }

    /// Waits until `is_so`.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let give_up_at = Instant::now() + PATIENCE;
        while !is_so(self) {
            assert!(
                Instant::now() < give_up_at,
                "not so in time: {what}\nrooms: {:#?}\nworkers: {:#?}\n{:?}",
                self.gateway.rooms(),
                self.gateway.workers(),
                self.gateway.bookkeeping()
            );
            sleep(Duration::from_millis(2)).await;
        }
    }

    /// Workers that have said something, and so can be given work.
    pub(crate) fn linked(&self) -> Vec<WorkerState> {
        let mut linked = self.gateway.workers();
        linked.retain(|worker| worker.peer.stats.blocks_total > 0);
        linked
    }

    /// What is linked under the name of the worker at `place`.
    pub(crate) fn linked_as(&self, place: usize) -> Option<WorkerState> {
        let name = &self.workers[place].name;
        self.linked().into_iter().find(|worker| worker.peer.name == *name)
    }

    pub(crate) async fn submit(&self, job: Job) -> Answer {
        self.gateway.submit(job).await.unwrap()
    }

    pub(crate) fn room(&self, room: RoomId) -> Option<RoomView> {
        self.gateway.rooms().into_iter().find(|view| view.room == room)
    }

    pub(crate) fn is_in(&self, room: RoomId, phase: PhaseKind) -> bool {
        self.room(room).is_some_and(|view| view.phase == phase)
    }

    /// The room's last view, once it has ended.
    pub(crate) fn ended(&self, room: RoomId) -> Option<RoomView> {
        let mut ended = self.gateway.rooms_ended().into_iter();
        ended.find(|view| view.room == room)
    }

    /// Waits until nothing is left of any room (INV-08, INV-11): every pool free or cached, every slot free, every table empty. Finds
    /// that no byte was foreign (INV-01).
    pub(crate) async fn quiesce(&self) {
        let empty = Bookkeeping::default();
        self.until("the gateway's tables are empty", |c| {
            c.gateway.bookkeeping() == empty
        })
        .await;
        let is_idle = |worker: &WorkerState| {
            let stats = &worker.peer.stats;
            stats.blocks_free + stats.blocks_cached == stats.blocks_total
                && stats.slots_used == 0
                && worker.peer.held.is_empty()
        };
        self.until("every pool is free or cached", |c| {
            let linked = c.linked();
            linked.len() == c.workers.len() && linked.iter().all(is_idle)
        })
        .await;
        for worker in &self.workers {
            worker.check_canaries();
        }
        self.check_told().await;
    }

    /// What was told of is the whole life of every room and of every stay, and agrees with what is counted and shown.
    async fn check_told(&self) {
        self.until("every room's end is told", |c| c.heard.all_ended())
            .await;
        self.heard.check_counts(&self.gateway.counts());
        self.heard.check_stays();
        let mut faults = self.workers.iter().map(|worker| &worker.faults);
        if self.faults.hits() == 0 && faults.all(|faults| faults.hits() == 0) {
            assert_eq!(self.heard.healed(), 0, "no frame was lost");
        }
        for worker in self.node.workers().all() {
            assert!(worker.stays().is_empty(), "{worker:#?}");
        }
        let mut rooms = Vec::new();
        for ended in self.gateway.rooms_ended() {
            let found = self.gateway.find(&Find::Room(ended.room));
            assert_eq!(found.len(), 1, "{}", ended.room);
            let (view, history) = &found[0];
            check_history(history);
            rooms.push(Arc::clone(history));
            let state = history.state();
            assert_eq!(state.stream.tokens, view.delivered, "{history:#?}");
            assert_eq!(
                state.outcome.map(|(outcome, _)| outcome),
                view.outcome,
                "{history:#?}"
            );
            assert_eq!(Some(history.facts().trace.id.bits()), view.trace_id);
        }
        let workers = self.node.workers().all();
        let stays: Vec<_> = workers.iter().flat_map(LocalWorker::stays_ended).collect();
        check_spans(&rooms, &stays);
    }
}
