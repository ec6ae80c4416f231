//! The composition root: makes the parts a process consists of and runs them until it is told to stop.

mod backend;
mod door;
mod gateway;
mod identity;
mod models;
mod observing;
mod recipe;
mod shelf;
mod worker;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use kv::Hub;
use model::ModelFile;
use room::NodeId;
use runtime::Node;
use tracing::{info, warn};
use wire::Role;

use crate::cli::UpArgs;
use crate::config::{Config, WorkerRole};
use crate::renewal::Renewals;
use crate::signals::Signals;
use crate::telemetry::{Telemetry, Who};
use crate::{admin, ports, ready};
use door::AdminDoor;
use gateway::Serving;
use observing::Observing;
use recipe::{Place, Transport, recipe};

pub(crate) use identity::{issue_web, write_secret};
use models::open_file;
pub(crate) use models::{open as open_model, served_name};
pub(crate) use worker::{check as check_worker, check_settings as check_worker_settings, ucx, wire_role};

/// A new incarnation: the time in microseconds, so that later ones sort behind earlier ones, with random low bits, so that two of one
/// moment differ.
fn new_node() -> NodeId {
    let micros = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros());
    let time = u64::try_from(micros).unwrap_or(u64::MAX) << 12;
    NodeId(time | u64::from(rand::random::<u16>() & 0xfff))
}

fn mesh_config(config: &Config) -> Result<mesh::Config> {
    let mesh = mesh::Config {
        heartbeat: Duration::from_millis(config.mesh.heartbeat_ms),
        lease: Duration::from_millis(config.mesh.lease_ms),
        #[cfg(feature = "faults")]
        faults: Arc::clone(&crate::faults::SWITCHES.mesh),
        ..mesh::Config::default()
    };
    #[cfg(feature = "faults")]
    anyhow::Context::context(mesh::lose(&mesh, &config.mesh.lose), "mesh.lose")?;
    Ok(mesh)
}

fn name(config: &Config, role: &str) -> String {
    match config.node.name.as_str() {
        "" => format!("{role}-{}", std::process::id()),
        name => name.to_owned(),
    }
}

/// A whole cluster in this process.
pub(crate) async fn up(
    config: &Config,
    args: &UpArgs,
    telemetry: Option<Telemetry>,
    stops_with_stdin: bool,
) -> Result<()> {
    args.check()?;
    ports::check(config)?;
    #[cfg(feature = "faults")]
    crate::faults::open(&config.faults.listen).await?;
    let mut local = config.clone();
    local.mesh.gateways = vec![reachable(config)];
    check_worker_settings(&local)?;
    let opened = open_model(config).await?;
    // A mistake in the configuration is told at once; a pool would try again and again.
    check_worker(&local, opened.file())?;
    let workers: Vec<(String, Role)> = args.workers().into_iter().flat_map(named).collect();
    let gateway = who(GATEWAY, Role::Gateway);
    let nodes = workers.iter().map(|(name, role)| who(name, *role));
    let nodes = [gateway].into_iter().chain(nodes).collect();
    let (mut node, observing) = Observing::start(config, telemetry, nodes).await?;
    let mut renewals = Renewals::new(observing.expiries());
    let seen = (&observing, &mut renewals);
    let mut serving = gateway::start(config, GATEWAY, &mut node, Arc::clone(&opened), seen).await?;
    let mut signals = Signals::listen();
    let hub = Hub::default();
    for (name, role) in workers {
        let place = Place {
            name,
            role,
            transport: Transport::Hub(hub.clone()),
            admin: serving.admin(),
        };
        pool(&mut node, &local, place, opened.file(), &mut renewals).await?;
    }
    let served = served_name(config, &opened);
    {
        let announced = ready::announce(config, &served);
        let told = signals.next_or_end_of(stops_with_stdin);
        tokio::pin!(announced, told);
        let mut is_ready = false;
        loop {
            tokio::select! {
                biased;
                () = &mut told => break,
                why = node.ended() => bail!("the node ended: {why}"),
                error = serving.failed() => return Err(error),
                ready = &mut announced, if !is_ready => { ready?; is_ready = true; }
            }
        }
    }
    signals.orderly(end(serving, &node, observing)).await
}

/// The name of the gateway of a whole cluster in one process.
const GATEWAY: &str = "gateway-0";

fn named((role, count): (WorkerRole, u8)) -> impl Iterator<Item = (String, Role)> {
    let role = wire_role(role);
    (0..count).map(move |index| (format!("{role}-{index}"), role))
}

fn who(name: &str, role: Role) -> Who {
    Who {
        name: name.to_owned(),
        role: role.name(),
    }
}

async fn end(serving: Serving, node: &Node, observing: Observing) {
    serving.stop(node).await;
    observing.finish().await;
}

/// Where workers of this machine reach the gateway that listens as configured.
pub(crate) fn reachable(config: &Config) -> String {
    let mut address = config.mesh.listen;
    if address.ip().is_unspecified() {
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    address.to_string()
}

async fn pool(
    node: &mut Node,
    config: &Config,
    place: Place,
    model: &Arc<ModelFile>,
    renewals: &mut Renewals,
) -> Result<()> {
    let (clock, name, role) = (node.clock(), place.name.clone(), place.role);
    let recipe = recipe(config, place, Arc::clone(model), clock, renewals)?;
    Ok(node.pool(name, role, recipe).await?)
}

/// A gateway alone.
pub(crate) async fn gateway(
    config: &Config,
    telemetry: Option<Telemetry>,
    stops_with_stdin: bool,
) -> Result<()> {
    ports::check(config)?;
    #[cfg(feature = "faults")]
    crate::faults::open(&config.faults.listen).await?;
    let opened = open_model(config).await?;
    let name = name(config, "gateway");
    let nodes = vec![who(&name, Role::Gateway)];
    let (mut node, observing) = Observing::start(config, telemetry, nodes).await?;
    let mut renewals = Renewals::new(observing.expiries());
    let seen = (&observing, &mut renewals);
    let mut serving = gateway::start(config, &name, &mut node, opened, seen).await?;
    let mut signals = Signals::listen();
    info!(http = %config.api.http, https = %config.api.https, mesh = %config.mesh.listen, admin = %config.admin.listen, "the gateway listens");
    tokio::select! {
        biased;
        () = signals.next_or_end_of(stops_with_stdin) => {}
        why = node.ended() => bail!("the node ended: {why}"),
        error = serving.failed() => return Err(error),
    }
    signals.orderly(end(serving, &node, observing)).await
}

/// A worker alone.
pub(crate) async fn worker(
    config: &Config,
    telemetry: Option<Telemetry>,
    stops_with_stdin: bool,
) -> Result<()> {
    check_worker_settings(config)?;
    #[cfg(feature = "faults")]
    crate::faults::open(&config.faults.listen).await?;
    let role = wire_role(config.worker.role);
    let name = name(config, role.name());
    // As the pool will again for every worker it builds: what is wrong with it is told at once.
    identity::node(config, &name, role)?;
    let opened = open_file(config).await?;
    check_worker(config, &opened)?;
    let ucx = match role {
        // It pulls from nobody, and nobody pulls from it.
        Role::Mixed => None,
        _ => Some(ucx(config).await?),
    };
    let nodes = vec![who(&name, role)];
    let (mut node, observing) = Observing::start(config, telemetry, nodes).await?;
    let mut signals = Signals::listen();
    let router = admin::guarded(admin::worker_router(observing.seen(&node, None)), config)?;
    let mut door = AdminDoor::open(ports::worker_admin(config), router).await?;
    info!(admin = %door.address(), "the worker's admin listener");
    let mut renewals = Renewals::new(observing.expiries());
    let place = Place {
        name,
        role,
        transport: Transport::own(ucx),
        admin: door.address(),
    };
    pool(&mut node, config, place, &opened, &mut renewals).await?;
    tokio::select! {
        biased;
        () = signals.next_or_end_of(stops_with_stdin) => {}
        why = node.ended() => bail!("the node ended: {why}"),
        error = door.failed() => return Err(error),
    }
    info!("stopping: no new rooms; what is here may finish");
    let leaving = async {
        if !node.drain_within(worker::drain_grace(config)).await {
            warn!("what is still here at the end of the grace goes on elsewhere");
        }
        node.leave().await;
        observing.finish().await;
        // To be seen until the end.
        door.close().await;
    };
    signals.orderly(leaving).await
}
