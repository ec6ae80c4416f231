//! One gateway address: dial, say hello, run the link, wait, again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use quinn::{Connection, RecvStream, SendStream};
use tokio::time::{Instant, timeout_at};
use tracing::{debug, warn};
use wire::{HELLO_VERSION, HelloAck, HelloReply, MIN_VERSION, Message, Payload, Role, VERSION};

use crate::identity::{certified, node_name, server_name, shown};
use crate::link::{CloseCode, Core, DownReason, NewLink, Running, lost, read_frame, run};
use crate::worker::backoff::Backoff;
use crate::worker::dialer::Shared;
use crate::worker::{DialState, WorkerSide};

/// A gateway that cannot be linked is reported at the first failure and then at every so many.
const REPORT_EVERY: u64 = 16;

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

impl DialError {
    /// How the connection is closed.
    fn code(&self) -> CloseCode {
        match self {
            Self::Refused(_) => CloseCode::Over,
            Self::Connect(_) | Self::Hello(_) | Self::Deadline(_) => CloseCode::NoHello,
        }
    }
}

/// What the gateway said to the hello.
struct Answer {
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
            dialled = dial(&shared, address) => dialled,
        };
        let why = match dialled {
            Ok((connection, answer)) => {
                failures = 0;
                let began = Instant::now();
                let why = linked(&shared, address, connection, answer).await;
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
    if failures == 1 || failures.is_multiple_of(REPORT_EVERY) {
        warn!(%address, %error, failures, "a gateway cannot be linked: is it running, and there? trying on");
    } else {
        debug!(%address, %error, failures, "a gateway cannot be linked");
    }
    shared.links.dial_failed(address, error);
}

/// Connects and says hello, all within the hello's deadline.
async fn dial(shared: &Shared, address: SocketAddr) -> Result<(Connection, Answer), DialError> {
    let time = shared.config.hello_deadline;
    let deadline = Instant::now() + time;
    let late = DialError::Deadline(time);
    let connection = timeout_at(deadline, connect(shared, address))
        .await
        .unwrap_or(Err(late.clone()))?;
    let answer = timeout_at(deadline, greet(shared, &connection))
        .await
        .unwrap_or(Err(late));
    match answer {
        Ok(answer) => Ok((connection, answer)),
        Err(error) => {
            error.code().close(&connection, &error.to_string());
            Err(error)
        }
    }
}

async fn connect(shared: &Shared, address: SocketAddr) -> Result<Connection, DialError> {
    let name = server_name(Role::Gateway);
    let connecting = shared
        .endpoint
        .connect_with(shared.credentials.now(), address, &name)
        .map_err(|error| DialError::Connect(error.to_string()))?;
    connecting
        .await
        .map_err(|error| DialError::Connect(lost(&error).to_string()))
}

async fn greet(shared: &Shared, connection: &Connection) -> Result<Answer, DialError> {
    let failed = |why: DownReason| DialError::Hello(why.to_string());
    let (mut send, mut recv) = connection.open_bi().await.map_err(|error| failed(lost(&error)))?;
    let hello = shared
        .hello
        .encode(HELLO_VERSION)
        .map_err(|error| DialError::Hello(error.to_string()))?;
    send.write_all(hello.as_bytes())
        .await
        .map_err(|error| failed(error.into()))?;
    let mut payload = Payload::default();
    let header = read_frame(&mut recv, &mut payload, HelloReply::MAX_BYTES)
        .await
        .map_err(|error| failed(error.into()))?;
    let reply = HelloReply::decode(HELLO_VERSION, header, payload.as_bytes())
        .map_err(|error| DialError::Hello(error.to_string()))?;
    let ack = match reply {
        HelloReply::Accepted(ack) => ack,
        HelloReply::Refused(refused) => return Err(DialError::Refused(refused.reason)),
    };
    if !(MIN_VERSION..=VERSION).contains(&ack.version) {
        return Err(DialError::Hello(format!(
            "version {} was not offered",
            ack.version
        )));
    }
    let name = node_name(&ack.node);
    if !shown(connection).is_some_and(|leaf| certified(&leaf, &name)) {
        return Err(DialError::Hello(format!(
            "the gateway's certificate does not name it: `{name}` must be among its DNS names"
        )));
    }
    Ok(Answer { send, recv, ack })
}

/// Runs the link to its end.
async fn linked(shared: &Shared, address: SocketAddr, connection: Connection, answer: Answer) -> DownReason {
    let Answer { send, recv, mut ack } = answer;
    if planted!(EpochIgnored) {
        ack.epoch = ack.node.bytes().fold(1, |name, byte| name << 8 | u64::from(byte));
    }
    let new = NewLink {
        number: shared.last_number.fetch_add(1, Ordering::Relaxed) + 1,
        node: ack.node.clone(),
        epoch: ack.epoch,
        version: ack.version,
        lease: Duration::from_millis(u64::from(ack.lease_ms)),
        connection,
        stop: shared.stop.clone(),
        last_words: Arc::clone(&shared.last_words),
    };
    let (core, waiting) = Core::new(new, &shared.config);
    shared.board.set(address, DialState::Up(core.id));
    let links = Arc::clone(&shared.links);
    let running = Running {
        core,
        peer: ack,
        send,
        recv,
        waiting,
        beat: None,
        tell: Arc::new(move |event| links.event(event)),
    };
    run::<WorkerSide>(running, &shared.config).await
}
