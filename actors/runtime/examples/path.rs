//! The control path in one process, for counting what it costs: a gateway, a prefill and a decode worker with mock engines that take no
//! time, over QUIC on loopback, on one runtime thread. No HTTP.
//!
//! ```text
//! cargo build --release -p innkeeper-runtime --example path
//! valgrind --tool=callgrind --callgrind-out-file=target/path.out target/release/examples/path 200
//! callgrind_annotate target/path.out | head -60
//! ```
//!
//! Arguments: requests, of those at a time, tokens of a prompt, tokens of an answer. Set-up costs about as much as some dozens of requests:
//! compare two runs of different lengths.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kv::{Hub, InProcess, KvTransfer};
use mesh::{DevCa, Target};
use mock::{MockBackend, MockConfig, Verify};
use room::{DeskLimits, HostLimits, Limits, NodeId, Span};
use runtime::{
    AnswerEvent, BuildWorker, Clock, GatewayHandle, GatewaySpec, Job, Node, Preparation, WorkerSpec,
};
use tokio::task::JoinSet;
use tokio::time::sleep;
use wire::Role;

type Failed = Box<dyn Error + Send + Sync>;

/// What is asked for.
#[derive(Copy, Clone)]
struct Load {
    requests: usize,
    at_a_time: usize,
    prompt: u32,
    answer: u32,
}

impl Load {
    fn from_arguments() -> Result<Self, Failed> {
        let mut given = std::env::args().skip(1);
        let mut next = |default: u32| given.next().map_or(Ok(default), |text| text.parse());
        Ok(Self {
            requests: next(1_000)? as usize,
            at_a_time: next(64)? as usize,
            prompt: next(200)?,
            answer: next(64)?,
        })
    }

    fn job(self, nth: usize) -> Job {
        let nth = u32::try_from(nth).unwrap_or(0);
        Job {
            request_id: format!("request-{nth}"),
            prompt: (0..self.prompt).map(|i| 1 + (nth * 31 + i * 7) % 900).collect(),
            n: 1,
            max_new: self.answer,
            sampling: engine::Sampling::default(),
            ignore_eos: true,
            priority: 0,
            share: room::Share::default(),
            salt: 0,
            timeout: Duration::from_secs(600),
            trace: None,
            prepared: Preparation::default(),
        }
    }
}

fn device() -> MockConfig {
    let mut device = MockConfig {
        verify: Verify::Latest,
        context_tokens: 262_144,
        ..MockConfig::default()
    };
    device.shape.blocks = 65_536;
    device.shape.layers = 1;
    device.shape.head_dim = 2;
    device
}

/// Links last however slowly an instrumented process runs.
fn links() -> mesh::Config {
    mesh::Config {
        lease: Duration::from_secs(60),
        hello_deadline: Duration::from_secs(60),
        stall_deadline: Duration::from_secs(60),
        ..mesh::Config::default()
    }
}

/// What all workers have in common.
#[derive(Clone)]
struct Common {
    ca: Arc<DevCa>,
    hub: Hub,
    gateway: Target,
    clock: Clock,
}

fn worker(common: &Common, name: &'static str, number: u64) -> BuildWorker {
    let common = common.clone();
    let runtime = tokio::runtime::Handle::current();
    let build = move |role: Role| -> Result<WorkerSpec, Failed> {
        let _guard = runtime.enter();
        let backend = MockBackend::new(device(), mock::no_sleep())?;
        let identity = common.ca.issue(name, &[role])?;
        let hub = common.hub.clone();
        Ok(WorkerSpec {
            name: name.to_owned(),
            node: NodeId(number),
            role,
            slots: 4_096,
            backend: Box::new(backend),
            numerics: "mock".into(),
            start_engine: Box::new(engine::start),
            engine: engine::EngineConfig::default(),
            transfer: Box::new(move |pool, sink| {
                let transfer = InProcess::spawn(&hub, pool, sink).map_err(|error| error.to_string())?;
                Ok(Arc::new(transfer) as Arc<dyn KvTransfer>)
            }),
            limits: HostLimits::default(),
            endpoint: mesh::dial_endpoint(([127, 0, 0, 1], 0).into())?,
            client: mesh::client_config(&identity, &links())?.into(),
            gateways: vec![common.gateway.clone()],
            mesh: links(),
            clock: common.clock,
            admin: None,
        })
    };
    Arc::new(move |role: Role| build(role).map_err(|error| error.to_string()))
}

/// Tokens and events of all answers.
async fn drive(gateway: &GatewayHandle, load: Load) -> Result<(usize, usize), Failed> {
    let (mut tokens, mut events) = (0, 0);
    let mut open = JoinSet::new();
    for nth in 0..load.requests {
        if open.len() >= load.at_a_time
            && let Some(read) = open.join_next().await
        {
            let (some, of) = read??;
            (tokens, events) = (tokens + some, events + of);
        }
        let mut answer = gateway.submit(load.job(nth)).await?;
        open.spawn(async move {
            let (mut tokens, mut events) = (0, 0);
            while let Some(event) = answer.next().await {
                match event {
                    AnswerEvent::Tokens { tokens: more, .. } => {
                        (tokens, events) = (tokens + more.len(), events + 1);
                    }
                    AnswerEvent::Ended {
                        outcome: room::Outcome::Completed(_),
                        ..
                    } => {}
                    AnswerEvent::Ended { outcome, .. } => return Err(format!("{outcome:?}")),
                }
            }
            Ok((tokens, events))
        });
    }
    while let Some(read) = open.join_next().await {
        let (some, of) = read??;
        (tokens, events) = (tokens + some, events + of);
    }
    Ok((tokens, events))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let load = Load::from_arguments()?;
    let ca = Arc::new(DevCa::new()?);
    let identity = ca.issue("gateway", &[Role::Gateway])?;
    let endpoint = mesh::listen_endpoint(([127, 0, 0, 1], 0).into(), &identity, &links())?;
    let target = Target::Address(endpoint.local_addr()?);
    let mut node = Node::start().await?;
    let gateway = node
        .gateway(GatewaySpec {
            name: "gateway".into(),
            node: NodeId(1),
            model: device().name,
            endpoint,
            mesh: links(),
            limits: Limits::default(),
            desk: DeskLimits::default(),
            max_requests: load.requests,
            actor_grace: Span::from_millis(60_000),
        })
        .await?;
    let common = Common {
        ca,
        hub: Hub::new(),
        gateway: target,
        clock: node.clock(),
    };
    for (name, number, role) in [("prefill", 2, Role::Prefill), ("decode", 3, Role::Decode)] {
        node.pool(name.to_owned(), role, worker(&common, name, number))
            .await?;
    }
    while gateway
        .workers()
        .iter()
        .filter(|worker| worker.peer.stats.blocks_total > 0)
        .count()
        < 2
    {
        sleep(Duration::from_millis(5)).await;
    }
    let began = Instant::now();
    let (tokens, events) = drive(&gateway, load).await?;
    let lasted = began.elapsed();
    println!(
        "{} requests, {tokens} tokens in {events} events, {:.1} us a token",
        load.requests,
        lasted.as_secs_f64() * 1e6 / tokens.max(1) as f64
    );
    Ok(())
}
