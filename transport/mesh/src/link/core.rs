//! What the parts of a link share.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use quinn::Connection;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wire::EncodedFrame;

use crate::complaints::Complaints;
use crate::config::Config;
use crate::link::lease::Lease;
use crate::link::stats::Counters;
use crate::link::unread::Places;
use crate::link::{CloseCode, DownReason, LastWords, LinkId, LinkStats, SendError};

/// Everything about one link that does not depend on its direction.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) id: LinkId,
    pub(crate) node: String,
    pub(crate) version: u16,
    pub(crate) lease: Lease,
    pub(crate) remote: SocketAddr,
    /// Until the link is over: it holds the socket open, and handles of a link may be kept for long.
    connection: Mutex<Option<Connection>>,
    pub(crate) counters: Counters,
    /// Of the peer.
    pub(crate) complaints: Complaints,
    /// For frames that came in.
    pub(crate) places: Places,
    queue: mpsc::Sender<EncodedFrame>,
    queued_bytes: AtomicUsize,
    queue_bytes: usize,
    why: OnceLock<DownReason>,
    /// The link is to end now.
    pub(crate) ending: CancellationToken,
    /// The link's owner stops: it is to end once what is queued is delivered.
    pub(crate) finishing: CancellationToken,
    /// The link's owner's.
    last_words: Arc<LastWords>,
}

/// What a link is made of.
#[derive(Debug)]
pub(crate) struct NewLink {
    /// Its number.
    pub(crate) number: u64,
    /// The peer's name.
    pub(crate) node: String,
    /// The peer's incarnation.
    pub(crate) epoch: u64,
    /// The agreed version.
    pub(crate) version: u16,
    /// The agreed lease.
    pub(crate) lease: Duration,
    /// What carries it.
    pub(crate) connection: Connection,
    /// Cancelled when its listener or dialer is to stop.
    pub(crate) stop: CancellationToken,
    /// What the peer hears if that owner ends without having stopped.
    pub(crate) last_words: Arc<LastWords>,
}

impl Core {
    /// A link, and the end of its queue that its writer takes from.
    pub(crate) fn new(new: NewLink, config: &Config) -> (Arc<Self>, mpsc::Receiver<EncodedFrame>) {
        let (queue, waiting) = mpsc::channel(config.queue_frames.max(1));
        let core = Self {
            id: LinkId {
                number: new.number,
                epoch: new.epoch,
            },
            node: new.node,
            version: new.version,
            lease: Lease::new(new.lease, Instant::now()),
            remote: new.connection.remote_address(),
            connection: Mutex::new(Some(new.connection)),
            counters: Counters::default(),
            complaints: Complaints::default(),
            places: Places::new(config),
            queue,
            queued_bytes: AtomicUsize::new(0),
            queue_bytes: config.queue_bytes,
            why: OnceLock::new(),
            ending: CancellationToken::new(),
            finishing: new.stop,
            last_words: new.last_words,
        };
        (Arc::new(core), waiting)
    }

    /// Ends the link now, whatever is queued. The first reason stands, here and for the peer.
    pub(crate) fn end(&self, why: DownReason) {
        let (code, words) = (why.code(), why.words());
        self.end_with(why, code, &words);
    }

    /// Ends the link because its owner is gone. Unless it was stopped, that is no end in order: the peer hears the owner's last words.
    pub(crate) fn abandon(&self) {
        if self.finishing.is_cancelled() {
            return self.end(DownReason::Stopped);
        }
        self.end_with(DownReason::Stopped, CloseCode::Gone, &self.last_words.get());
    }

    fn end_with(&self, why: DownReason, code: CloseCode, words: &str) {
        // Under one lock: of two that end it at a time, the one whose reason stands closes.
        let mut connection = self.connection();
        if self.why.set(why).is_ok()
            && let Some(connection) = connection.take()
        {
            code.close(&connection, words);
        }
        drop(connection);
        self.ending.cancel();
    }

    fn connection(&self) -> MutexGuard<'_, Option<Connection>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rtt(&self) -> Duration {
        self.connection()
            .as_ref()
            .map(Connection::rtt)
            .unwrap_or_default()
    }

    /// The first reason, or this one.
    pub(crate) fn reason_or(&self, why: DownReason) -> DownReason {
        self.why.get().cloned().unwrap_or(why)
    }

    /// Whether nothing can be queued any more.
    pub(crate) fn is_down(&self) -> bool {
        self.ending.is_cancelled() || self.finishing.is_cancelled()
    }

    pub(crate) fn enqueue(&self, frame: EncodedFrame) -> Result<(), SendError> {
        if self.is_down() {
            return Err(SendError::Down);
        }
        let bytes = frame.as_bytes().len();
        let full = |bytes| SendError::Full {
            frames: self.queued_frames(),
            bytes,
        };
        let before = self.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        let sent = if before + bytes > self.queue_bytes {
            Err(full(before))
        } else {
            self.queue.try_send(frame).map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => full(before),
                mpsc::error::TrySendError::Closed(_) => SendError::Down,
            })
        };
        if sent.is_err() {
            self.dequeued(bytes);
        }
        sent
    }

    /// The writer took a frame of so many bytes.
    pub(crate) fn dequeued(&self, bytes: usize) {
        self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn queued_frames(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }

    pub(crate) fn stats(&self) -> LinkStats {
        let bytes = self.queued_bytes.load(Ordering::Relaxed);
        self.counters.snapshot(self.queued_frames(), bytes, self.rtt())
    }
}
