//! How many frames the owner of a link may be behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::Config;

/// Counts a received frame as unread until it is dropped.
///
/// Whoever takes a frame elsewhere (to a mailbox, say) takes this along. A link reads no further while its queue's worth of frames
/// or bytes is unread, so that a peer that sends without end fills no memory here; if that lasts for the lease, the link is over.
#[derive(Debug)]
pub struct Unread {
    _place: Option<OwnedSemaphorePermit>,
}

/// The places for unread frames of one link.
#[derive(Debug)]
pub(crate) struct Places {
    /// One permit a byte.
    free: Arc<Semaphore>,
    /// Of all of them: what even the longest frame takes.
    most: u32,
    /// What even the shortest frame takes: so that bytes bound the frames too.
    least: u32,
    waiting: AtomicBool,
}

impl Places {
    pub(crate) fn new(config: &Config) -> Self {
        let bytes = config.queue_bytes.clamp(1, Semaphore::MAX_PERMITS);
        let most = u32::try_from(bytes).unwrap_or(u32::MAX);
        let frames = u32::try_from(config.queue_frames).unwrap_or(u32::MAX).max(1);
        Self {
            free: Arc::new(Semaphore::new(most as usize)),
            most,
            least: (most / frames).max(1),
            waiting: AtomicBool::new(false),
        }
    }

    /// Waits for places for a frame of so many bytes. The keeper's lease bounds it.
    pub(crate) async fn take(&self, bytes: usize) -> Unread {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).max(self.least);
        self.waiting.store(true, Ordering::Relaxed);
        let places = Arc::clone(&self.free).acquire_many_owned(bytes.min(self.most));
        // The semaphore is never closed.
        let place = places.await.ok();
        self.waiting.store(false, Ordering::Relaxed);
        Unread { _place: place }
    }

    /// Whether the reader waits for the owner.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use tokio::time::{Duration, timeout};

    use super::Places;
    use crate::config::Config;

    /// Frames of so many bytes, one after the other, in a queue of 10 frames and 1000 bytes: how many have a place.
    async fn check(bytes: usize, expected: usize) {
        let places = Places::new(&Config {
            queue_frames: 10,
            queue_bytes: 1000,
            ..Config::default()
        });
        let mut unread = Vec::new();
        for _ in 0..expected {
            unread.push(places.take(bytes).await);
        }
        let mut next = pin!(places.take(bytes));
        let waits = timeout(Duration::from_secs(1), &mut next).await.is_err();
        assert!(
            waits && places.is_waiting(),
            "more than {expected} of {bytes} bytes"
        );
        unread.clear();
        next.await;
        assert!(!places.is_waiting());
    }

    #[tokio::test(start_paused = true)]
    async fn frames_and_bytes_are_bounded() {
        check(1, 10).await;
        check(100, 10).await;
        check(300, 3).await;
        check(5000, 1).await;
    }
}
