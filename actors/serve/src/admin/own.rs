//! What an operator can do at a worker's own listener, where no gateway has a part in it.

use api::Peer;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Extension, Router};
use runtime::LocalWorkers;
use tracing::{info, warn};
use wire::Order;

use super::operate::{Told, Wish, done, is_ours, who, wish_of};

/// `POST /drain`, `/undrain` and `/role`, for the worker of this process.
pub(super) fn router(workers: LocalWorkers) -> Router {
    Router::new()
        .route("/drain", post(drain))
        .route("/undrain", post(undrain))
        .route("/role", post(role))
        .with_state(workers)
}

async fn drain(workers: State<LocalWorkers>, asker: Option<Extension<Peer>>, headers: HeaderMap) -> Told {
    ordered(&workers, asker, &headers, Order::Drain).await
}

async fn undrain(workers: State<LocalWorkers>, asker: Option<Extension<Peer>>, headers: HeaderMap) -> Told {
    ordered(&workers, asker, &headers, Order::Undrain).await
}

async fn role(
    workers: State<LocalWorkers>,
    asker: Option<Extension<Peer>>,
    headers: HeaderMap,
    wish: Result<Query<Wish>, QueryRejection>,
) -> Told {
    match wish_of(wish) {
        Ok(order) => ordered(&workers, asker, &headers, order).await,
        Err(why) => why,
    }
}

async fn ordered(
    workers: &LocalWorkers,
    asker: Option<Extension<Peer>>,
    headers: &HeaderMap,
    order: Order,
) -> Told {
    if let Err(why) = is_ours(headers) {
        return why;
    }
    let asker = who(asker);
    let mut told = String::new();
    // There is one.
    for worker in workers.all() {
        let name = worker.name();
        if let Err(why) = worker.order(order).await {
            warn!(worker = name, %asker, ?order, %why, "operator: the worker does not do so");
            return (StatusCode::CONFLICT, format!("{name}: {why}\n"));
        }
        info!(worker = name, %asker, ?order, "operator: the worker does so");
        told.push_str(&done(name, order));
    }
    (StatusCode::ACCEPTED, told)
}
