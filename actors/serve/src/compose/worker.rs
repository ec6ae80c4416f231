//! A worker's parts: the device with the model on it, the KV transfer, the way to its gateways.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use engine::{EngineConfig, KvPool, PoolShape};
use kv::{Hub, InProcess, KvTransfer};
use kv_ucx::{Ucx, UcxConfig, UcxTransfer};
use mesh::{Credentials, Target};
use model::ModelFile;
use room::{HostLimits, Span};
use runtime::{BuildTransfer, Clock, WorkerSpec};
use tracing::instrument;
use wire::Role;

use super::recipe::Place;
use super::shelf::Kept;
use super::{backend, new_node};
use crate::config::{Config, WorkerRole};
use crate::{memory, paths, progress};

/// What carries a worker's KV.
pub(super) enum Carrier {
    /// Memory of this process.
    Hub(Hub),
    /// UCX.
    Ucx(Arc<Ucx>),
}

/// A worker of a backend and what carries its KV.
pub(super) fn parts(
    config: &Config,
    place: &Place,
    (role, clock): (Role, Clock),
    (backend, numerics): Kept,
    carrier: Carrier,
    credentials: &Credentials,
) -> Result<WorkerSpec> {
    Ok(WorkerSpec {
        name: place.name.clone(),
        node: new_node(),
        role,
        slots: config.worker.slots,
        backend,
        numerics,
        start_engine: Box::new(engine::start),
        engine: engine_config(config),
        transfer: transfer(config, carrier),
        limits: host_limits(config),
        endpoint: mesh::dial_endpoint(dial_from(config))?,
        client: credentials.clone(),
        gateways: targets(config)?,
        mesh: super::mesh_config(config)?,
        clock,
        admin: Some(place.admin),
    })
}

/// Whether a worker can be built with these settings, as far as that can be told without a model.
pub(crate) fn check_settings(config: &Config) -> Result<()> {
    targets(config)?;
    let bind = config.ucx.bind;
    let bound = TcpListener::bind((bind, 0));
    bound.with_context(|| format!("ucx.bind is {bind}: it must be an address of this machine"))?;
    let pool_mib = config.worker.pool_mib;
    if let Some(memory_mib) = memory::total_mib().filter(|memory_mib| pool_mib > *memory_mib) {
        bail!(
            "worker.pool_mib is {pool_mib}: it must be less than the memory there is, which is {memory_mib} MiB"
        );
    }
    Ok(())
}

/// Whether it can with this model, as far as that can be told before its weights are loaded.
pub(crate) fn check(config: &Config, model: &ModelFile) -> Result<()> {
    backend::shape(config, model).map(|_| ())
}

fn targets(config: &Config) -> Result<Vec<Target>> {
    let targets: Result<Vec<Target>, _> = config.mesh.gateways.iter().map(|target| target.parse()).collect();
    targets.context("mesh.gateways")
}

/// Gateways of one family can be dialled from one socket: IPv6 where an address says so, else IPv4.
fn dial_from(config: &Config) -> SocketAddr {
    let mut addresses = config.mesh.gateways.iter().flat_map(|target| target.parse());
    match addresses.any(|address: SocketAddr| address.is_ipv6()) {
        true => (Ipv6Addr::UNSPECIFIED, 0).into(),
        false => (Ipv4Addr::UNSPECIFIED, 0).into(),
    }
}

fn transfer(config: &Config, carrier: Carrier) -> BuildTransfer {
    let ucx = ucx_config(config);
    Box::new(move |pool: Arc<KvPool>, sink| match carrier {
        Carrier::Hub(hub) => {
            let transfer = InProcess::spawn(&hub, pool, sink).map_err(|error| error.to_string())?;
            Ok(Arc::new(transfer) as Arc<dyn KvTransfer>)
        }
        Carrier::Ucx(library) => {
            #[cfg(feature = "faults")]
            let memory = Arc::clone(&pool);
            let start =
                |sink| UcxTransfer::start(&library, ucx, pool, sink).map_err(|error| error.to_string());
            #[cfg(feature = "faults")]
            return crate::faults::SWITCHES.around(memory, sink, start);
            #[cfg(not(feature = "faults"))]
            start(sink).map(|transfer| Arc::new(transfer) as Arc<dyn KvTransfer>)
        }
    })
}

fn engine_config(config: &Config) -> EngineConfig {
    let tokens = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    EngineConfig {
        step_tokens: tokens(config.worker.step_tokens),
        chunk_tokens: tokens(config.worker.chunk_tokens),
        max_sequences: config.worker.slots,
        ..EngineConfig::default()
    }
}

/// A worker's own deadlines lie behind its gateways' ones.
fn host_limits(config: &Config) -> HostLimits {
    let behind = |ms: u64| Span::from_millis(ms.saturating_add(config.mesh.lease_ms));
    HostLimits {
        prefill_no_progress: behind(config.limits.prefill_stall_ms),
        published: behind(config.limits.pull_ms),
        pull: behind(config.limits.pull_ms),
        stall: behind(config.limits.decode_stall_ms),
        ..HostLimits::default()
    }
}

fn ucx_config(config: &Config) -> UcxConfig {
    let set = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    UcxConfig {
        tls: set(&config.ucx.tls),
        net_devices: set(&config.ucx.net_devices),
        bind: config.ucx.bind,
        no_progress_ms: config.ucx.no_progress_ms,
    }
}

/// UCX: as configured, the system's, the cache's, or fetched into the cache; and whether it starts with these settings, which a worker
/// would only find when its weights are loaded.
#[instrument(name = "load_ucx", skip_all)]
pub(crate) async fn ucx(config: &Config) -> Result<Arc<Ucx>> {
    let cache = paths::ucx(config)?;
    let library = config.ucx.library.clone();
    let found = tokio::task::spawn_blocking(move || load_or_fetch(&library, &cache)).await?;
    let ucx = found.context(
        "prefill and decode in different processes need UCX: install it (Debian, Ubuntu: libucx0), or give its path with \
         --set ucx.library=PATH; `innkeeper up` without --processes needs none",
    )?;
    let tried = config.clone();
    tokio::task::spawn_blocking(move || good(&tried, ucx)).await?
}

/// The same for a worker that runs without and is to have a role which needs it: blocks for a moment, and fetches nothing.
pub(super) fn ucx_here(config: &Config) -> Result<Arc<Ucx>> {
    let (given, cache) = (&config.ucx.library, paths::ucx(config)?);
    let given = (!given.is_empty()).then(|| Path::new(given));
    let ucx = Ucx::load(given, Some(&cache)).context(
        "prefill and decode in different processes need UCX, which is not here: install it (Debian, Ubuntu: libucx0), or start the worker \
         anew in that role, which fetches it",
    )?;
    good(config, ucx)
}

/// UCX, if it starts with these settings. Bounded: `UcxTransfer::start` gives up when UCX hangs.
fn good(config: &Config, ucx: Ucx) -> Result<Arc<Ucx>> {
    tracing::info!(version = ucx.version(), library = %ucx.path().display(), "UCX is loaded");
    try_ucx(&ucx, ucx_config(config)).map_err(|why| {
        let ucx = &config.ucx;
        anyhow!(
            "UCX does not start with ucx.tls = {:?}, ucx.net_devices = {:?} and ucx.bind = {}: {why} \
             (an empty one is UCX_TLS or UCX_NET_DEVICES, if set)",
            ucx.tls,
            ucx.net_devices,
            ucx.bind
        )
    })?;
    Ok(Arc::new(ucx))
}

/// Starts a transfer of nothing, and ends it.
fn try_ucx(library: &Ucx, settings: UcxConfig) -> Result<()> {
    let smallest = PoolShape {
        blocks: 1,
        block_tokens: 1,
        layers: 1,
        kv_heads: 1,
        head_dim: 1,
    };
    let pool = KvPool::new(smallest)?;
    drop(UcxTransfer::start(library, settings, pool, Arc::new(|_| ()))?);
    Ok(())
}

/// Blocks while a wheel is fetched; the fetch bounds itself.
fn load_or_fetch(library: &str, cache: &Path) -> Result<Ucx> {
    let given = (!library.is_empty()).then(|| Path::new(library));
    match Ucx::load(given, Some(cache)) {
        Ok(ucx) => Ok(ucx),
        Err(error) if given.is_some() => Err(error.into()),
        Err(error) => {
            tracing::info!(%error, "no UCX here: fetching it");
            let mut bar = progress::Bar::new("fetching UCX");
            let fetched = kv_ucx::fetch_wheel(cache, &mut |done, total| bar.update(done, total));
            let path = fetched.context("UCX is not installed and cannot be fetched")?;
            Ok(Ucx::load(Some(&path), None)?)
        }
    }
}

/// The role as links know it.
pub(crate) fn wire_role(role: WorkerRole) -> Role {
    match role {
        WorkerRole::Prefill => Role::Prefill,
        WorkerRole::Decode => Role::Decode,
        WorkerRole::Mixed => Role::Mixed,
    }
}

/// How long a worker that was told to stop may go on with what it has.
pub(crate) fn drain_grace(config: &Config) -> Duration {
    Duration::from_millis(config.limits.shutdown_ms)
}
