//! From the stream to the owner.

use std::sync::Arc;

use quinn::{ReadExactError, RecvStream};
use tokio::task::yield_now;
use tokio::time::Instant;
use tracing::{debug, warn};
use wire::{DecodeError, Header, HeaderError, Message, Payload};

use crate::faults::Switch;
use crate::link::{Core, DownReason, Unread, lost};

/// Why no frame came.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The stream or the connection is over.
    Stream(ReadExactError),
    /// What came is not a frame.
    Framing(HeaderError),
}

impl From<ReadError> for DownReason {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Framing(error) => Self::Framing(error),
            // Between two frames. (What breaks a link off closes the connection first.)
            ReadError::Stream(ReadExactError::FinishedEarly(0)) => Self::PeerStopped,
            ReadError::Stream(ReadExactError::FinishedEarly(_)) => {
                Self::PeerClosed("it ended its stream within a frame".to_owned())
            }
            ReadError::Stream(ReadExactError::ReadError(quinn::ReadError::ConnectionLost(error))) => {
                lost(&error)
            }
            ReadError::Stream(error) => Self::Lost(error.to_string()),
        }
    }
}

/// The next frame's header; its payload is in `payload` then. Does not wait longer than its caller: not cancel-safe.
pub(crate) async fn read_frame(
    stream: &mut RecvStream,
    payload: &mut Payload,
    max_bytes: u32,
) -> Result<Header, ReadError> {
    let mut bytes = [0; Header::BYTES];
    stream.read_exact(&mut bytes).await.map_err(ReadError::Stream)?;
    let header = Header::parse(&bytes).map_err(ReadError::Framing)?;
    if header.length > max_bytes {
        return Err(ReadError::Framing(HeaderError::TooLarge {
            bytes: header.length,
            limit: max_bytes,
        }));
    }
    let read = stream.read_exact(payload.prepare(header)).await;
    read.map_err(|error| {
        ReadError::Stream(match error {
            ReadExactError::FinishedEarly(got) => ReadExactError::FinishedEarly(Header::BYTES + got),
            other => other,
        })
    })?;
    Ok(header)
}

/// Frames after which the link's writer has its turn, however many more there are: they share a task.
const FRAMES_A_TURN: u64 = 32;

/// Reads until the link is over. `deliver` must not block. (The keeper's lease is the deadline of every wait here.)
pub(crate) async fn read_loop<In: Message>(
    core: &Arc<Core>,
    mut stream: RecvStream,
    switch: &Switch,
    deliver: impl Fn(In, Unread),
) -> DownReason {
    let mut payload = Payload::default();
    loop {
        for _ in 0..FRAMES_A_TURN {
            if let Err(why) = next(core, &mut stream, &mut payload, switch, &deliver).await {
                return why;
            }
        }
        yield_now().await;
    }
}

/// Reads one frame, and delivers or drops it.
async fn next<In: Message>(
    core: &Core,
    stream: &mut RecvStream,
    payload: &mut Payload,
    switch: &Switch,
    deliver: impl Fn(In, Unread),
) -> Result<(), DownReason> {
    let header = read_frame(stream, payload, In::MAX_BYTES).await?;
    if switch.cuts_in() {
        return Ok(());
    }
    let bytes = Header::BYTES + payload.as_bytes().len();
    let frame = In::decode(core.version, header, payload.as_bytes());
    // A peer of which nothing is understood is as good as silent.
    let now = Instant::now();
    match &frame {
        Ok(_) => core.lease.renew(now)?,
        Err(_) => core.lease.check(now)?,
    }
    core.counters.received(bytes);
    match frame {
        Ok(frame) => {
            let unread = core.places.take(bytes).await;
            // A link that was ended by its owner is over at once for its owner, not when this task notices.
            if core.ending.is_cancelled() {
                return Err(DownReason::Stopped);
            }
            deliver(frame, unread);
        }
        Err(error) => dropped(core, &error),
    }
    Ok(())
}

fn dropped(core: &Core, error: &DecodeError) {
    let (node, link) = (&core.node, core.id.number);
    core.counters.dropped();
    match core.complaints.hear("dropped", Instant::now()) {
        Some(unsaid) => warn!(%node, link, %error, unsaid, "dropped a frame"),
        None => debug!(%node, link, %error, "dropped a frame"),
    }
}
