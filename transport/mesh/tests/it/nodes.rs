//! Gateways and workers that write down what they hear.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mesh::{
    Config, DevCa, DialError, Dialer, DownReason, GatewayLinks, GatewayNode, GatewaySide, Identity, Link,
    LinkEvent, LinkId, Listener, SendError, Side, Target, WorkerLinks, WorkerSide, client_config,
    server_config,
};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;
use wire::{Hello, Kept, Role, RoomKey, ToGateway, ToWorker, WorkerStats};

use crate::net::Net;

/// Long beyond every deadline of a link: what has not come by then does not come.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const LAYOUT: u64 = 7;

pub(crate) fn gateway_address() -> SocketAddr {
    "10.0.0.1:7000".parse().unwrap()
}

pub(crate) fn worker_address() -> SocketAddr {
    "10.0.1.1:9000".parse().unwrap()
}

pub(crate) fn key(seq: u64) -> RoomKey {
    RoomKey { seq, generation: 1 }
}

pub(crate) fn config() -> Config {
    Config {
        mtu_discovery: false,
        seed: Some(1),
        ..Config::default()
    }
}

pub(crate) fn hello(node: &str, epoch: u64) -> Hello {
    Hello {
        min_version: wire::MIN_VERSION,
        max_version: wire::VERSION,
        node: node.to_owned(),
        epoch,
        role: Role::Decode,
        model: "model".to_owned(),
        layout_hash: LAYOUT,
        block_tokens: 16,
        blocks: 64,
        slots: 4,
        context_tokens: 1024,
        kv_address: vec![1],
        numerics: "numerics".to_owned(),
        faults: true,
    }
}

/// More events than any of these tests causes.
const EVENTS: usize = 65_536;

/// What one end hears, in order.
pub(crate) struct Heard<S: Side>(Receiver<LinkEvent<S>>);

impl<S: Side> Heard<S> {
    pub(crate) async fn next(&mut self) -> LinkEvent<S> {
        timeout(PATIENCE, self.0.recv())
            .await
            .expect("an event")
            .expect("an owner")
    }

    /// The next event must be this link's coming up.
    pub(crate) async fn up(&mut self) -> (Link<S::Out>, S::Peer) {
        match self.next().await {
            LinkEvent::Up { link, peer } => (link, peer),
            other => panic!("up expected, not {other:?}"),
        }
    }

    /// The next event must be a frame.
    pub(crate) async fn frame(&mut self) -> S::In {
        match self.next().await {
            LinkEvent::Frame { frame, .. } => frame,
            other => panic!("a frame expected, not {other:?}"),
        }
    }

    /// The next event that is not a frame must be a link's end.
    pub(crate) async fn down(&mut self) -> (LinkId, DownReason) {
        loop {
            match self.next().await {
                LinkEvent::Down { link, why } => return (link, why),
                LinkEvent::Frame { .. } => {}
                other @ LinkEvent::Up { .. } => panic!("down expected, not {other:?}"),
            }
        }
    }

    /// Nothing comes for a second.
    pub(crate) async fn nothing(&mut self) {
        let event = timeout(Duration::from_secs(1), self.0.recv()).await;
        assert!(event.is_err(), "nothing expected, not {event:?}");
    }
}

/// As a digest lists it.
pub(crate) fn kept(key: RoomKey) -> Kept {
    Kept { key, until: 9 }
}

/// A gateway's owner: sends a digest of `open` with every beat, and writes down everything but answers to them.
pub(crate) struct GatewayOwner {
    tell: Sender<LinkEvent<GatewaySide>>,
    pub(crate) open: Mutex<BTreeSet<RoomKey>>,
    pub(crate) beats: AtomicBool,
}

impl GatewayLinks for GatewayOwner {
    fn accept(&self, hello: &Hello) -> Result<(), String> {
        if hello.layout_hash == LAYOUT {
            Ok(())
        } else {
            Err("the KV layouts differ".to_owned())
        }
    }

    fn beat(&self, link: &Link<ToWorker>, n: u64) {
        let open = self.open.lock().unwrap();
        if self.beats.load(Ordering::Relaxed) {
            let digest = open.iter().map(|key| kept(*key)).collect();
            if link.send(&ToWorker::Heartbeat { n, open: digest }) == Err(SendError::Down) {
                link.close("a beat on a link that is over");
            }
        }
    }

    fn event(&self, event: LinkEvent<GatewaySide>) {
        if !matches!(
            &event,
            LinkEvent::Frame {
                frame: ToGateway::HeartbeatAck { .. },
                ..
            }
        ) {
            let _ = self.tell.try_send(event);
        }
    }
}

/// A worker's owner: answers heartbeats, and writes down everything else (and the heartbeats too, when asked).
pub(crate) struct WorkerOwner {
    tell: Sender<LinkEvent<WorkerSide>>,
    links: Mutex<BTreeMap<LinkId, Link<ToGateway>>>,
    failures: Sender<DialError>,
    pub(crate) answers: AtomicBool,
    pub(crate) tells_heartbeats: AtomicBool,
    /// Panics on the next frame.
    pub(crate) panics: AtomicBool,
}

impl WorkerLinks for WorkerOwner {
    fn event(&self, event: LinkEvent<WorkerSide>) {
        assert!(!self.panics.swap(false, Ordering::Relaxed), "asked for");
        match &event {
            LinkEvent::Up { link, .. } => {
                self.links.lock().unwrap().insert(link.id(), link.clone());
            }
            LinkEvent::Down { link, .. } => {
                self.links.lock().unwrap().remove(link);
            }
            LinkEvent::Frame {
                link,
                frame: ToWorker::Heartbeat { n, .. },
                ..
            } => {
                let link = self.links.lock().unwrap().get(link).cloned();
                if self.answers.load(Ordering::Relaxed)
                    && let Some(link) = link
                {
                    let stats = WorkerStats::default();
                    let _ = link.send(&ToGateway::HeartbeatAck {
                        n: *n,
                        held: Vec::new(),
                        stats,
                    });
                }
                if !self.tells_heartbeats.load(Ordering::Relaxed) {
                    return;
                }
            }
            LinkEvent::Frame { .. } => {}
        }
        let _ = self.tell.try_send(event);
    }

    fn dial_failed(&self, _: SocketAddr, error: &DialError) {
        let _ = self.failures.try_send(error.clone());
    }
}

pub(crate) struct Gateway {
    pub(crate) endpoint: quinn::Endpoint,
    pub(crate) listener: Listener,
    pub(crate) owner: Arc<GatewayOwner>,
    pub(crate) heard: Heard<GatewaySide>,
}

pub(crate) struct Worker {
    pub(crate) dialer: Dialer,
    pub(crate) owner: Arc<WorkerOwner>,
    pub(crate) heard: Heard<WorkerSide>,
    failures: Receiver<DialError>,
}

impl Worker {
    /// The next failure to dial.
    pub(crate) async fn failure(&mut self) -> DialError {
        timeout(PATIENCE, self.failures.recv())
            .await
            .expect("a failure")
            .expect("an owner")
    }
}

/// Makes a gateway's owner.
pub(crate) fn gateway_owner() -> (Arc<GatewayOwner>, Heard<GatewaySide>) {
    let (tell, heard) = channel(EVENTS);
    let owner = GatewayOwner {
        tell,
        open: Mutex::default(),
        beats: AtomicBool::new(true),
    };
    (Arc::new(owner), Heard(heard))
}

/// Makes a worker's owner.
pub(crate) fn worker_owner() -> (Arc<WorkerOwner>, Heard<WorkerSide>, Receiver<DialError>) {
    let (tell, heard) = channel(EVENTS);
    let (failures, failed) = channel(EVENTS);
    let owner = WorkerOwner {
        tell,
        links: Mutex::default(),
        failures,
        answers: AtomicBool::new(true),
        tells_heartbeats: AtomicBool::new(false),
        panics: AtomicBool::new(false),
    };
    (Arc::new(owner), Heard(heard), failed)
}

/// A network and an authority.
pub(crate) struct World {
    pub(crate) net: Net,
    pub(crate) ca: DevCa,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            net: Net::default(),
            ca: DevCa::new().unwrap(),
        }
    }

    /// Of whatever name.
    pub(crate) fn identity(&self, roles: &[Role]) -> Identity {
        self.ca.issue("*", roles).unwrap()
    }

    pub(crate) fn gateway(&self, epoch: u64, config: Config) -> Gateway {
        self.gateway_as(&self.identity(&[Role::Gateway]), epoch, config)
    }

    pub(crate) fn gateway_as(&self, identity: &Identity, epoch: u64, config: Config) -> Gateway {
        let (owner, heard) = gateway_owner();
        let server = server_config(identity, &config).unwrap();
        let endpoint = self.net.endpoint(gateway_address(), Some(server));
        let node = GatewayNode {
            name: "gateway".to_owned(),
            epoch,
        };
        let links: Arc<GatewayOwner> = Arc::clone(&owner);
        let listener = Listener::start(endpoint.clone(), node, links, config);
        Gateway {
            endpoint,
            listener,
            owner,
            heard,
        }
    }

    pub(crate) fn worker(&self, hello: Hello, config: Config) -> Worker {
        self.worker_as(&self.identity(&[hello.role]), worker_address(), hello, config)
    }

    pub(crate) fn worker_as(
        &self,
        identity: &Identity,
        address: SocketAddr,
        hello: Hello,
        config: Config,
    ) -> Worker {
        let (owner, heard, failures) = worker_owner();
        let endpoint = self.net.endpoint(address, None);
        let client = client_config(identity, &config).unwrap();
        let links: Arc<WorkerOwner> = Arc::clone(&owner);
        let targets = vec![Target::Address(gateway_address())];
        let dialer = Dialer::start(endpoint, client, targets, hello, links, config);
        Worker {
            dialer,
            owner,
            heard,
            failures,
        }
    }
}

/// A gateway and a worker with a link between them.
pub(crate) struct Pair {
    pub(crate) world: World,
    pub(crate) gateway: Gateway,
    pub(crate) worker: Worker,
    pub(crate) to_worker: Link<ToWorker>,
    pub(crate) to_gateway: Link<ToGateway>,
}

impl Pair {
    pub(crate) async fn with(gateway_config: Config, worker_config: Config) -> Self {
        let world = World::new();
        let mut gateway = world.gateway(1, gateway_config);
        let mut worker = world.worker(hello("worker", 11), worker_config);
        let (to_worker, _) = gateway.heard.up().await;
        let (to_gateway, _) = worker.heard.up().await;
        Self {
            world,
            gateway,
            worker,
            to_worker,
            to_gateway,
        }
    }

    pub(crate) async fn new() -> Self {
        Self::with(config(), config()).await
    }
}
