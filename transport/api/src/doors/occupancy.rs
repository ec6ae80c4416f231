//! Which requests a TCP connection is serving, and whether it still deserves its place.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use http_body::{Frame, SizeHint};
use tokio::time::Instant;

use super::limits::DoorLimits;

/// What to do with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Keep,
    /// No request for too long.
    Idle,
    /// A piece of an answer has been ready for too long and was not taken.
    Stalled,
}

/// The requests under way on one connection.
#[derive(Debug)]
pub(super) struct Occupancy {
    next_key: u64,
    /// For each request: since when the connection has not asked for more of its answer after it was given some.
    requests: BTreeMap<u64, Option<Instant>>,
    idle_since: Instant,
}

impl Occupancy {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            next_key: 0,
            requests: BTreeMap::new(),
            idle_since: now,
        }
    }

    pub(super) fn verdict(&self, now: Instant, limits: &DoorLimits) -> Verdict {
        let over = |since: Instant, limit| now.saturating_duration_since(since) >= limit;
        if self.requests.is_empty() && over(self.idle_since, limits.idle) {
            return Verdict::Idle;
        }
        if self
            .requests
            .values()
            .flatten()
            .any(|since| over(*since, limits.stall))
        {
            return Verdict::Stalled;
        }
        Verdict::Keep
    }

    fn enter(&mut self) -> u64 {
        let key = self.next_key;
        self.next_key += 1;
        self.requests.insert(key, None);
        key
    }

    fn note(&mut self, key: u64, offered: Option<Instant>) {
        if let Some(since) = self.requests.get_mut(&key) {
            *since = offered;
        }
    }

    fn leave(&mut self, key: u64, now: Instant) {
        self.requests.remove(&key);
        if self.requests.is_empty() {
            self.idle_since = now;
        }
    }
}

/// An [`Occupancy`] shared by a connection and its requests; never held across an await.
#[derive(Debug, Clone)]
pub(super) struct Shared(Arc<Mutex<Occupancy>>);

impl Shared {
    pub(super) fn new(now: Instant) -> Self {
        Self(Arc::new(Mutex::new(Occupancy::new(now))))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Occupancy> {
        // The counts stay right whoever panics: every method leaves them whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a request.
    pub(super) fn enter(&self) -> Place {
        let key = self.lock().enter();
        Place {
            shared: self.clone(),
            key,
        }
    }
}

/// One request's place on its connection, until dropped.
#[derive(Debug)]
pub(super) struct Place {
    shared: Shared,
    key: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.lock().leave(self.key, Instant::now());
    }
}

/// A body that keeps its request's place, and notes when it is taken and when it is left waiting.
#[derive(Debug)]
pub(super) struct Placed {
    body: Body,
    place: Place,
}

impl Placed {
    pub(super) fn new(body: Body, place: Place) -> Self {
        Self { body, place }
    }
}

impl http_body::Body for Placed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        let offered = matches!(polled, Poll::Ready(Some(Ok(_)))).then(Instant::now);
        self.place.shared.lock().note(self.place.key, offered);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Idle after 10 s, stalled after 5 s.
    fn check(occupancy: &Occupancy, now: Instant, expected: Verdict) {
        let limits = DoorLimits {
            idle: 10 * SECOND,
            stall: 5 * SECOND,
            ..DoorLimits::default()
        };
        assert_eq!(occupancy.verdict(now, &limits), expected);
    }

    #[test]
    fn a_connection_is_idle_only_without_requests() {
        let start = Instant::now();
        let mut occupancy = Occupancy::new(start);
        check(&occupancy, start + 9 * SECOND, Verdict::Keep);
        check(&occupancy, start + 10 * SECOND, Verdict::Idle);
        let key = occupancy.enter();
        check(&occupancy, start + 100 * SECOND, Verdict::Keep);
        occupancy.leave(key, start + 100 * SECOND);
        check(&occupancy, start + 109 * SECOND, Verdict::Keep);
        check(&occupancy, start + 110 * SECOND, Verdict::Idle);
    }

    #[test]
    fn an_answer_that_is_not_taken_stalls_its_connection() {
        let start = Instant::now();
        let mut occupancy = Occupancy::new(start);
        let (slow, waiting) = (occupancy.enter(), occupancy.enter());
        occupancy.note(slow, Some(start));
        occupancy.note(waiting, None);
        check(&occupancy, start + 4 * SECOND, Verdict::Keep);
        check(&occupancy, start + 5 * SECOND, Verdict::Stalled);
        occupancy.note(slow, None);
        check(&occupancy, start + 50 * SECOND, Verdict::Keep);
    }
}
