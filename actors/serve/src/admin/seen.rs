//! What every node's admin listener has, a gateway's and a worker's: metrics, the stays of its own workers, and whether it is well.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use observe::{Exposition, Metrics};
use runtime::{Clock, GatewayHandle, LocalWorkers};
use serde::Serialize;

use super::metrics;
use super::stays::{StayRow, rows};
use crate::telemetry::Counts;

/// What of a node can be seen.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) clock: Clock,
    pub(crate) metrics: Arc<Metrics>,
    /// The node's own workers.
    pub(crate) workers: LocalWorkers,
    /// Its gateway, if it has one.
    pub(crate) gateway: Option<GatewayHandle>,
    /// What became of its traces, if it makes any.
    pub(crate) traces: Option<Arc<Counts>>,
}

/// Whether a node is well.
#[derive(Debug, Serialize)]
struct Health {
    ok: bool,
    /// What is missing, if anything is.
    missing: Option<String>,
    workers: Vec<WorkerHealth>,
}

/// One of its own workers.
#[derive(Debug, Serialize)]
struct WorkerHealth {
    name: String,
    /// Its incarnation; none while none runs.
    node: Option<String>,
    /// Gateways that it is linked with, as of its last heartbeat.
    gateways: usize,
    stays: usize,
    mailbox: usize,
    draining: bool,
}

/// `/metrics`, `/stays` and `/health`.
pub(crate) fn router(seen: Seen) -> Router {
    Router::new()
        .route("/metrics", get(prometheus))
        .route("/stays", get(stays))
        .route("/stays/ended", get(stays_ended))
        .route("/health", get(health))
        .with_state(seen)
}

async fn prometheus(State(seen): State<Seen>, headers: HeaderMap) -> impl IntoResponse {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok());
    let exposition = Exposition::accepted(accept.unwrap_or_default());
    let text = seen.metrics.text(&metrics::levels(&seen), exposition);
    ([(header::CONTENT_TYPE, exposition.content_type())], text)
}

async fn stays(State(seen): State<Seen>) -> Json<Vec<StayRow>> {
    let now = seen.clock.now();
    let all = seen.workers.all();
    Json(all.iter().flat_map(|worker| rows(&worker.stays(), now)).collect())
}

async fn stays_ended(State(seen): State<Seen>) -> Json<Vec<StayRow>> {
    let now = seen.clock.now();
    let ended = seen
        .workers
        .all()
        .into_iter()
        .flat_map(|worker| worker.stays_ended());
    Json(ended.map(|stay| StayRow::new(&stay, now)).collect())
}

/// 200 while the gateway can serve, and each worker is linked with a gateway; 503 otherwise, with what is missing.
async fn health(State(seen): State<Seen>) -> (StatusCode, Json<Health>) {
    let health = Health::of(&seen);
    let status = match health.ok {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, Json(health))
}

impl Health {
    fn of(seen: &Seen) -> Self {
        let workers: Vec<WorkerHealth> = seen.workers.all().iter().map(WorkerHealth::of).collect();
        let gateway = seen.gateway.as_ref().and_then(|gateway| gateway.ready().err());
        let lost = workers.iter().find(|worker| worker.gateways == 0);
        let lost = lost.map(|worker| format!("{} is linked with no gateway", worker.name));
        let missing = gateway.or(lost);
        Self {
            ok: missing.is_none(),
            missing,
            workers,
        }
    }
}

impl WorkerHealth {
    fn of(worker: &runtime::LocalWorker) -> Self {
        let figures = worker.figures();
        Self {
            name: worker.name().to_owned(),
            node: figures.as_ref().map(|figures| figures.node.to_string()),
            gateways: figures.as_ref().map_or(0, |figures| figures.gateways),
            stays: worker.stays().len(),
            mailbox: worker.mailbox(),
            draining: figures.is_some_and(|figures| figures.stats.draining),
        }
    }
}
