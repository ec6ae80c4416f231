//! What an operator can do at a gateway: end a room, keep new rooms from a worker, give it another role. Told in the log, with who asked.

use api::Peer;
use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use runtime::OrderError;
use serde::Deserialize;
use tracing::{info, warn};
use wire::Order;

use super::{Desk, find, wrong};
use crate::compose::wire_role;
use crate::config::WorkerRole;

pub(super) type Told = (StatusCode, String);

/// `POST /rooms/{room}/abort`
pub(super) async fn abort(
    State(office): State<Desk>,
    asker: Option<Extension<Peer>>,
    headers: HeaderMap,
    Path(room): Path<String>,
) -> Told {
    if let Err(why) = is_ours(&headers) {
        return why;
    }
    let gateway = &office.gateway;
    let id = find::room_of(&room, gateway.node());
    match id {
        Some(id) if gateway.abort(id) => {
            info!(%room, asker = %who(asker), "operator: the room is ended");
            (StatusCode::ACCEPTED, format!("{room} is being ended\n"))
        }
        _ => (
            StatusCode::NOT_FOUND,
            format!("no room {room} is open: GET /rooms lists those that are\n"),
        ),
    }
}

/// `POST /workers/{name}/drain`
pub(super) async fn drain(
    office: State<Desk>,
    asker: Option<Extension<Peer>>,
    headers: HeaderMap,
    name: Path<String>,
) -> Told {
    ordered(&office, asker, &headers, &name, Order::Drain).await
}

/// `POST /workers/{name}/undrain`
pub(super) async fn undrain(
    office: State<Desk>,
    asker: Option<Extension<Peer>>,
    headers: HeaderMap,
    name: Path<String>,
) -> Told {
    ordered(&office, asker, &headers, &name, Order::Undrain).await
}

/// `POST /workers/{name}/role`
pub(super) async fn role(
    office: State<Desk>,
    asker: Option<Extension<Peer>>,
    headers: HeaderMap,
    name: Path<String>,
    wish: Result<Query<Wish>, QueryRejection>,
) -> Told {
    match wish_of(wish) {
        Ok(order) => ordered(&office, asker, &headers, &name, order).await,
        Err(why) => why,
    }
}

/// Passes an order on to the worker, which alone can follow it: a gateway owns nothing of a worker.
async fn ordered(
    office: &Desk,
    asker: Option<Extension<Peer>>,
    headers: &HeaderMap,
    name: &str,
    order: Order,
) -> Told {
    if let Err(why) = is_ours(headers) {
        return why;
    }
    let asker = who(asker);
    match office.gateway.order(name, order).await {
        Ok(()) => {
            info!(worker = name, %asker, ?order, "operator: the worker does so");
            (StatusCode::ACCEPTED, done(name, order))
        }
        Err(OrderError::NotLinked) => (
            StatusCode::NOT_FOUND,
            format!(
                "no worker {name} is linked with this gateway: {}\n",
                linked(office)
            ),
        ),
        Err(why) => {
            warn!(worker = name, %asker, ?order, %why, "operator: the worker does not do so");
            let status = match why {
                OrderError::Refused(_) => StatusCode::CONFLICT,
                OrderError::TooOld => StatusCode::NOT_IMPLEMENTED,
                OrderError::NotLinked | OrderError::Unlinked | OrderError::TooMany => {
                    StatusCode::SERVICE_UNAVAILABLE
                }
                OrderError::NoAnswer { .. } => StatusCode::GATEWAY_TIMEOUT,
            };
            (status, format!("{name}: {why}\n"))
        }
    }
}

fn linked(office: &Desk) -> String {
    let workers = office.gateway.workers().into_iter();
    let linked: Vec<String> = workers.map(|worker| worker.peer.name).collect();
    match linked.is_empty() {
        true => "none is".to_owned(),
        false => format!("linked are {}", linked.join(", ")),
    }
}

/// What a worker now does.
pub(super) fn done(name: &str, order: Order) -> String {
    match order {
        Order::Drain => format!(
            "{name} takes no new rooms, from any gateway; what is there finishes. `innkeeper undrain {name}` undoes it\n"
        ),
        Order::Undrain => format!("{name} takes new rooms again\n"),
        Order::Role { role, within_ms } => format!(
            "{name} takes no new rooms, and comes back as {role} when what is there has finished, or after {within_ms} ms\n"
        ),
    }
}

/// The role that a worker is to have.
#[derive(Deserialize)]
pub(super) struct Wish {
    to: WorkerRole,
    /// How long what is there may take; what is left then goes on elsewhere.
    within_ms: Option<u64>,
}

/// How long what is at a worker may take if nobody says: the default of limits.shutdown_ms.
const WITHIN_MS: u64 = 25_000;

pub(super) fn wish_of(wish: Result<Query<Wish>, QueryRejection>) -> Result<Order, Told> {
    let bad = |why: String| {
        let how = "a role can have to (prefill, decode or mixed) and within_ms, a number: at most a week";
        (StatusCode::BAD_REQUEST, format!("{why}: {how}\n"))
    };
    let Query(Wish { to, within_ms }) = wish.map_err(|error| bad(wrong(&error)))?;
    let within_ms = within_ms.unwrap_or(WITHIN_MS);
    if within_ms > wire::limits::MAX_DEADLINE_MS {
        return Err(bad(format!("within_ms is {within_ms}")));
    }
    let role = wire_role(to);
    Ok(Order::Role { role, within_ms })
}

pub(super) fn who(asker: Option<Extension<Peer>>) -> String {
    asker.map_or_else(|| "unknown".to_owned(), |Extension(Peer(addr))| addr.to_string())
}

/// A browser lets any page of the web send a POST to an address of this machine, and says from where it comes: only our own page may.
pub(super) fn is_ours(headers: &HeaderMap) -> Result<(), Told> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let Some(origin) = text(header::ORIGIN) else {
        return Ok(());
    };
    let host = text(header::HOST).unwrap_or_default();
    if !host.is_empty() && origin.strip_prefix("http://") == Some(host) {
        return Ok(());
    }
    warn!(origin, host, "operator: a page from elsewhere tried to act here");
    Err((
        StatusCode::FORBIDDEN,
        format!("a page of {origin} may not act here: open the page of this listener itself\n"),
    ))
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue, header};

    use super::is_ours;

    #[track_caller]
    fn check(origin: Option<&'static str>, host: &'static str, ours: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static(host));
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
        }
        assert_eq!(is_ours(&headers).is_ok(), ours, "{origin:?} at {host}");
    }

    #[test]
    fn only_our_own_page_acts() {
        // curl and our own commands say no origin.
        check(None, "127.0.0.1:9090", true);
        check(Some("http://127.0.0.1:9090"), "127.0.0.1:9090", true);
        check(Some("http://localhost:9090"), "localhost:9090", true);
        check(Some("http://127.0.0.1:8080"), "127.0.0.1:9090", false);
        check(Some("https://example.com"), "127.0.0.1:9090", false);
        check(Some("null"), "127.0.0.1:9090", false);
        check(Some("http://"), "", false);
    }
}
