//! The one clock of a process, as the sans-IO machines see it.

use room::{Span, Time};
use std::time::Duration;
use tokio::time::Instant;

/// A monotonic clock with an origin. Under paused tokio time it is virtual, like everything that reads it.
#[derive(Copy, Clone, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock whose origin is now.
    #[must_use]
    pub fn start() -> Self {
        Self {
            origin: Instant::now(),
        }
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Time {
        Time {
            micros: u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX),
        }
    }

    /// The instant to sleep until for `time` to have come. Capped at a day ahead: nothing here waits longer.
    #[must_use]
    pub fn instant(&self, time: Time) -> Instant {
        let day = self.now() + Span::from_millis(86_400_000);
        self.origin + Duration::from_micros(time.min(day).micros)
    }
}
