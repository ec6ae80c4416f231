//! From the stream to the owner.

use std::sync::Arc;

use quinn::{ConnectionError, ReadExactError, RecvStream};
use tokio::time::Instant;
use tracing::{debug, warn};
use wire::{DecodeError, Header, HeaderError, Message, Payload};

use crate::faults::Switch;
use crate::link::{Core, DownReason};

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
            ReadError::Stream(ReadExactError::FinishedEarly(_)) => {
                Self::PeerClosed("it ended its stream".to_owned())
            }
            ReadError::Stream(ReadExactError::ReadError(quinn::ReadError::ConnectionLost(error))) => {
                lost(&error)
            }
            ReadError::Stream(error) => Self::Lost(error.to_string()),
        }
    }
}

/// How a lost connection is told.
pub(crate) fn lost(error: &ConnectionError) -> DownReason {
    match error {
        ConnectionError::ApplicationClosed(close) => {
            DownReason::PeerClosed(String::from_utf8_lossy(&close.reason).into_owned())
        }
        error => DownReason::Lost(error.to_string()),
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
    stream
        .read_exact(payload.prepare(header))
        .await
        .map_err(ReadError::Stream)?;
    Ok(header)
}

/// Reads until the link is over. `deliver` must not block. (The keeper's lease is the deadline of every read here.)
pub(crate) async fn read_loop<In: Message>(
    core: &Arc<Core>,
    mut stream: RecvStream,
    switch: &Switch,
    deliver: impl Fn(In),
) -> DownReason {
    let mut payload = Payload::default();
    loop {
        let header = match read_frame(&mut stream, &mut payload, In::MAX_BYTES).await {
            Ok(header) => header,
            Err(error) => return error.into(),
        };
        if switch.cuts_in() {
            continue;
        }
        if let Err(silent) = core.lease.renew(Instant::now()) {
            return silent;
        }
        core.counters.received(Header::BYTES + payload.as_bytes().len());
        match In::decode(core.version, header, payload.as_bytes()) {
            // A link that was ended by its owner is over at once for its owner, not when this task notices.
            Ok(_) if core.ending.is_cancelled() => return DownReason::Stopped,
            Ok(frame) => deliver(frame),
            Err(error) => dropped(core, &error),
        }
    }
}

/// The first is worth a warning; many would only fill the log.
fn dropped(core: &Core, error: &DecodeError) {
    let (node, link) = (&core.node, core.id.number);
    if core.counters.dropped() == 1 {
        warn!(%node, link, %error, "dropped a frame; further ones are only counted");
    } else {
        debug!(%node, link, %error, "dropped a frame");
    }
}
