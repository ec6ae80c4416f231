//! The operators' door, on a listener of its own: where every room is, how every worker is, and metrics.

mod metrics;
mod views;

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use runtime::GatewayHandle;

#[cfg(test)]
pub(crate) use views::Holder;
pub(crate) use views::RoomRow;
use views::WorkerRow;

/// What an admin listener serves.
pub(crate) fn router(gateway: GatewayHandle) -> Router {
    Router::new()
        .route("/rooms", get(rooms))
        .route("/rooms/ended", get(rooms_ended))
        .route("/rooms/{room}/abort", post(abort))
        .route("/workers", get(workers))
        .route("/metrics", get(prometheus))
        .with_state(gateway)
}

async fn rooms(State(gateway): State<GatewayHandle>) -> Json<Vec<RoomRow>> {
    let now = gateway.now();
    let workers = gateway.workers();
    Json(
        gateway
            .rooms()
            .iter()
            .map(|view| RoomRow::new(view, &workers, now))
            .collect(),
    )
}

async fn rooms_ended(State(gateway): State<GatewayHandle>) -> Json<Vec<RoomRow>> {
    let now = gateway.now();
    let workers = gateway.workers();
    Json(
        gateway
            .rooms_ended()
            .iter()
            .map(|view| RoomRow::new(view, &workers, now))
            .collect(),
    )
}

async fn workers(State(gateway): State<GatewayHandle>) -> Json<Vec<WorkerRow>> {
    Json(gateway.workers().iter().map(WorkerRow::new).collect())
}

async fn abort(State(gateway): State<GatewayHandle>, Path(room): Path<String>) -> (StatusCode, String) {
    let found = gateway
        .rooms()
        .into_iter()
        .find(|view| view.room.to_string() == room);
    match found {
        Some(view) if gateway.abort(view.room) => (StatusCode::ACCEPTED, format!("{room} is being ended\n")),
        _ => (
            StatusCode::NOT_FOUND,
            format!("no room {room} is open: GET /rooms lists those that are\n"),
        ),
    }
}

async fn prometheus(State(gateway): State<GatewayHandle>) -> impl IntoResponse {
    (
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4")],
        metrics::text(&gateway),
    )
}
