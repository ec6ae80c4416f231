//! One connection at the gateway: from its first packet through the hello to the end of its link.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use quinn::{Connection, Incoming, RecvStream, SendStream};
use rustls_pki_types::CertificateDer;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tracing::{debug, warn};
use wire::{HELLO_VERSION, Hello, HelloAck, HelloRefused, HelloReply, Message, Payload};

use crate::gateway::GatewaySide;
use crate::gateway::judge::judge;
use crate::gateway::listener::Shared;
use crate::gateway::registry::{Claim, Place};
use crate::identity::certified;
use crate::link::{Core, Link, NewLink, REFUSED, Running, read_frame, run};

/// A connection on which a worker said hello.
struct Caller {
    connection: Connection,
    send: SendStream,
    recv: RecvStream,
    hello: Hello,
}

/// Serves one connection to its end. `pending` is its place among those that have not said hello yet.
pub(super) async fn serve(shared: Arc<Shared>, incoming: Incoming, pending: OwnedSemaphorePermit) {
    let remote = incoming.remote_address();
    let up = timeout(shared.config.hello_deadline, greet(&shared, incoming)).await;
    drop(pending);
    match up {
        Ok(Ok((running, place))) => {
            shared.counts.links.fetch_add(1, Ordering::Relaxed);
            run::<GatewaySide>(running, &shared.config).await;
            drop(place);
        }
        Ok(Err(why)) => failed(&shared, remote, &why),
        Err(_) => failed(&shared, remote, "no hello in time"),
    }
}

fn failed(shared: &Shared, remote: std::net::SocketAddr, why: &str) {
    let before = shared.counts.failed.fetch_add(1, Ordering::Relaxed);
    if before == 0 {
        warn!(%remote, why, "a connection came to nothing; further ones are only counted");
    } else {
        debug!(%remote, why, "a connection came to nothing");
    }
}

/// The handshake and the hello. Under the hello's deadline as a whole.
async fn greet(shared: &Arc<Shared>, incoming: Incoming) -> Result<(Running<GatewaySide>, Place), String> {
    let connection = incoming.await.map_err(|error| error.to_string())?;
    let (send, mut recv) = connection.accept_bi().await.map_err(|error| error.to_string())?;
    let mut payload = Payload::default();
    let header = read_frame(&mut recv, &mut payload, Hello::MAX_BYTES)
        .await
        .map_err(|error| format!("no hello: {error:?}"))?;
    let hello =
        Hello::decode(HELLO_VERSION, header, payload.as_bytes()).map_err(|error| error.to_string())?;
    let caller = Caller {
        connection,
        send,
        recv,
        hello,
    };

    let certificate = leaf(&caller.connection);
    let verdict = judge(
        &caller.hello,
        |role| certificate.as_ref().is_some_and(|leaf| certified(leaf, role)),
        |hello| shared.links.accept(hello),
    );
    let version = match verdict {
        Ok(version) => version,
        Err(reason) => return Err(refuse(caller, reason).await),
    };
    match place(shared, &caller.hello).await {
        Some(place) => accept(shared, caller, version, place).await,
        None => {
            let reason = "this worker is linked to this gateway already, and that link is alive";
            Err(refuse(caller, reason.to_owned()).await)
        }
    }
}

fn leaf(connection: &Connection) -> Option<CertificateDer<'static>> {
    let chain = connection
        .peer_identity()?
        .downcast::<Vec<CertificateDer<'static>>>()
        .ok()?;
    chain.first().cloned()
}

/// The worker's place, once an older incarnation has left it. None if this incarnation has it.
async fn place(shared: &Shared, hello: &Hello) -> Option<Place> {
    loop {
        match shared.registry.claim(&hello.node, hello.epoch) {
            Claim::Taken(place) => return Some(place),
            Claim::Duplicate => return None,
            Claim::Wait(gone) => gone.cancelled().await,
        }
    }
}

async fn accept(
    shared: &Arc<Shared>,
    mut caller: Caller,
    version: u16,
    place: Place,
) -> Result<(Running<GatewaySide>, Place), String> {
    let config = &shared.config;
    let ms = |time: std::time::Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    let reply = HelloReply::Accepted(HelloAck {
        version,
        node: shared.node.name.clone(),
        epoch: shared.node.epoch,
        heartbeat_ms: ms(config.heartbeat),
        lease_ms: ms(config.lease),
    });
    let new = NewLink {
        number: shared.last_number.fetch_add(1, Ordering::Relaxed) + 1,
        node: caller.hello.node.clone(),
        epoch: caller.hello.epoch,
        version,
        lease: config.lease,
        connection: caller.connection,
    };
    let (core, waiting) = Core::new(new, config);
    place.hold(&core);
    let frame = reply.encode(HELLO_VERSION).map_err(|error| error.to_string())?;
    caller
        .send
        .write_all(frame.as_bytes())
        .await
        .map_err(|error| error.to_string())?;

    let link = Link::new(Arc::clone(&core));
    let beat_links = Arc::clone(&shared.links);
    let event_links = Arc::clone(&shared.links);
    let running = Running {
        core,
        peer: caller.hello,
        send: caller.send,
        recv: caller.recv,
        waiting,
        beat: Some((config.heartbeat, Box::new(move |n| beat_links.beat(&link, n)))),
        tell: Arc::new(move |event| event_links.event(event)),
    };
    Ok((running, place))
}

/// Tells the worker why, and waits until it has heard (it closes then). Returns the reason.
async fn refuse(mut caller: Caller, reason: String) -> String {
    let mut reason = reason;
    let limit = (0..=wire::limits::MAX_REASON_BYTES)
        .rev()
        .find(|at| reason.is_char_boundary(*at));
    reason.truncate(limit.unwrap_or_default());
    let reply = HelloReply::Refused(HelloRefused {
        reason: reason.clone(),
    });
    if let Ok(frame) = reply.encode(HELLO_VERSION)
        && caller.send.write_all(frame.as_bytes()).await.is_ok()
        && caller.send.finish().is_ok()
    {
        // The caller's deadline ends this wait too.
        caller.connection.closed().await;
    }
    caller.connection.close(REFUSED, reason.as_bytes());
    format!("refused {} ({}): {reason}", caller.hello.node, caller.hello.role)
}
