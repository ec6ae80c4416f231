//! What a connection may take up.

use std::time::Duration;

/// Limits on connections and streams, the same on every door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoorLimits {
    /// Connections open at once, over all doors. More wait in the listener's backlog (TCP) or are refused (QUIC).
    pub connections: usize,
    /// Requests under way at once on one HTTP/2 or HTTP/3 connection.
    pub streams: u32,
    /// The headers of one request, in bytes, at least 8192; more is 431, or the end of the stream.
    pub header_bytes: u32,
    /// A handshake, and the headers of a request once they have begun, must be complete within this time. (An HTTP/2 connection
    /// whose headers do not come counts as idle.)
    pub header_read: Duration,
    /// A connection without a request is closed after this time.
    pub idle: Duration,
    /// A client that takes nothing of a ready answer for this time is cut off (over HTTP/2 and HTTP/3 only that answer is); so is
    /// one that answers no probe.
    pub stall: Duration,
    /// How long requests under way may go on after shutdown began.
    pub drain: Duration,
}

impl Default for DoorLimits {
    fn default() -> Self {
        Self {
            connections: 8192,
            streams: 256,
            header_bytes: 32 << 10,
            header_read: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            stall: Duration::from_secs(60),
            drain: Duration::from_secs(30),
        }
    }
}

impl DoorLimits {
    /// How often a connection looks at its own limits.
    pub(super) fn check_interval(&self) -> Duration {
        (self.idle.min(self.stall).min(self.header_read) / 4)
            .clamp(Duration::from_millis(10), Duration::from_secs(5))
    }

    /// How often a silent peer is probed.
    pub(super) fn probe_interval(&self) -> Duration {
        (self.stall / 4).max(Duration::from_millis(10))
    }
}
