//! What one end tells the other when it closes: QUIC's application error code, and a reason for people.

use quinn::{Connection, ConnectionError, VarInt};

use crate::link::DownReason;

/// Why a connection is closed. Part of the wire format: a number is never used again for something else.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(crate) enum CloseCode {
    /// Nothing was said: what QUIC sends for a connection that is dropped.
    Gone = 0,
    /// In order: what was queued was delivered, or had its time.
    Stopped = 1,
    /// The hello was refused, or the answer to it.
    Refused = 2,
    /// No hello, or no answer to it, in time; or it was none.
    NoHello = 3,
    /// The peer was silent for the lease.
    Silent = 4,
    /// The peer takes nothing.
    NotReading = 5,
    /// This end cannot keep up with the peer.
    Behind = 6,
    /// The peer's newer incarnation is here.
    Replaced = 7,
    /// The link's owner ended it.
    Closed = 8,
    /// What the peer sends is no frames.
    Framing = 9,
    /// The peer ended the link; this is the other half.
    Over = 10,
}

impl CloseCode {
    /// As QUIC sends it.
    pub(crate) fn number(self) -> VarInt {
        VarInt::from_u32(self as u32)
    }

    pub(crate) fn close(self, connection: &Connection, reason: &str) {
        connection.close(self.number(), reason.as_bytes());
    }
}

impl DownReason {
    /// What the peer is told.
    pub(crate) fn code(&self) -> CloseCode {
        match self {
            Self::Silent { .. } => CloseCode::Silent,
            Self::NotReading { .. } => CloseCode::NotReading,
            Self::Behind { .. } => CloseCode::Behind,
            Self::Replaced => CloseCode::Replaced,
            Self::Closed(_) => CloseCode::Closed,
            Self::Framing(_) => CloseCode::Framing,
            Self::Stopped => CloseCode::Stopped,
            Self::PeerStopped | Self::PeerClosed(_) | Self::Lost(_) => CloseCode::Over,
        }
    }

    /// The reason that the peer is told: as this end has it, but that it was closed is nothing new there.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Closed(why) => why.clone(),
            other => other.to_string(),
        }
    }
}

/// How a lost connection is told.
pub(crate) fn lost(error: &ConnectionError) -> DownReason {
    match error {
        // The whole endpoint was closed, by its owner: the other ways to close say so themselves.
        ConnectionError::LocallyClosed => DownReason::Stopped,
        ConnectionError::ApplicationClosed(close) if close.error_code == CloseCode::Stopped.number() => {
            DownReason::PeerStopped
        }
        ConnectionError::ApplicationClosed(close) if close.reason.is_empty() => {
            DownReason::PeerClosed(format!("it is gone without a reason, code {}", close.error_code))
        }
        ConnectionError::ApplicationClosed(close) => {
            DownReason::PeerClosed(printable(&String::from_utf8_lossy(&close.reason)))
        }
        error => DownReason::Lost(printable(&error.to_string())),
    }
}

/// A text on one line: what a peer says must not look like something else in a log.
pub(crate) fn printable(text: &str) -> String {
    let line = text.chars();
    line.map(|c| {
        if c.is_control() {
            char::REPLACEMENT_CHARACTER
        } else {
            c
        }
    })
    .collect()
}
