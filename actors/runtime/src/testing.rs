//! What several tests of parts need: a job, and real links on loopback.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mesh::{
    DevCa, Dialer, DownReason, GatewayLinks, GatewayNode, GatewaySide, Link, LinkEvent, Listener, Target,
    WorkerLinks, WorkerSide,
};
use tokio::time::{sleep, timeout};
use wire::{Hello, Role, ToGateway, ToWorker};

use crate::Job;

/// A job with this prompt that asks for so many tokens.
pub(crate) fn job(prompt: Vec<u32>, max_new: u32) -> Job {
    Job {
        request_id: String::new(),
        prompt,
        n: 1,
        max_new,
        sampling: engine::Sampling::default(),
        ignore_eos: false,
        priority: 0,
        share: room::Share::default(),
        salt: 0,
        timeout: Duration::from_secs(60),
        trace: None,
        prepared: crate::Preparation::default(),
    }
}

/// What is fixed of a room that asks for nothing special.
pub(crate) fn facts(room: room::RoomId) -> observe::SharedFacts {
    let now = room::Time::default();
    Arc::new(observe::Facts {
        room,
        first: room,
        index: 0,
        of: 1,
        request_id: "r".into(),
        trace: observe::Trace::new(observe::TraceId::of_room(room)),
        model: "mock".into(),
        prompt_tokens: 1,
        max_tokens: 1,
        drawing: observe::Drawing {
            temperature: 0.0,
            top_p: 1.0,
            seed: 0,
        },
        priority: room::Priority(0),
        opened: now,
        prepared: observe::Prepared::default(),
        deadline: now,
    })
}

/// The incarnation of every gateway here.
pub(crate) const GATEWAY: u64 = 77;

/// Links of workers with gateways. They end with this.
pub(crate) struct Linked {
    /// As the gateways see them, in the order of the workers.
    pub(crate) at_gateways: Vec<Link<ToWorker>>,
    /// As the workers see them, in the same order.
    pub(crate) at_workers: Vec<Link<ToGateway>>,
    listeners: Vec<Listener>,
    _dialers: Vec<Dialer>,
    ends: Arc<Ends<ToWorker>>,
}

impl Linked {
    /// Stops the gateways in order, and says why each of their links has ended.
    pub(crate) async fn stop_gateways(mut self) -> Vec<DownReason> {
        for listener in self.listeners.drain(..) {
            listener.stop().await;
        }
        self.ends.downs.lock().unwrap().clone()
    }
}

/// One end of links, in the order in which they come up.
struct Ends<Out> {
    up: Mutex<Vec<Link<Out>>>,
    downs: Mutex<Vec<DownReason>>,
}

impl<Out> Default for Ends<Out> {
    fn default() -> Self {
        Self {
            up: Mutex::default(),
            downs: Mutex::default(),
        }
    }
}

impl<Out> Ends<Out> {
    fn push(&self, link: Link<Out>) {
        self.up.lock().unwrap().push(link);
    }

    fn all(&self) -> Vec<Link<Out>> {
        self.up.lock().unwrap().clone()
    }
}

impl GatewayLinks for Ends<ToWorker> {
    fn accept(&self, _: &Hello) -> Result<(), String> {
        Ok(())
    }

    fn beat(&self, _: &Link<ToWorker>, _: u64) {}

    fn event(&self, event: LinkEvent<GatewaySide>) {
        match event {
            LinkEvent::Up { link, .. } => self.push(link),
            LinkEvent::Down { why, .. } => self.downs.lock().unwrap().push(why),
            LinkEvent::Frame { .. } => {}
        }
    }
}

impl WorkerLinks for Ends<ToGateway> {
    fn event(&self, event: LinkEvent<WorkerSide>) {
        if let LinkEvent::Up { link, .. } = event {
            self.push(link);
        }
    }
}

/// A worker's hello.
pub(crate) fn hello(name: &str, epoch: u64, layout_hash: u64) -> Hello {
    Hello {
        min_version: wire::MIN_VERSION,
        max_version: wire::VERSION,
        node: name.to_owned(),
        epoch,
        role: Role::Mixed,
        model: "mock".to_owned(),
        layout_hash,
        block_tokens: 4,
        blocks: 64,
        slots: 8,
        context_tokens: 1_024,
        kv_address: Vec::new(),
        numerics: "mock".to_owned(),
        faults: mesh::FAULTS,
    }
}

/// Links each of `workers` with as many gateways, which all are one incarnation: a gateway with several addresses.
pub(crate) async fn links(workers: &[Hello], gateways: usize) -> Linked {
    let config = mesh::Config {
        lease: Duration::from_secs(600),
        backoff_min: Duration::from_secs(600),
        backoff_max: Duration::from_secs(600),
        ..mesh::Config::default()
    };
    let ca = DevCa::new().unwrap();
    let (at_gateways, at_workers) = (
        Arc::<Ends<ToWorker>>::default(),
        Arc::<Ends<ToGateway>>::default(),
    );
    let (mut listeners, mut targets) = (Vec::new(), Vec::new());
    for _ in 0..gateways {
        let identity = ca.issue("gateway", &[Role::Gateway]).unwrap();
        let endpoint = mesh::listen_endpoint(([127, 0, 0, 1], 0).into(), &identity, &config).unwrap();
        targets.push(Target::Address(endpoint.local_addr().unwrap()));
        let node = GatewayNode {
            name: "gateway".to_owned(),
            epoch: GATEWAY,
        };
        let ends = Arc::clone(&at_gateways) as Arc<dyn GatewayLinks>;
        listeners.push(Listener::start(endpoint, node, ends, config.clone()));
    }
    let mut dialers = Vec::new();
    // One worker after the other, so that their order is known.
    for worker in workers {
        let identity = ca.issue(&worker.node, &[worker.role]).unwrap();
        let client = mesh::client_config(&identity, &config).unwrap();
        let endpoint = mesh::dial_endpoint(([127, 0, 0, 1], 0).into()).unwrap();
        let ends = Arc::clone(&at_workers) as Arc<dyn WorkerLinks>;
        let (hello, targets) = (worker.clone(), targets.clone());
        dialers.push(Dialer::start(
            endpoint,
            client,
            targets,
            hello,
            ends,
            config.clone(),
        ));
        let wanted = dialers.len() * gateways;
        let both_up = async {
            while at_gateways.all().len() < wanted || at_workers.all().len() < wanted {
                sleep(Duration::from_millis(2)).await;
            }
        };
        timeout(Duration::from_secs(30), both_up).await.unwrap();
    }
    Linked {
        at_gateways: at_gateways.all(),
        at_workers: at_workers.all(),
        listeners,
        _dialers: dialers,
        ends: at_gateways,
    }
}
