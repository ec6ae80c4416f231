//! Every limit and every time of a link.

use std::time::Duration;

/// Limits and times. The defaults are the ones the design's bounds are computed with.
#[derive(Clone, Debug)]
pub struct Config {
    /// Between a gateway's heartbeats.
    pub heartbeat: Duration,
    /// Silence that ends a link. A worker takes the gateway's, from the answer to its hello.
    pub lease: Duration,
    /// From the first packet of a connection to the end of the hello.
    pub hello_deadline: Duration,
    /// How long a peer may take nothing of what is written to it.
    pub stall_deadline: Duration,
    /// How long a link that is ended in order may take to deliver what was queued.
    pub flush_deadline: Duration,
    /// Frames that may be queued on a link, and those that may have come and not been dealt with: see [`Unread`](crate::Unread).
    pub queue_frames: usize,
    /// Bytes of such frames, each way. A heartbeat waits behind what is queued: a network that does not carry this much within a
    /// lease ends links when they are full.
    pub queue_bytes: usize,
    /// Connections that may be in their handshake or hello at a time; more are refused. Beyond the half of it a caller must first
    /// show that it is where it says (a QUIC retry).
    pub max_pending: usize,
    /// Links that a gateway may have; further workers are refused.
    pub max_links: usize,
    /// Wait after the first failure to dial.
    pub backoff_min: Duration,
    /// Longest wait between two attempts to dial.
    pub backoff_max: Duration,
    /// Between two look-ups of a target's addresses.
    pub resolve_every: Duration,
    /// For the look-ups of all targets' addresses, which are made at a time.
    pub resolve_deadline: Duration,
    /// Whether QUIC probes for larger packets. Off where packet traces must repeat.
    pub mtu_discovery: bool,
    /// Seeds the jitter of the backoff. Without one it is random.
    pub seed: Option<u64>,
    /// The fault switches of the links made with this configuration.
    #[cfg(feature = "faults")]
    pub faults: std::sync::Arc<crate::faults::Faults>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_millis(250),
            lease: Duration::from_secs(2),
            hello_deadline: Duration::from_secs(2),
            stall_deadline: Duration::from_secs(2),
            flush_deadline: Duration::from_secs(1),
            queue_frames: 8192,
            queue_bytes: 32 * 1024 * 1024,
            max_pending: 64,
            max_links: 1024,
            backoff_min: Duration::from_millis(50),
            backoff_max: Duration::from_secs(1),
            resolve_every: Duration::from_secs(2),
            resolve_deadline: Duration::from_secs(5),
            mtu_discovery: true,
            seed: None,
            #[cfg(feature = "faults")]
            faults: std::sync::Arc::default(),
        }
    }
}
