//! One gateway address: dial, say hello, run the link, wait, again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use quinn::{Connection, RecvStream, SendStream};
use tokio::time::{Instant, timeout};
use tracing::{debug, warn};
use wire::{HELLO_VERSION, HelloAck, HelloReply, MIN_VERSION, Message, Payload, Role, VERSION};

use crate::identity::server_name;
use crate::link::{CLOSED, Core, DownReason, NewLink, ReadError, Running, read_frame, run};
use crate::worker::backoff::Backoff;
use crate::worker::dialer::Shared;
use crate::worker::{DialState, WorkerSide};

/// Why a gateway was not linked.
#[derive(Clone, Eq, PartialEq, Debug, thiserror::Error)]
pub enum DialError {
    /// Nothing is there, or it does not let us in, or we do not trust it.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The gateway does not take this worker.
    #[error("refused: {0}")]
    Refused(String),
    /// What it said is no answer to a hello.
    #[error("no answer to the hello: {0}")]
    Hello(String),
    /// It took too long.
    #[error("no link within {} ms", .0.as_millis())]
    Deadline(Duration),
}

/// A link whose hello was accepted.
struct Accepted {
    connection: Connection,
    send: SendStream,
    recv: RecvStream,
    ack: HelloAck,
}

/// Runs until its dialer ends it (at once by ending the task; in order by the stop token).
pub(super) async fn keep_linked(shared: Arc<Shared>, address: SocketAddr) {
    let mut backoff = Backoff::new(&shared.config, u64::from(address.port()));
    let mut failures = 0u64;
    while !shared.stop.is_cancelled() {
        shared.board.set(address, DialState::Dialling);
        let dialled = tokio::select! {
            biased;
            () = shared.stop.cancelled() => return,
            dialled = timeout(shared.config.hello_deadline, dial(&shared, address)) => dialled,
        };
        let why = match dialled.unwrap_or(Err(DialError::Deadline(shared.config.hello_deadline))) {
            Ok(accepted) => {
                failures = 0;
                let began = Instant::now();
                let why = linked(&shared, address, accepted).await;
                // A link that lasted: the next failure is a new one. One that did not (another worker has this one's name,
                // and they replace each other) must not be dialled in a circle.
                if began.elapsed() > shared.config.lease {
                    backoff.reset();
                }
                why.to_string()
            }
            Err(error) => {
                failures += 1;
                report(&shared, address, &error, failures);
                error.to_string()
            }
        };
        shared.board.set(address, DialState::Waiting(why));
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => return,
            () = tokio::time::sleep(backoff.wait()) => {}
        }
    }
}

fn report(shared: &Shared, address: SocketAddr, error: &DialError, failures: u64) {
    if failures == 1 {
        warn!(%address, %error, "a gateway cannot be linked; trying on");
    } else {
        debug!(%address, %error, failures, "a gateway cannot be linked");
    }
    shared.links.dial_failed(address, error);
}

/// Under the hello's deadline as a whole.
async fn dial(shared: &Shared, address: SocketAddr) -> Result<Accepted, DialError> {
    let name = server_name(Role::Gateway);
    let connecting = shared
        .endpoint
        .connect_with(shared.client.clone(), address, &name)
        .map_err(|error| DialError::Connect(error.to_string()))?;
    let connection = connecting
        .await
        .map_err(|error| DialError::Connect(error.to_string()))?;
    let lost = |error: DownReason| DialError::Hello(error.to_string());
    let (mut send, mut recv) = connection
        .open_bi()
        .await
        .map_err(|error| DialError::Hello(error.to_string()))?;
    let hello = shared
        .hello
        .encode(HELLO_VERSION)
        .map_err(|error| DialError::Hello(error.to_string()))?;
    send.write_all(hello.as_bytes())
        .await
        .map_err(|error| DialError::Hello(error.to_string()))?;
    let mut payload = Payload::default();
    let header = read_frame(&mut recv, &mut payload, HelloReply::MAX_BYTES)
        .await
        .map_err(|error: ReadError| lost(error.into()))?;
    let reply = HelloReply::decode(HELLO_VERSION, header, payload.as_bytes())
        .map_err(|error| DialError::Hello(error.to_string()))?;
    match reply {
        HelloReply::Accepted(ack) if !(MIN_VERSION..=VERSION).contains(&ack.version) => Err(
            DialError::Hello(format!("version {} was not offered", ack.version)),
        ),
        HelloReply::Accepted(ack) => Ok(Accepted {
            connection,
            send,
            recv,
            ack,
        }),
        HelloReply::Refused(refused) => {
            connection.close(CLOSED, b"refused");
            Err(DialError::Refused(refused.reason))
        }
    }
}

/// Runs the link to its end.
async fn linked(shared: &Arc<Shared>, address: SocketAddr, accepted: Accepted) -> DownReason {
    let Accepted {
        connection,
        send,
        recv,
        ack,
    } = accepted;
    let new = NewLink {
        number: shared.last_number.fetch_add(1, Ordering::Relaxed) + 1,
        node: ack.node.clone(),
        epoch: ack.epoch,
        version: ack.version,
        lease: Duration::from_millis(u64::from(ack.lease_ms)),
        connection,
    };
    let (core, waiting) = Core::new(new, &shared.config);
    shared.board.set(address, DialState::Up(core.id));
    let links = Arc::clone(&shared.links);
    let finishing = core.finishing.clone();
    let running = Running {
        core,
        peer: ack,
        send,
        recv,
        waiting,
        beat: None,
        tell: Arc::new(move |event| links.event(event)),
    };
    let mut link = std::pin::pin!(run::<WorkerSide>(running, &shared.config));
    tokio::select! {
        biased;
        why = &mut link => return why,
        () = shared.stop.cancelled() => finishing.cancel(),
    }
    // The writer's flush deadline bounds this.
    link.await
}
