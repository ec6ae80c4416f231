//! What whoever runs the process asks: is it alive, has it started, is it ready. One word, or what is missing, and a status; for
//! probes, which can bear no more.
//!
//! * `/health/live`: its own actors go on. No peer has a part in it: a process is not to be restarted because another one is gone.
//! * `/health/started`: what takes its time at the start is done, the model above all.
//! * `/health/ready`: a gateway can place a request; a worker is one that a gateway counts on. A process that stops is ready until it ends:
//!   what is under way still comes through it. A worker alone that an operator drained is not, until it takes
//!   rooms again.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use room::Span;

use super::seen::Seen;

/// How long its actors may take for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The three.
pub(super) fn router(seen: Seen) -> Router {
    Router::new()
        .route("/health/live", get(live))
        .route("/health/started", get(started))
        .route("/health/ready", get(ready))
        .with_state(seen)
}

type Probed = (StatusCode, String);

fn probed(missing: Option<String>, is: &str) -> Probed {
    match missing {
        None => (StatusCode::OK, format!("{is}\n")),
        Some(missing) => (StatusCode::SERVICE_UNAVAILABLE, missing + "\n"),
    }
}

async fn live(State(seen): State<Seen>) -> Probed {
    let silent = seen.vitals.silent(PATIENCE).await;
    let missing = (!silent.is_empty()).then(|| format!("no answer from {}", silent.join(", ")));
    probed(missing, "live")
}

async fn started(State(seen): State<Seen>) -> Probed {
    let workers = seen.workers.all();
    let missing = workers.iter().find(|worker| !worker.is_built());
    probed(
        missing.map(|worker| format!("{} is not built yet", worker.name())),
        "started",
    )
}

async fn ready(State(seen): State<Seen>) -> Probed {
    let gateway = seen.gateway.as_ref().and_then(|gateway| gateway.ready().err());
    let missing = gateway.or_else(|| {
        let workers = seen.workers.all();
        // With a gateway beside them others take what they do not.
        let alone = seen.gateway.is_none();
        let drained = workers.iter().find(|worker| alone && worker.is_drained());
        let drained = drained.map(|worker| format!("{} is drained: an operator wants it so", worker.name()));
        drained.or_else(|| workers.iter().find_map(|worker| unready(worker, seen.step_limit)))
    });
    probed(missing, "ready")
}

/// What a worker lacks.
fn unready(worker: &runtime::LocalWorker, step_limit: Span) -> Option<String> {
    let name = worker.name();
    match worker.figures() {
        None => Some(format!("no gateway has heard of {name} yet")),
        Some(figures) if figures.gateways == 0 => Some(format!("{name} is linked with no gateway")),
        Some(figures) if figures.step_lasts > step_limit => {
            let lasts_ms = figures.step_lasts.as_millis();
            Some(format!("a step of {name} has lasted for {lasts_ms} ms"))
        }
        Some(_) => None,
    }
}
