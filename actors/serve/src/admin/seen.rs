//! What every node's admin listener has, a gateway's and a worker's: metrics, the stays of its own workers, and whether it is well.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use observe::{Exposition, Metrics};
use room::{Span, Time};
use runtime::{Clock, GatewayHandle, LocalWorkers, Vitals, WorkerState};
use serde::Serialize;

use super::moment::Moment;
use super::stays::{StayRow, rows};
use super::{health, metrics};
use crate::renewal::Expiries;
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
    /// Until when its certificates are good.
    pub(crate) expiries: Expiries,
    /// Whether its actors go on.
    pub(crate) vitals: Vitals,
    /// A step of an engine that lasts longer is one that hangs.
    pub(crate) step_limit: Span,
}

/// Whether a node is well.
#[derive(Debug, Serialize)]
struct Health {
    ok: bool,
    /// What is missing, if anything is.
    missing: Option<String>,
    /// The workers that are linked with its gateway; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    linked: Option<Vec<LinkedHealth>>,
    /// Its own workers; absent where there are none, as at a gateway alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    workers: Vec<WorkerHealth>,
}

/// A worker as the gateway sees it.
#[derive(Debug, Serialize)]
struct LinkedHealth {
    name: String,
    role: String,
    /// Since it last reported; absent until it did.
    heard_ms_ago: Option<u64>,
    draining: bool,
}

/// One of its own workers.
#[derive(Debug, Serialize)]
struct WorkerHealth {
    name: String,
    /// Its incarnation; none while none runs.
    node: Option<String>,
    /// Gateways that it is linked with, as of its last heartbeat or the last end of a link.
    gateways: usize,
    /// For how long its engine is in a step, as of its last heartbeat: one that only grows is a step that hangs.
    step_ms: u64,
    stays: usize,
    mailbox: usize,
    /// What it does; none while no incarnation runs.
    role: Option<String>,
    draining: bool,
    /// An operator drained it.
    drained: bool,
}

/// `/metrics`, `/stays`, `/health`, and what probes ask.
pub(crate) fn router(seen: Seen) -> Router {
    Router::new()
        .route("/metrics", get(prometheus))
        .route("/stays", get(stays))
        .route("/stays/ended", get(stays_ended))
        .route("/health", get(health))
        .with_state(seen.clone())
        .merge(health::router(seen))
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
    let moment = Moment::of(seen.clock.now());
    let all = seen.workers.all();
    Json(
        all.iter()
            .flat_map(|worker| rows(&worker.stays(), moment))
            .collect(),
    )
}

/// The latest first.
async fn stays_ended(State(seen): State<Seen>) -> Json<Vec<StayRow>> {
    let moment = Moment::of(seen.clock.now());
    let all = seen.workers.all().into_iter();
    let ended = all.flat_map(|worker| worker.stays_ended().into_iter().rev());
    let mut rows: Vec<StayRow> = ended.map(|stay| StayRow::new(&stay, moment).over()).collect();
    // Of one that went with its worker's incarnation nobody knows when: there was no last step.
    rows.sort_by_key(|row| row.ended_ms_ago.unwrap_or(row.in_phase_ms));
    Json(rows)
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
        let now = seen.clock.now();
        let of_linked = |worker: &WorkerState| LinkedHealth::of(worker, now);
        let linked = seen.gateway.as_ref().map(GatewayHandle::workers);
        Self {
            ok: missing.is_none(),
            missing,
            linked: linked.map(|linked| linked.iter().map(of_linked).collect()),
            workers,
        }
    }
}

impl LinkedHealth {
    fn of(worker: &WorkerState, now: Time) -> Self {
        let peer = &worker.peer;
        Self {
            name: peer.name.clone(),
            role: peer.role.to_string(),
            heard_ms_ago: peer.reported.map(|at| (now - at).as_millis()),
            draining: peer.is_draining(),
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
            step_ms: figures
                .as_ref()
                .map_or(0, |figures| figures.step_lasts.as_millis()),
            stays: worker.stays().len(),
            mailbox: worker.mailbox(),
            role: figures.as_ref().map(|figures| figures.role.to_string()),
            draining: figures.is_some_and(|figures| figures.stats.draining),
            drained: worker.is_drained(),
        }
    }
}
