//! Building a worker: engine, transfer, dialer, and the actor's state around them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use engine::{Backend, EngineConfig, EngineHandle, KvPool};
use kv::KvTransfer;
use mesh::{Dialer, Target};
use ractor::{ActorProcessingErr, ActorRef};
use room::{Host, HostCounters, HostInput, HostLimits, HostSpec, NodeId, Time};
use wire::{Hello, Role};

use super::content::Contents;
use super::inbox::{Inward, News, inbox};
use super::outbox::Outbox;
use super::state::State;
use super::transfer::LastOf;
use super::{Because, WorkerArguments, WorkerMessage};
use crate::alarm::Alarm;
use crate::clock::Clock;
use crate::convert::count;

/// Commands that a slot may have waiting for the end of a step: a start, a few grows, a stop that is repeated while the step lasts.
const COMMANDS_A_SLOT: u32 = 16;

/// Makes the transfer for a pool; its events go to the sink.
pub type BuildTransfer =
    Box<dyn FnOnce(Arc<KvPool>, kv::EventSink) -> Result<Arc<dyn KvTransfer>, String> + Send>;

/// Sets the engine going; its events go to the sink. [`engine::start`] gives it a thread.
pub type StartEngine = Box<
    dyn FnOnce(Box<dyn Backend>, EngineConfig, engine::EventSink) -> std::io::Result<EngineHandle> + Send,
>;

/// What a worker is made of.
pub struct WorkerSpec {
    /// Its name, for people; unique among the workers of a gateway.
    pub name: String,
    /// Its incarnation: new each time a worker is built.
    pub node: NodeId,
    /// What it does. Never [`Role::Gateway`].
    pub role: Role,
    /// Sequences in the engine at once.
    pub slots: u32,
    /// The device with the model on it.
    pub backend: Box<dyn Backend>,
    /// Names the backend's numerics, for people.
    pub numerics: String,
    /// How the engine batches; its limits on sequences and commands are raised to what `slots` needs where they are lower.
    pub engine: EngineConfig,
    /// How the engine runs.
    pub start_engine: StartEngine,
    /// How KV moves.
    pub transfer: BuildTransfer,
    /// How long things may take on this worker.
    pub limits: HostLimits,
    /// Where to dial from.
    pub endpoint: quinn::Endpoint,
    /// How to dial.
    pub client: mesh::Credentials,
    /// The gateways.
    pub gateways: Vec<Target>,
    /// Times and limits of the links.
    pub mesh: mesh::Config,
    /// The node's clock.
    pub clock: Clock,
    /// The admin listener of its process, if there is one: gateways show where it is.
    pub admin: Option<SocketAddr>,
}

/// An engine's limits, raised to what so many slots need.
fn for_slots(config: EngineConfig, slots: u32) -> EngineConfig {
    EngineConfig {
        max_sequences: config.max_sequences.max(slots),
        command_queue: config.command_queue.max(slots.saturating_mul(COMMANDS_A_SLOT)),
        ..config
    }
}

/// Tells the worker that a deadline of its passes.
fn alarm(clock: Clock, worker: ActorRef<WorkerMessage>) -> Alarm {
    Alarm::spawn(clock, move || {
        // An actor that is gone has no deadlines.
        let _ = worker.cast(WorkerMessage::Deadline);
    })
}

/// One that takes rooms, or that drains from its first moment on.
fn host(spec: HostSpec, drains: bool, now: Time) -> Host {
    let mut host = Host::new(spec);
    if drains {
        host.handle_input(now, HostInput::Drain);
    }
    host
}

/// Starts everything and gives the actor's state. May block while the transfer opens. To be called within a runtime.
pub(super) fn start(
    myself: &ActorRef<WorkerMessage>,
    arguments: WorkerArguments,
) -> Result<State, ActorProcessingErr> {
    let WorkerArguments {
        spec,
        recorder,
        board,
        drains,
        pool: supervisor,
    } = arguments;
    let (inbox, reader) = inbox(myself.clone(), Arc::clone(&board));
    let model = spec.backend.spec().clone();
    let pool = spec.backend.pool();
    let shape = pool.shape();
    let news = Arc::clone(&inbox);
    let kv_events = Arc::new(move |event| news.push(News::Kv(event)));
    let transfer = (spec.transfer)(Arc::clone(&pool), kv_events)?;
    let news = Arc::clone(&inbox);
    let engine_events = Arc::new(move |event| news.push(News::Engine(event)));
    let engine = for_slots(spec.engine, spec.slots);
    let engine = (spec.start_engine)(spec.backend, engine, engine_events)?;
    let hosted = HostSpec {
        block_tokens: count(shape.block_tokens),
        blocks: shape.blocks,
        slots: spec.slots,
        mixed: spec.role == Role::Mixed,
        limits: spec.limits,
    };
    let host = host(hosted, drains.is_some(), spec.clock.now());
    let hello = Hello {
        min_version: wire::MIN_VERSION,
        max_version: wire::VERSION,
        node: spec.name.clone(),
        epoch: spec.node.0,
        role: spec.role,
        model: model.name,
        layout_hash: model.layout_hash,
        block_tokens: count(shape.block_tokens),
        blocks: shape.blocks,
        slots: spec.slots,
        context_tokens: model.context_tokens,
        kv_address: transfer.address().0,
        numerics: spec.numerics,
        faults: mesh::FAULTS,
    };
    let links = Arc::new(Inward(inbox));
    let dialer = Dialer::start(spec.endpoint, spec.client, spec.gateways, hello, links, spec.mesh);
    Ok(State {
        name: spec.name.into(),
        node: spec.node,
        role: spec.role,
        because: drains.unwrap_or(Because::Stops),
        supervisor,
        clock: spec.clock,
        host,
        contents: Contents::default(),
        engine,
        step_overdue: None,
        _last: LastOf::new(&transfer),
        transfer,
        reads: BTreeMap::new(),
        next_read: 1,
        outbox: Outbox::new(recorder.clone(), spec.clock),
        counted: HostCounters::default(),
        alarm: alarm(spec.clock, myself.clone()),
        inbox: reader,
        untold: RefCell::default(),
        gone: Vec::new(),
        dialer: Some(dialer),
        admin: spec.admin,
        recorder,
        board,
    })
}
