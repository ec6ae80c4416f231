//! A gateway's parts, and the doors in front of it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use api::{DoorLimits, Doors, DoorsConfig};
use model::Model;
use room::{DeskLimits, Limits, Span};
use runtime::{GatewayHandle, GatewaySpec, Node};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::Role;

use super::{identity, models, new_node};
use crate::admin;
use crate::config::Config;
use crate::door::Door;

/// A gateway that serves: the handle, and the tasks behind its doors.
pub(crate) struct Serving {
    pub(crate) handle: GatewayHandle,
    doors: JoinSet<Result<()>>,
    stop: CancellationToken,
}

/// Starts the gateway and opens its doors.
pub(crate) async fn start(
    config: &Config,
    name: &str,
    node: &mut Node,
    opened: Arc<Model>,
) -> Result<Serving> {
    let identity = identity::node(config, name, Role::Gateway)?;
    let mesh = super::mesh_config(config)?;
    let endpoint = mesh::listen_endpoint(config.mesh.listen, &identity, &mesh).context("mesh.listen")?;
    let spec = GatewaySpec {
        name: name.to_owned(),
        node: new_node(),
        // Workers say the file's own name; clients may know it by another.
        model: opened.name().to_owned(),
        endpoint,
        mesh,
        limits: limits(config),
        desk: desk_limits(config),
        max_requests: config.api.max_requests,
        actor_grace: Span::from_millis(1_000),
    };
    let handle = node.gateway(spec).await?;
    let served = models::served_name(config, &opened);
    let door = Door::new(handle.clone(), opened, served);
    let stop = CancellationToken::new();
    let mut doors = JoinSet::new();
    doors.spawn(
        admin::serve(
            config.admin.listen,
            handle.clone(),
            stop.clone().cancelled_owned(),
        )
        .await?,
    );
    doors.spawn(api_doors(config, door, &stop).await?);
    Ok(Serving { handle, doors, stop })
}

async fn api_doors(
    config: &Config,
    door: Door,
    stop: &CancellationToken,
) -> Result<impl Future<Output = Result<()>> + use<>> {
    let api = &config.api;
    let limits = api::Limits {
        body_bytes: api.max_body_bytes,
        requests: api.max_requests,
        choices: api.max_n,
        default_timeout: Duration::from_millis(config.limits.request_ms),
        max_timeout: Duration::from_millis(config.limits.request_ms).max(api::Limits::default().max_timeout),
        ..api::Limits::default()
    };
    let doors = Doors::bind(DoorsConfig {
        plain: Some(api.http),
        secure: Some(api.https),
        tls: Some(identity::web(config)?),
        limits: DoorLimits {
            drain: Duration::from_millis(config.limits.shutdown_ms),
            ..DoorLimits::default()
        },
    })
    .await?;
    let router = api::router(Arc::new(door), limits);
    let stop = stop.clone().cancelled_owned();
    Ok(async move {
        let drained = api::serve(doors, router, stop)
            .await
            .context("the clients' doors")?;
        if drained.cut > 0 {
            tracing::warn!(cut = drained.cut, "connections were cut at the end of the grace");
        }
        Ok(())
    })
}

impl Serving {
    /// Waits until a door ends by itself, which it must not.
    pub(crate) async fn failed(&mut self) -> anyhow::Error {
        match self.doors.join_next().await {
            Some(Ok(Err(error))) => error,
            Some(Err(error)) => error.into(),
            Some(Ok(Ok(()))) | None => anyhow::anyhow!("a door was closed"),
        }
    }

    /// Takes no more requests and lets those open finish, up to the grace.
    pub(crate) async fn stop(mut self) {
        self.handle.close();
        self.stop.cancel();
        // Every door bounds its own end by the same grace.
        while self.doors.join_next().await.is_some() {}
    }
}

fn desk_limits(config: &Config) -> DeskLimits {
    DeskLimits {
        queue_rooms: config.limits.queue_rooms,
        // Counted from when the last worker of a role was fenced: a killed one was silent for a lease before.
        no_worker_grace: Span::from_millis(config.mesh.heartbeat_ms),
        ..DeskLimits::default()
    }
}

fn limits(config: &Config) -> Limits {
    let limits = &config.limits;
    let lease = Span::from_millis(config.mesh.lease_ms);
    Limits {
        queue: Span::from_millis(limits.queue_ms),
        reserve: Span::from_millis(limits.reserve_ms),
        prefill_stall: Span::from_millis(limits.prefill_stall_ms),
        pull: Span::from_millis(limits.pull_ms),
        token_stall: Span::from_millis(limits.decode_stall_ms),
        max_faults: limits.attempts,
        // A dead link is found as such first.
        drain_fence: Span {
            micros: lease.micros + lease.micros / 2,
        },
        ..Limits::default()
    }
}
