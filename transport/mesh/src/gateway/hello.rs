//! One connection at the gateway: from its first packet through the hello to the end of its link.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use quinn::{Connection, ConnectionError, Incoming, RecvStream, SendStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};
use tracing::{debug, warn};
use wire::{HELLO_VERSION, Hello, HelloAck, HelloRefused, HelloReply, Message, Payload};

use crate::gateway::GatewaySide;
use crate::gateway::judge::judge;
use crate::gateway::listener::Shared;
use crate::gateway::registry::{Claim, Place};
use crate::identity::{certified, shown};
use crate::link::{CloseCode, Core, DownReason, Link, NewLink, Running, lost, printable, read_frame, run};

/// Why a connection came to nothing.
struct NoLink {
    code: CloseCode,
    why: String,
    /// Where the worker waits for an answer to its hello, if it is one that is refused.
    refused: Option<SendStream>,
}

impl NoLink {
    fn new(code: CloseCode, why: impl Into<String>) -> Self {
        Self {
            code,
            why: why.into(),
            refused: None,
        }
    }

    fn lost(error: &ConnectionError) -> Self {
        Self::new(CloseCode::Over, lost(error).to_string())
    }
}

/// Serves one connection to its end. `pending` is its place among those that have not said hello yet.
pub(super) async fn serve(shared: Arc<Shared>, incoming: Incoming, pending: OwnedSemaphorePermit) {
    let remote = incoming.remote_address();
    let deadline = Instant::now() + shared.config.hello_deadline;
    let greeted = greet(&shared, incoming, deadline).await;
    drop(pending);
    match greeted {
        Ok((running, place)) => {
            shared.counts.links.fetch_add(1, Ordering::Relaxed);
            run::<GatewaySide>(running, &shared.config).await;
            drop(place);
        }
        Err(none) if none.code == CloseCode::Refused => {
            shared.counts.refused.fetch_add(1, Ordering::Relaxed);
            report(&shared, &none.why, remote, &none.why, "a worker was refused");
        }
        Err(none) => {
            shared.counts.failed.fetch_add(1, Ordering::Relaxed);
            // Who is behind it is not known, and what is wrong may be anything that it says.
            let kind = "came to nothing";
            report(&shared, kind, remote, &none.why, "a connection came to nothing");
        }
    }
}

/// Callers come again and again.
fn report(shared: &Shared, kind: &str, remote: SocketAddr, why: &str, what: &str) {
    match shared.complaints.hear(kind, Instant::now()) {
        Some(unsaid) => warn!(%remote, why, unsaid, "{what}"),
        None => debug!(%remote, why, "{what}"),
    }
}

/// The handshake and the hello, all by the deadline. A connection that comes to nothing is closed with the reason.
async fn greet(
    shared: &Arc<Shared>,
    incoming: Incoming,
    deadline: Instant,
) -> Result<(Running<GatewaySide>, Place), NoLink> {
    let handshake = async { incoming.await.map_err(|error| NoLink::lost(&error)) };
    let connection = within(shared, deadline, handshake).await?;
    let met = within(shared, deadline, meet(shared, &connection)).await;
    match met {
        Ok(met) => Ok(met),
        Err(mut none) => {
            if let Some(send) = none.refused.take() {
                let _ = timeout_at(deadline, refuse(&connection, send, &none.why)).await;
            }
            none.code.close(&connection, &none.why);
            Err(none)
        }
    }
}

/// Ends at the deadline, and when the gateway stops.
async fn within<T>(
    shared: &Shared,
    deadline: Instant,
    part: impl Future<Output = Result<T, NoLink>>,
) -> Result<T, NoLink> {
    tokio::select! {
        biased;
        () = shared.stop.cancelled() => Err(NoLink::new(CloseCode::Stopped, "the gateway stops")),
        done = timeout_at(deadline, part) => {
            done.unwrap_or_else(|_| Err(NoLink::new(CloseCode::NoHello, "no hello in time")))
        }
    }
}

/// The hello, its judgement, and the answer if that is yes.
async fn meet(
    shared: &Arc<Shared>,
    connection: &Connection,
) -> Result<(Running<GatewaySide>, Place), NoLink> {
    let (send, mut recv) = connection
        .accept_bi()
        .await
        .map_err(|error| NoLink::lost(&error))?;
    let mut payload = Payload::default();
    let no_hello = |why: String| NoLink::new(CloseCode::NoHello, format!("no hello: {why}"));
    let header = read_frame(&mut recv, &mut payload, Hello::MAX_BYTES)
        .await
        .map_err(|error| no_hello(DownReason::from(error).to_string()))?;
    let hello = Hello::decode(HELLO_VERSION, header, payload.as_bytes())
        .map_err(|error| no_hello(error.to_string()))?;

    let certificate = shown(connection);
    let verdict = judge(
        &hello,
        |name| certificate.as_ref().is_some_and(|leaf| certified(leaf, name)),
        |hello| shared.links.accept(hello),
    );
    let placed = match verdict {
        Ok(version) => place(shared, &hello).await.map(|place| (version, place)),
        Err(reason) => Err(reason),
    };
    match placed {
        Ok((version, place)) => accept(shared, connection.clone(), (send, recv), hello, version, place).await,
        Err(reason) => Err(NoLink {
            refused: Some(send),
            ..NoLink::new(
                CloseCode::Refused,
                format!("{} ({}): {reason}", hello.node, hello.role),
            )
        }),
    }
}

/// The worker's place, once an older incarnation has left it; or why there is none. The hello's deadline bounds the wait.
async fn place(shared: &Shared, hello: &Hello) -> Result<Place, String> {
    loop {
        let claim = shared
            .registry
            .claim(&hello.node, hello.epoch, shared.config.max_links);
        match claim {
            Claim::Taken(place) => return Ok(place),
            Claim::Refused(reason) => return Err(reason),
            Claim::Wait(gone) => gone.cancelled().await,
        }
    }
}

async fn accept(
    shared: &Arc<Shared>,
    connection: Connection,
    (mut send, recv): (SendStream, RecvStream),
    hello: Hello,
    version: u16,
    place: Place,
) -> Result<(Running<GatewaySide>, Place), NoLink> {
    let config = &shared.config;
    let ms = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    let reply = HelloReply::Accepted(HelloAck {
        version,
        node: shared.node.name.clone(),
        epoch: shared.node.epoch,
        heartbeat_ms: ms(config.heartbeat),
        lease_ms: ms(config.lease),
    });
    let new = NewLink {
        number: shared.last_number.fetch_add(1, Ordering::Relaxed) + 1,
        node: hello.node.clone(),
        epoch: hello.epoch,
        version,
        lease: config.lease,
        connection,
        stop: shared.stop.clone(),
        last_words: Arc::clone(&shared.last_words),
    };
    let (core, waiting) = Core::new(new, config);
    place.hold(&core);
    let failed = |why: String| NoLink::new(CloseCode::NoHello, format!("no answer to the hello: {why}"));
    let frame = reply
        .encode(HELLO_VERSION)
        .map_err(|error| failed(error.to_string()))?;
    send.write_all(frame.as_bytes())
        .await
        .map_err(|error| failed(DownReason::from(error).to_string()))?;

    let link = Link::new(Arc::clone(&core));
    let beat_links = Arc::clone(&shared.links);
    let event_links = Arc::clone(&shared.links);
    let running = Running {
        core,
        peer: hello,
        send,
        recv,
        waiting,
        beat: Some((config.heartbeat, Box::new(move |n| beat_links.beat(&link, n)))),
        tell: Arc::new(move |event| event_links.event(event)),
    };
    Ok((running, place))
}

/// Tells the worker why, and waits until it has heard: it closes then.
async fn refuse(connection: &Connection, mut send: SendStream, reason: &str) {
    let mut reason = printable(reason);
    reason.truncate(reason.floor_char_boundary(wire::limits::MAX_REASON_BYTES));
    let reply = HelloReply::Refused(HelloRefused { reason });
    if let Ok(frame) = reply.encode(HELLO_VERSION)
        && send.write_all(frame.as_bytes()).await.is_ok()
        && send.finish().is_ok()
    {
        connection.closed().await;
    }
}
