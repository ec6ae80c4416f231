//! When a folder that should grow has stood still for too long.

use std::time::{Duration, Instant};

/// Between two looks at what should change.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

/// How long a number has stood still.
pub(crate) struct Silence {
    limit: Duration,
    last: u64,
    since: Instant,
}

impl Silence {
    /// Too long is longer than `limit`.
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            limit,
            last: 0,
            since: Instant::now(),
        }
    }

    /// Takes note of the number; says whether it has stood still for too long. A change to less is one too: somebody starts anew.
    pub(crate) fn too_long(&mut self, number: u64) -> bool {
        if number != self.last {
            (self.last, self.since) = (number, Instant::now());
        }
        self.since.elapsed() > self.limit
    }
}
