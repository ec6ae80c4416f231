//! Deadlines: what makes no progress has its endpoint closed.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use kv::ReadError;

use super::{Engine, EpId};

/// A read whose own pieces stay away this many limits is given up even if its endpoint is busy with others.
const OWN_LIMITS: u32 = 8;
/// Longest sleep with an endpoint open, and without.
const SLEEP: Duration = Duration::from_millis(20);
const IDLE_SLEEP: Duration = Duration::from_millis(100);

impl Engine {
    /// Acts on every deadline that has passed.
    pub(super) fn check_deadlines(&mut self) {
        self.close_stalled_reads();
        self.close_stalled_serves();
    }

    fn close_stalled_reads(&mut self) {
        let why = ReadError::NoProgress {
            ms: self.no_progress_ms,
        };
        let mut stalled = BTreeSet::new();
        for reading in self.reads.values_mut() {
            let Some(ep) = self.endpoints.get(&reading.ep) else {
                continue;
            };
            if is_stalled(self.now, self.limit, reading.progress, ep.progress) {
                reading.fail(why.clone());
                stalled.insert(reading.ep);
            }
        }
        let other = ReadError::SourceLost("another read on its endpoint made no progress".into());
        for ep in stalled {
            self.close(ep, &other);
        }
    }

    fn close_stalled_serves(&mut self) {
        let mut stalled: Vec<EpId> = Vec::new();
        for serving in self.serves.values() {
            let Some(ep) = self.endpoints.get(&serving.ep) else {
                continue;
            };
            if is_stalled(self.now, self.limit, serving.progress, ep.progress) {
                stalled.push(serving.ep);
            }
        }
        for ep in stalled {
            self.close(
                ep,
                &ReadError::SourceLost("its answers to this worker made no progress".into()),
            );
        }
    }

    /// How long the thread may sleep. Not long even when it is idle: a wake-up that UCX forgets costs no more.
    pub(super) fn sleep_limit(&self) -> Duration {
        match self.endpoints.is_empty() {
            true => IDLE_SLEEP,
            false => (self.limit / 8).min(SLEEP),
        }
    }
}

/// Whether nothing came for one operation and its endpoint for `limit`, or for the operation alone for far longer.
fn is_stalled(now: Instant, limit: Duration, own: Instant, endpoint: Instant) -> bool {
    now.duration_since(own.max(endpoint)) > limit || now.duration_since(own) > limit * OWN_LIMITS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(own_s: u64, endpoint_s: u64, want: bool) {
        let start = Instant::now();
        let now = start + Duration::from_secs(100);
        let ago = |s| now - Duration::from_secs(s);
        assert_eq!(
            is_stalled(now, Duration::from_secs(2), ago(own_s), ago(endpoint_s)),
            want
        );
    }

    #[test]
    fn progress_of_the_endpoint_counts_for_a_while() {
        check(1, 1, false);
        check(3, 1, false);
        check(1, 3, false);
        check(3, 3, true);
        check(17, 1, true);
    }
}
