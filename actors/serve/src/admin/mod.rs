//! The operators' door, on a listener of its own: where every room is, how every worker is, metrics, and the live page.

mod auth;
mod events;
mod feed;
mod filter;
mod find;
mod health;
mod metrics;
mod moment;
mod operate;
mod overview;
mod own;
mod page;
mod present;
mod pulse;
#[cfg(test)]
pub(crate) mod samples;
mod seen;
mod stays;
mod views;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use observe::Roster;
use observe::explain::Account;
use runtime::{GatewayHandle, RoomView};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

pub(crate) use auth::{guarded, token};
use feed::Feed;
use filter::Filter;
pub(crate) use filter::{outcomes, phases, reasons};
pub(crate) use overview::Overview;
#[cfg(test)]
pub(crate) use overview::PhaseRow;
use present::Present;
pub(crate) use pulse::Pulse;
#[cfg(test)]
pub(crate) use pulse::{LastMinute, Quantiles};
pub(crate) use seen::Seen;
use views::LinkRow;
pub(crate) use views::{GoneRow, Holder, RoomRow, WorkerRow};

/// What an admin listener knows besides its gateway.
pub(crate) struct About {
    /// The gateway's name.
    pub(crate) name: String,
    /// The model it serves, as clients call it.
    pub(crate) model: String,
    /// Where Jaeger's pages are; none if nobody said.
    pub(crate) jaeger: Option<String>,
    /// What workers are called, those that are gone as well.
    pub(crate) roster: Roster,
    /// What the last minutes were like.
    pub(crate) pulse: Arc<Pulse>,
    /// Ends what goes on without end.
    pub(crate) stop: CancellationToken,
}

/// What answers are made from.
struct Office {
    gateway: GatewayHandle,
    about: About,
    feed: Mutex<Feed>,
}

type Desk = Arc<Office>;

impl Office {
    fn feed(&self) -> MutexGuard<'_, Feed> {
        self.feed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an admin listener serves.
pub(crate) fn router(gateway: GatewayHandle, about: About, seen: Seen) -> Router {
    let office = Office {
        gateway,
        about,
        feed: Mutex::default(),
    };
    Router::new()
        .route("/rooms", get(rooms))
        .route("/rooms/ended", get(rooms_ended))
        .route("/rooms/{room}/explain", get(explain))
        .route("/rooms/{room}/abort", post(operate::abort))
        .route("/workers", get(workers))
        .route("/workers/gone", get(workers_gone))
        .route("/workers/{name}/drain", post(operate::drain))
        .route("/workers/{name}/undrain", post(operate::undrain))
        .route("/workers/{name}/role", post(operate::role))
        .route("/links", get(links))
        .route("/overview", get(glance))
        .route("/events", get(events::events))
        .merge(page::routes())
        .fallback(elsewhere)
        .with_state(Arc::new(office))
        .merge(seen::router(seen))
}

/// What the admin listener of a worker's own process serves.
pub(crate) fn worker_router(seen: Seen) -> Router {
    own::router(seen.workers.clone()).merge(seen::router(seen))
}

/// What there is, for who asks for something else.
const PATHS: &str = "/ (the live page), /rooms, /rooms/ended, /rooms/ROOM/explain, /workers, /workers/gone, /links, /overview, /events, /stays, /stays/ended, /health and /metrics";

async fn elsewhere(uri: Uri) -> (StatusCode, String) {
    (
        StatusCode::NOT_FOUND,
        format!("there is nothing at {}: there are {PATHS}\n", uri.path()),
    )
}

async fn rooms(State(office): State<Desk>, filter: Result<Query<Filter>, QueryRejection>) -> Response {
    listed(&office, office.gateway.rooms().iter(), filter)
}

/// The latest first.
async fn rooms_ended(State(office): State<Desk>, filter: Result<Query<Filter>, QueryRejection>) -> Response {
    listed(&office, office.gateway.rooms_ended().iter().rev(), filter)
}

fn listed<'a>(
    office: &Office,
    views: impl Iterator<Item = &'a RoomView>,
    filter: Result<Query<Filter>, QueryRejection>,
) -> Response {
    let checked = filter
        .map_err(|error| format!("{}: a list of rooms can have {}", wrong(&error), filter::HELP))
        .and_then(|Query(filter)| filter.check().map(|()| filter));
    let filter = match checked {
        Ok(filter) => filter,
        Err(why) => return (StatusCode::BAD_REQUEST, format!("{why}\n")).into_response(),
    };
    let present = Present::of(office);
    let rows = views.map(|view| RoomRow::new(view, &present));
    Json(filter.apply(rows)).into_response()
}

/// What is wrong with a query, without what the library says of itself.
fn wrong(error: &QueryRejection) -> String {
    let text = error.body_text();
    text.strip_prefix("Failed to deserialize query string: ")
        .unwrap_or(&text)
        .to_owned()
}

async fn explain(
    State(office): State<Desk>,
    Path(text): Path<String>,
) -> Result<Json<Vec<Account>>, (StatusCode, String)> {
    let told = find::accounts(&office, &text);
    if !told.is_empty() {
        return Ok(Json(told));
    }
    Err((
        StatusCode::NOT_FOUND,
        format!(
            "no room, request id or trace id {text} is known to {}: `innkeeper rooms` (GET /rooms) lists what is open, \
             `innkeeper rooms --ended` (GET /rooms/ended) the last that ended; what another gateway owns, or what ended before those, is \
             not here\n",
            office.about.name
        ),
    ))
}

async fn workers(State(office): State<Desk>) -> Json<Vec<WorkerRow>> {
    let present = Present::of(&office);
    let row = |worker| WorkerRow::new(worker, &present);
    Json(present.workers.iter().map(row).collect())
}

/// Those that were linked and are not.
async fn workers_gone(State(office): State<Desk>) -> Json<Vec<GoneRow>> {
    let moment = Present::of(&office).moment;
    let gone = office.about.roster.gone();
    Json(gone.iter().map(|gone| GoneRow::new(gone, moment)).collect())
}

async fn links(State(office): State<Desk>) -> Json<Vec<LinkRow>> {
    Json(overview::links(&Present::of(&office)))
}

#[derive(Deserialize)]
struct Since {
    /// The first second of the series that is wanted, of the gateway's clock.
    #[serde(default)]
    from_s: u64,
}

async fn glance(State(office): State<Desk>, since: Result<Query<Since>, QueryRejection>) -> Response {
    match since {
        Ok(Query(since)) => Json(overview::overview(&office, since.from_s, None)).into_response(),
        Err(error) => {
            let why = format!("{}: an overview can have from_s, a number\n", wrong(&error));
            (StatusCode::BAD_REQUEST, why).into_response()
        }
    }
}
