//! The queue between those who serve and the one who sends: bounded, and never waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use observe::{Keep, RoomHistory, StayHistory, Text, TraceSink};
use opentelemetry::Context;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use room::{NodeId, Time};
use tokio::sync::mpsc;

/// What may wait. A history has ten kilobytes at most, and most of these are remembered anyway.
pub(super) const WAITING: usize = 2_048;

/// What is to be sent.
#[derive(Debug)]
pub(super) enum Item {
    /// A request whose rooms are over.
    Request(Vec<Arc<RoomHistory>>, Keep),
    /// A stay that is over.
    Stay(Arc<StayHistory>),
    /// A span of the node's own life.
    Own(Box<SpanData>),
    /// A link that came to be.
    Link(Link),
}

/// From when a worker was without a link to a gateway until it had one.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// The worker's name.
    pub(super) name: Text,
    /// The gateway's incarnation.
    pub(super) gateway: NodeId,
    /// Since when there was none.
    pub(super) start: Time,
    /// When there was.
    pub(super) end: Time,
    /// Why the one before it ended, if there was one.
    pub(super) lost: Option<Text>,
}

/// What became of what was to be sent, since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    sent: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
}

impl Counts {
    /// Spans that the collector took.
    #[cfg(test)]
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Spans that it did not take.
    #[cfg(test)]
    pub(super) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// What was lost: spans that the collector did not take, and requests, stays and single spans that found the queue full.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed) + self.failed.load(Ordering::Relaxed)
    }

    pub(super) fn count(&self, spans: usize, taken: bool) {
        let counter = if taken { &self.sent } else { &self.failed };
        counter.fetch_add(spans as u64, Ordering::Relaxed);
    }
}

/// The sending end of the queue.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    items: mpsc::Sender<Item>,
    counts: Arc<Counts>,
}

impl Queue {
    pub(super) fn new() -> (Self, mpsc::Receiver<Item>) {
        let (items, receiver) = mpsc::channel(WAITING);
        let counts = Arc::default();
        (Self { items, counts }, receiver)
    }

    pub(super) fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    pub(super) fn put(&self, item: Item) {
        if self.items.try_send(item).is_err() {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl TraceSink for Queue {
    fn request(&self, rooms: &[Arc<RoomHistory>], keep: Keep) {
        self.put(Item::Request(rooms.to_vec(), keep));
    }

    fn stay(&self, history: &Arc<StayHistory>) {
        self.put(Item::Stay(Arc::clone(history)));
    }
}

/// Takes the spans of the node's own life from the SDK.
#[derive(Debug)]
pub(super) struct Own(pub(super) Queue);

impl SpanProcessor for Own {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        self.0.put(Item::Own(Box::new(span)));
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    /// The queue outlives the SDK's part of it, and is emptied by its owner.
    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}
