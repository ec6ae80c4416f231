//! A gateway's parts, and the doors in front of it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use api::{BindError, DoorLimits, Doors, DoorsConfig};
use model::Model;
use room::{DeskLimits, Limits, Span};
use runtime::{GatewayHandle, GatewaySpec, Node};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};
use wire::Role;

use super::door::OPERATORS;
use super::observing::Observing;
use super::{identity, models, new_node};
use crate::config::Config;
use crate::door::Door;
use crate::keys::Ring;
use crate::renewal::Renewals;
use crate::{admin, cors, files, keys, ports};

/// Who comes through the doors that are of the API.
const CLIENTS: &str = "clients";

/// How long the doors may take to hand over what has ended by then.
const FLUSH: Duration = Duration::from_secs(2);

/// A gateway that serves: the handle, the requests under way, and the tasks behind its doors.
pub(crate) struct Serving {
    handle: GatewayHandle,
    guests: TaskTracker,
    doors: JoinSet<Result<()>>,
    /// Clients are sent elsewhere.
    leave: CancellationToken,
    stop: CancellationToken,
    grace: Duration,
    admin: SocketAddr,
}

/// Starts the gateway and opens its doors.
pub(crate) async fn start(
    config: &Config,
    name: &str,
    node: &mut Node,
    opened: Arc<Model>,
    (observing, renewals): (&Observing, &mut Renewals),
) -> Result<Serving> {
    let mesh = super::mesh_config(config)?;
    let endpoint = listen(config, name, renewals)?;
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
    #[cfg(feature = "faults")]
    crate::faults::SWITCHES.gateway(handle.clone());
    let served = models::served_name(config, &opened);
    let guests = TaskTracker::new();
    let stop = CancellationToken::new();
    let about = admin::About {
        name: name.to_owned(),
        model: served.clone(),
        jaeger: Some(config.tracing.ui.clone()).filter(|ui| !ui.is_empty()),
        roster: observing.roster(),
        pulse: observing.pulse(),
        stop: stop.clone(),
    };
    let seen = observing.seen(node, Some(handle.clone()));
    let door = Door::new(handle.clone(), opened, served, guests.clone());
    let mut serving = Serving {
        handle: handle.clone(),
        guests,
        doors: JoinSet::new(),
        leave: CancellationToken::new(),
        stop,
        grace: Duration::from_millis(config.limits.shutdown_ms),
        admin: config.admin.listen,
    };
    let router = api::router(Arc::new(door), request_limits(config));
    let router = serving.locked(config, router)?;
    serving
        .open(config, CLIENTS, clients(config, renewals)?, router)
        .await?;
    let router = admin::guarded(admin::router(handle, about, seen), config)?;
    let bound = serving
        .open(config, "operators", operators_doors(config), router)
        .await?;
    serving.admin = bound.unwrap_or(config.admin.listen);
    Ok(serving)
}

/// Where workers are taken. What is shown to them is looked at from now on.
fn listen(config: &Config, name: &str, renewals: &mut Renewals) -> Result<quinn::Endpoint> {
    let files = identity::node_files(config);
    let identity = identity::node(config, name, Role::Gateway)?;
    let mesh = super::mesh_config(config)?;
    let listening = mesh::listen_endpoint(config.mesh.listen, &identity, &mesh);
    let endpoint = listening.map_err(|error| match &error {
        mesh::BindError::Address { error, .. } => ports::mesh(config).refused(error),
        _ => anyhow::Error::new(error).context("mesh.certs"),
    })?;
    if let Some(files) = files {
        let (config, name, endpoint) = (config.clone(), name.to_owned(), endpoint.clone());
        renewals.watch("mesh", files, Box::new(move || renew(&config, &name, &endpoint)));
    }
    Ok(endpoint)
}

/// The doors of clients. What is shown to them is looked at from now on.
fn clients(config: &Config, renewals: &mut Renewals) -> Result<DoorsConfig> {
    let files = identity::web_files(config);
    let tls = identity::web(config)?;
    if let Some(files) = files {
        let (config, tls) = (config.clone(), tls.clone());
        renewals.watch("api", files, Box::new(move || identity::renew_web(&config, &tls)));
    }
    Ok(DoorsConfig {
        plain: Some(config.api.http),
        secure: Some(config.api.https),
        tls: Some(tls),
        public_port: Some(config.api.public_port).filter(|port| *port != 0),
        limits: DoorLimits {
            connections: files::connections(DoorLimits::default().connections),
            ..door_limits(config)
        },
    })
}

/// Shows workers what is in the files now.
fn renew(config: &Config, name: &str, endpoint: &quinn::Endpoint) -> Result<()> {
    let identity = identity::node(config, name, Role::Gateway)?;
    let server = mesh::server_config(&identity, &super::mesh_config(config)?).context("mesh.certs")?;
    endpoint.set_server_config(Some(server));
    Ok(())
}

impl Serving {
    /// The clients' router for those who have a key, where keys are asked for, and for pages of the web that may ask. What a page is allowed
    /// it is told before it shows a key.
    fn locked(&mut self, config: &Config, router: axum::Router) -> Result<axum::Router> {
        let api = &config.api;
        if api.keys.is_empty() {
            let open = [api.http, api.https]
                .into_iter()
                .find(|address| !address.ip().is_loopback());
            if let Some(address) = open {
                warn!(%address, "whoever reaches this door is served: api.keys names no file");
            }
            return Ok(cors::shared(router, &api.cors));
        }
        let ring = Arc::new(Ring::open(Path::new(&api.keys))?);
        let following = Arc::clone(&ring).follow(self.stop.clone());
        // Ends with the stop, as the doors do.
        self.doors.spawn(async move {
            following.await;
            Ok(())
        });
        Ok(cors::shared(keys::guarded(router, ring), &api.cors))
    }

    /// Opens doors for these people, served until the stop; gives where the plain one is.
    async fn open(
        &mut self,
        config: &Config,
        people: &'static str,
        doors: DoorsConfig,
        router: axum::Router,
    ) -> Result<Option<SocketAddr>> {
        let doors = Doors::bind(doors).await.map_err(|error| match &error {
            BindError::Listen { addr, source, .. } => {
                // The later one, where two have the same address.
                let port = ports::all(config).into_iter().rfind(|port| port.address == *addr);
                port.map_or_else(|| anyhow::anyhow!("{error}"), |port| port.refused(source))
            }
            _ => anyhow::anyhow!("{error}"),
        })?;
        let plain = doors.plain_addr();
        let leave = match people {
            CLIENTS => self.leave.clone(),
            // They watch it to the end.
            _ => CancellationToken::new(),
        };
        let (leave, stop) = (leave.cancelled_owned(), self.stop.clone().cancelled_owned());
        self.doors.spawn(async move {
            let drained = api::serve(doors, router, leave, stop).await;
            let cut = drained.with_context(|| format!("the doors of {people}"))?.cut;
            if cut > 0 {
                warn!(people, cut, "connections were cut at the end of the grace");
            }
            Ok(())
        });
        Ok(plain)
    }

    /// Where operators find this process.
    pub(crate) fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Waits until a door ends by itself, which it must not.
    pub(crate) async fn failed(&mut self) -> anyhow::Error {
        match self.doors.join_next().await {
            Some(Ok(Err(error))) => error,
            Some(Err(error)) => error.into(),
            Some(Ok(Ok(()))) | None => anyhow::anyhow!("a door was closed"),
        }
    }

    /// Refuses what is new, at open doors, and sends clients elsewhere while requests under way finish; what has not by the end of the grace is ended; then
    /// closes the doors.
    pub(crate) async fn stop(mut self, node: &Node) {
        info!(
            open = self.guests.len(),
            "stopping: no new requests, open ones may finish"
        );
        self.guests.close();
        self.handle.close();
        self.leave.cancel();
        let patience = self.grace.saturating_sub(flush(self.grace));
        if timeout(patience, self.guests.wait()).await.is_err() {
            warn!(
                open = self.guests.len(),
                "requests are ended at the end of the grace"
            );
            self.handle.end_all();
        }
        self.stop.cancel();
        // Every door bounds its own end by the rest of the grace: see `door_limits`.
        while self.doors.join_next().await.is_some() {}
        // Workers give this gateway's rooms back now, and do not wait out the lease.
        node.leave().await;
    }
}

fn operators_doors(config: &Config) -> DoorsConfig {
    DoorsConfig {
        plain: Some(config.admin.listen),
        limits: DoorLimits {
            connections: OPERATORS,
            ..door_limits(config)
        },
        ..DoorsConfig::default()
    }
}

/// Of the grace, what is kept for the doors.
fn flush(grace: Duration) -> Duration {
    FLUSH.min(grace / 4)
}

fn door_limits(config: &Config) -> DoorLimits {
    DoorLimits {
        drain: flush(Duration::from_millis(config.limits.shutdown_ms)),
        ..DoorLimits::default()
    }
}

fn request_limits(config: &Config) -> api::Limits {
    let (api, request) = (&config.api, Duration::from_millis(config.limits.request_ms));
    let defaults = api::Limits::default();
    api::Limits {
        body_bytes: api.max_body_bytes,
        requests: api.max_requests,
        choices: api.max_n,
        default_timeout: request,
        max_timeout: request.max(defaults.max_timeout),
        ..defaults
    }
}

fn desk_limits(config: &Config) -> DeskLimits {
    DeskLimits {
        queue_rooms: config.limits.queue_rooms,
        // Counted from when the last worker of a role was fenced: a killed one was silent for a lease before.
        no_worker_grace: Span::from_millis(config.mesh.heartbeat_ms),
        begun_grace: Span::from_millis(config.limits.queue_ms),
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
        unread_tokens: limits.unread_tokens,
        max_faults: limits.attempts,
        // A dead link is found as such first.
        drain_fence: Span {
            micros: lease.micros + lease.micros / 2,
        },
        ..Limits::default()
    }
}
