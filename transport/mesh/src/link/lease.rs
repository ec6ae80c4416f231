//! How long silence may last: the one place that knows, by the monotonic clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::link::DownReason;

/// The lease of one link. It is renewed by every frame that is understood and comes before its end, and by none that comes after.
#[derive(Debug)]
pub(crate) struct Lease {
    length: Duration,
    began: Instant,
    /// Microseconds after `began` at which the last frame came.
    heard: AtomicU64,
}

impl Lease {
    pub(crate) fn new(length: Duration, now: Instant) -> Self {
        Self {
            length,
            began: now,
            heard: AtomicU64::new(0),
        }
    }

    pub(crate) fn length(&self) -> Duration {
        self.length
    }

    /// A frame has come.
    ///
    /// `Err` if that was too late. Who was frozen finds frames that waited for it, and must not believe them: the peer
    /// has given it up in the meantime.
    pub(crate) fn renew(&self, now: Instant) -> Result<(), DownReason> {
        self.check(now)?;
        let heard = now.saturating_duration_since(self.began).as_micros();
        self.heard
            .fetch_max(u64::try_from(heard).unwrap_or(u64::MAX), Ordering::Relaxed);
        Ok(())
    }

    /// `Err` if it is over.
    pub(crate) fn check(&self, now: Instant) -> Result<(), DownReason> {
        let silence = now.saturating_duration_since(self.heard_at());
        let lease = self.length;
        if silence > lease {
            Err(DownReason::Silent { silence, lease })
        } else {
            Ok(())
        }
    }

    /// When to check: it is over then if nothing comes until then.
    pub(crate) fn end(&self) -> Instant {
        // One more millisecond, the grain of timers.
        self.heard_at() + self.length + Duration::from_millis(1)
    }

    fn heard_at(&self) -> Instant {
        self.began + Duration::from_micros(self.heard.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::Lease;

    /// Frames come at these milliseconds; whether the last of them is believed.
    fn check(frames_ms: &[u64], believed: bool) {
        let began = Instant::now();
        let lease = Lease::new(Duration::from_secs(2), began);
        let at = |ms: &u64| began + Duration::from_millis(*ms);
        let results: Vec<_> = frames_ms.iter().map(|ms| lease.renew(at(ms)).is_ok()).collect();
        assert_eq!(results.last(), Some(&believed), "{frames_ms:?}");
        let last = frames_ms
            .iter()
            .zip(&results)
            .rfind(|(_, ok)| **ok)
            .map_or(began, |(ms, _)| at(ms));
        assert!(lease.check(last + Duration::from_millis(2000)).is_ok());
        assert!(lease.check(lease.end()).is_err(), "at its end it is over");
    }

    #[test]
    fn a_frame_renews_it_only_before_its_end() {
        check(&[2000], true);
        check(&[2001], false);
        check(&[1000, 3000, 5000], true);
        check(&[1000, 3001], false);
        check(&[5000, 5001], false);
    }
}
