//! What an operator can do: end a room, keep new rooms from a worker. Told in the log, with who asked.

use api::Peer;
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use tracing::{info, warn};

use super::{Desk, find};

type Told = (StatusCode, String);

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
    cordon(&office, asker, &headers, &name, true)
}

/// `POST /workers/{name}/resume`
pub(super) async fn resume(
    office: State<Desk>,
    asker: Option<Extension<Peer>>,
    headers: HeaderMap,
    name: Path<String>,
) -> Told {
    cordon(&office, asker, &headers, &name, false)
}

fn cordon(
    office: &Desk,
    asker: Option<Extension<Peer>>,
    headers: &HeaderMap,
    name: &str,
    cordoned: bool,
) -> Told {
    if let Err(why) = is_ours(headers) {
        return why;
    }
    if !office.gateway.cordon(name, cordoned) {
        let linked: Vec<String> = office
            .gateway
            .workers()
            .into_iter()
            .map(|worker| worker.peer.name)
            .collect();
        let linked = match linked.is_empty() {
            true => "none is".to_owned(),
            false => format!("linked are {}", linked.join(", ")),
        };
        return (
            StatusCode::NOT_FOUND,
            format!("no worker {name} is linked with this gateway: {linked}\n"),
        );
    }
    let gateway = &office.about.name;
    let asker = who(asker);
    let told = if cordoned {
        info!(worker = name, %asker, "operator: nothing new goes to the worker");
        format!(
            "{gateway} sends nothing new to {name}; what is there finishes. POST /workers/{name}/resume undoes it\n"
        )
    } else {
        info!(worker = name, %asker, "operator: the worker takes new rooms again");
        format!("{gateway} sends new rooms to {name} again\n")
    };
    (StatusCode::ACCEPTED, told)
}

fn who(asker: Option<Extension<Peer>>) -> String {
    asker.map_or_else(|| "unknown".to_owned(), |Extension(Peer(addr))| addr.to_string())
}

/// A browser lets any page of the web send a POST to an address of this machine, and says from where it comes: only our own page may.
fn is_ours(headers: &HeaderMap) -> Result<(), Told> {
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
