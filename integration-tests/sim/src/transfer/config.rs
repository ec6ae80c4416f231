//! How fast the simulated data path is, and how long it waits.

use std::time::Duration;

/// Settings of a [`super::Network`].
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Config {
    /// How long a message takes from one member to another.
    pub latency: Duration,
    /// How long one block takes on a path; blocks of one path come one after another.
    pub block_time: Duration,
    /// Most blocks of one piece: they land together.
    pub piece_blocks: u32,
    /// How long a read or an answer may stay without progress before its endpoint is closed by force. The default is
    /// that of `kv-ucx`.
    pub no_progress: Duration,
    /// Longest that a forced close takes.
    pub close: Duration,
    /// Longest that a forced close takes where [`super::Faults::slow_close`] strikes.
    pub slow_close: Duration,
    /// How long after a crash its peers' endpoints fail.
    pub error_delay: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            latency: Duration::from_millis(1),
            block_time: Duration::from_millis(2),
            piece_blocks: 4,
            no_progress: Duration::from_secs(2),
            close: Duration::from_millis(50),
            slow_close: Duration::from_secs(1),
            error_delay: Duration::from_millis(20),
        }
    }
}
