//! Which requests a TCP connection is serving, and whether it still deserves its place.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use http_body::{Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::limits::DoorLimits;

/// What the first bytes of an HTTP/2 connection begin with.
const PREFACE: &[u8] = b"PRI ";

/// What to do with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Keep,
    /// No request for too long.
    Idle,
    /// The headers of a request have begun, and have not ended for too long.
    Late,
    /// A piece of an answer has been ready for too long and was not taken.
    Stalled,
}

/// The requests under way on one connection.
#[derive(Debug)]
pub(super) struct Occupancy {
    next_key: u64,
    requests: BTreeMap<u64, Entry>,
    idle_since: Instant,
    /// Since when the headers of the next request are on their way, over HTTP/1.1.
    head_since: Option<Instant>,
    protocol: Protocol,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Unknown,
    Http1,
    /// Says things between its requests too.
    Http2,
}

#[derive(Debug)]
struct Entry {
    /// Since when the connection has not asked for more of the answer after it was given some.
    offered: Option<Instant>,
    /// Ends this request alone, where the protocol can.
    cut: Option<Arc<Notify>>,
}

impl Occupancy {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            next_key: 0,
            requests: BTreeMap::new(),
            idle_since: now,
            head_since: None,
            protocol: Protocol::Unknown,
        }
    }

    /// Judges the connection; requests whose answers are not taken are cut alone where that is possible.
    pub(super) fn verdict(&self, now: Instant, limits: &DoorLimits) -> Verdict {
        let over = |since: Instant, limit| now.saturating_duration_since(since) >= limit;
        if self.requests.is_empty() {
            return match self.head_since {
                Some(since) if over(since, limits.header_read) => Verdict::Late,
                _ if over(self.idle_since, limits.idle) => Verdict::Idle,
                _ => Verdict::Keep,
            };
        }
        let mut verdict = Verdict::Keep;
        for entry in self.requests.values() {
            if !entry.offered.is_some_and(|since| over(since, limits.stall)) {
                continue;
            }
            match &entry.cut {
                Some(cut) => cut.notify_one(),
                None => verdict = Verdict::Stalled,
            }
        }
        verdict
    }

    /// Notes what the peer said.
    pub(super) fn hear(&mut self, bytes: &[u8], now: Instant) {
        if self.protocol == Protocol::Unknown {
            self.protocol = if bytes.starts_with(PREFACE) {
                Protocol::Http2
            } else {
                Protocol::Http1
            };
        }
        if self.protocol == Protocol::Http1 && self.requests.is_empty() {
            self.head_since.get_or_insert(now);
        }
    }

    fn enter(&mut self, cut: Option<Arc<Notify>>) -> u64 {
        // Only HTTP/2 can end a request alone; its first bytes may have come in pieces too small to tell.
        if cut.is_some() {
            self.protocol = Protocol::Http2;
        }
        self.head_since = None;
        let key = self.next_key;
        self.next_key += 1;
        self.requests.insert(key, Entry { offered: None, cut });
        key
    }

    fn note(&mut self, key: u64, offered: Option<Instant>) {
        if let Some(entry) = self.requests.get_mut(&key) {
            entry.offered = offered;
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

    /// Enters a request, and what ends it alone.
    pub(super) fn enter(&self, cut: Option<Arc<Notify>>) -> Place {
        let key = self.lock().enter(cut);
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

    use futures_util::FutureExt;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Late after 2 s, idle after 10 s, stalled after 5 s.
    fn check(occupancy: &Occupancy, now: Instant, expected: Verdict) {
        let limits = DoorLimits {
            header_read: 2 * SECOND,
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
        let key = occupancy.enter(None);
        check(&occupancy, start + 100 * SECOND, Verdict::Keep);
        occupancy.leave(key, start + 100 * SECOND);
        check(&occupancy, start + 109 * SECOND, Verdict::Keep);
        check(&occupancy, start + 110 * SECOND, Verdict::Idle);
    }

    #[test]
    fn headers_that_have_begun_must_end() {
        let start = Instant::now();
        let mut occupancy = Occupancy::new(start);
        occupancy.hear(b"GET ", start + SECOND);
        occupancy.hear(b"/ HTTP", start + 2 * SECOND);
        check(&occupancy, start + 2 * SECOND, Verdict::Keep);
        check(&occupancy, start + 3 * SECOND, Verdict::Late);
        let key = occupancy.enter(None);
        // Its body.
        occupancy.hear(b"{", start + 3 * SECOND);
        occupancy.leave(key, start + 4 * SECOND);
        check(&occupancy, start + 13 * SECOND, Verdict::Keep);
        check(&occupancy, start + 14 * SECOND, Verdict::Idle);
    }

    #[test]
    fn http2_may_speak_between_its_requests() {
        let start = Instant::now();
        let mut occupancy = Occupancy::new(start);
        occupancy.hear(b"PRI * HTTP/2.0", start);
        occupancy.hear(b"a window update", start + SECOND);
        check(&occupancy, start + 9 * SECOND, Verdict::Keep);
        check(&occupancy, start + 10 * SECOND, Verdict::Idle);
        // The preface in two pieces is told by the first request.
        let mut occupancy = Occupancy::new(start);
        occupancy.hear(b"PR", start);
        let key = occupancy.enter(Some(Arc::default()));
        occupancy.leave(key, start);
        occupancy.hear(b"a window update", start);
        check(&occupancy, start + 9 * SECOND, Verdict::Keep);
    }

    #[test]
    fn an_answer_that_is_not_taken_stalls_its_connection() {
        let start = Instant::now();
        let mut occupancy = Occupancy::new(start);
        let (slow, waiting) = (occupancy.enter(None), occupancy.enter(None));
        occupancy.note(slow, Some(start));
        occupancy.note(waiting, None);
        check(&occupancy, start + 4 * SECOND, Verdict::Keep);
        check(&occupancy, start + 5 * SECOND, Verdict::Stalled);
        occupancy.note(slow, None);
        check(&occupancy, start + 50 * SECOND, Verdict::Keep);
    }

    #[test]
    fn an_answer_that_can_be_cut_alone_is() {
        let start = Instant::now();
        let mut occupancy = Occupancy::new(start);
        let (slow, well) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let key = occupancy.enter(Some(Arc::clone(&slow)));
        occupancy.enter(Some(Arc::clone(&well)));
        occupancy.note(key, Some(start));
        check(&occupancy, start + 5 * SECOND, Verdict::Keep);
        assert!(slow.notified().now_or_never().is_some());
        assert!(well.notified().now_or_never().is_none());
    }
}
