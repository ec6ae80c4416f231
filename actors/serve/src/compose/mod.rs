//! The composition root: makes the parts a process consists of and runs them until it is told to stop.

mod gateway;
mod identity;
mod models;
mod worker;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use kv::Hub;
use model::Model;
use room::NodeId;
use runtime::Node;
use tracing::info;
use wire::Role;

use crate::cli::UpArgs;
use crate::config::Config;
use crate::{ready, signals};
use worker::Transport;

pub(crate) use models::{open as open_model, served_name};
pub(crate) use worker::ucx;

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
        ..mesh::Config::default()
    };
    mesh::lose(&mesh, &config.mesh.lose).context("mesh.lose")?;
    Ok(mesh)
}

fn name(config: &Config, role: &str) -> String {
    match config.node.name.as_str() {
        "" => format!("{role}-{}", std::process::id()),
        name => name.to_owned(),
    }
}

/// A whole cluster in this process.
pub(crate) async fn up(config: &Config, args: &UpArgs) -> Result<()> {
    let opened = open_model(config).await?;
    let mut node = Node::start().await?;
    let mut serving = gateway::start(config, "gateway-0", &mut node, Arc::clone(&opened)).await?;
    let hub = Hub::default();
    let mut local = config.clone();
    local.mesh.gateways = vec![reachable(config)];
    for (role, count) in [
        (Role::Prefill, args.prefill),
        (Role::Decode, args.decode),
        (Role::Mixed, args.mixed),
    ] {
        for index in 0..count {
            let name = format!("{role}-{index}");
            pool(
                &mut node,
                &local,
                name,
                role,
                &opened,
                Transport::Hub(hub.clone()),
            )
            .await?;
        }
    }
    let served = served_name(config, &opened);
    let announced = ready::announce(config, &served);
    let stop = signals::stop();
    tokio::pin!(announced, stop);
    let mut is_ready = false;
    loop {
        tokio::select! {
            biased;
            () = &mut stop => break,
            why = node.ended() => bail!("the node ended: {why}"),
            error = serving.failed() => return Err(error),
            ready = &mut announced, if !is_ready => { ready?; is_ready = true; }
        }
    }
    info!("stopping: no new requests, streams may finish");
    serving.stop().await;
    Ok(())
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
    name: String,
    role: Role,
    model: &Arc<Model>,
    transport: Transport,
) -> Result<()> {
    // A mistake in the configuration is told at once; the pool would try again and again.
    worker::check(config, model)?;
    let clock = node.clock();
    let recipe = worker::recipe(config, name.clone(), role, Arc::clone(model), transport, clock);
    Ok(node.pool(name, recipe).await?)
}

/// Waits for whatever ends a process from outside.
async fn told_to_stop(with_stdin: bool) {
    if with_stdin {
        tokio::select! {
            biased;
            () = signals::stop() => {}
            () = signals::parent_gone() => {}
        }
    } else {
        signals::stop().await;
    }
}

/// A gateway alone.
pub(crate) async fn gateway(config: &Config, stops_with_stdin: bool) -> Result<()> {
    let opened = open_model(config).await?;
    let mut node = Node::start().await?;
    let mut serving = gateway::start(config, &name(config, "gateway"), &mut node, opened).await?;
    info!(http = %config.api.http, https = %config.api.https, mesh = %config.mesh.listen, "the gateway listens");
    tokio::select! {
        biased;
        () = told_to_stop(stops_with_stdin) => {}
        why = node.ended() => bail!("the node ended: {why}"),
        error = serving.failed() => return Err(error),
    }
    info!("stopping: no new requests, streams may finish");
    serving.stop().await;
    Ok(())
}

/// A worker alone.
pub(crate) async fn worker(config: &Config, stops_with_stdin: bool) -> Result<()> {
    let role = worker::wire_role(config.worker.role);
    let opened = open_model(config).await?;
    let transport = match role {
        // It pulls from nobody, and nobody pulls from it.
        Role::Mixed => Transport::Hub(Hub::default()),
        _ => Transport::Ucx(ucx(config).await?),
    };
    let mut node = Node::start().await?;
    pool(
        &mut node,
        config,
        name(config, role.name()),
        role,
        &opened,
        transport,
    )
    .await?;
    tokio::select! {
        biased;
        () = told_to_stop(stops_with_stdin) => {}
        why = node.ended() => bail!("the node ended: {why}"),
    }
    info!("stopping: no new rooms; what is here may finish");
    node.drain_within(worker::drain_grace(config)).await;
    node.leave().await;
    Ok(())
}
