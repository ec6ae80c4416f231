//! What the parts of a link share, and the handle through which others write to it.

use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use quinn::Connection;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wire::{EncodeError, EncodedFrame, Message};

use crate::config::Config;
use crate::link::lease::Lease;
use crate::link::stats::Counters;
use crate::link::{CLOSED, DownReason, LinkId, LinkStats};

/// Why a frame was not queued.
#[derive(Clone, Eq, PartialEq, Debug, thiserror::Error)]
pub enum SendError {
    /// The queue is full: the peer reads too slowly, or not at all.
    #[error("the link's queue is full: {frames} frames, {bytes} bytes")]
    Full {
        /// Frames in it.
        frames: usize,
        /// Bytes in it.
        bytes: usize,
    },
    /// The link is over, or about to be.
    #[error("the link is down")]
    Down,
    /// The frame is beyond a limit of the wire: the link is as good as before.
    #[error(transparent)]
    Invalid(#[from] EncodeError),
}

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
    queue: mpsc::Sender<EncodedFrame>,
    queued_bytes: AtomicUsize,
    queue_bytes: usize,
    why: OnceLock<DownReason>,
    /// The link is to end now.
    pub(crate) ending: CancellationToken,
    /// The link is to end once what is queued is delivered.
    pub(crate) finishing: CancellationToken,
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
            queue,
            queued_bytes: AtomicUsize::new(0),
            queue_bytes: config.queue_bytes,
            why: OnceLock::new(),
            ending: CancellationToken::new(),
            finishing: CancellationToken::new(),
        };
        (Arc::new(core), waiting)
    }

    /// Ends the link now, whatever is queued. The first reason stands.
    pub(crate) fn end(&self, why: DownReason) {
        let reason = why.to_string();
        let connection = self.connection().take();
        if self.why.set(why).is_ok()
            && let Some(connection) = connection
        {
            connection.close(CLOSED, reason.as_bytes());
        }
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

    fn enqueue(&self, frame: EncodedFrame) -> Result<(), SendError> {
        if self.ending.is_cancelled() || self.finishing.is_cancelled() {
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
            self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
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
}

/// Writes to one link. Cheap to clone; dropping every clone does not end the link.
pub struct Link<Out> {
    core: Arc<Core>,
    sends: PhantomData<fn(Out)>,
}

impl<Out: Message> Link<Out> {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self {
            core,
            sends: PhantomData,
        }
    }

    /// Queues a frame behind all that were queued before. Never blocks, and may be called under a lock.
    ///
    /// # Errors
    /// If the queue is full, the link is down, or the frame is beyond a limit of the wire. The frame is then not sent.
    pub fn send(&self, frame: &Out) -> Result<(), SendError> {
        self.core.enqueue(frame.encode(self.core.version)?)
    }
}

impl<Out> Link<Out> {
    /// Which incarnation of a link it is.
    #[must_use]
    pub fn id(&self) -> LinkId {
        self.core.id
    }

    /// The peer's name, for people.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.core.node
    }

    /// Where the peer is.
    #[must_use]
    pub fn remote(&self) -> SocketAddr {
        self.core.remote
    }

    /// Silence that ends the link.
    #[must_use]
    pub fn lease(&self) -> Duration {
        self.core.lease.length()
    }

    /// Ends the link at once, whatever is queued: the fence. The peer is told if it can be; [`LinkEvent::Down`] follows
    /// at this end in any case. Without effect on a link that is over. Never blocks, and may be called under a lock.
    ///
    /// [`LinkEvent::Down`]: crate::LinkEvent::Down
    pub fn close(&self, why: impl Into<String>) {
        self.core.end(DownReason::Closed(why.into()));
    }

    /// Whether the link is over, or about to be.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.core.ending.is_cancelled() || self.core.finishing.is_cancelled()
    }

    /// Its figures.
    #[must_use]
    pub fn stats(&self) -> LinkStats {
        let core = &self.core;
        let bytes = core.queued_bytes.load(Ordering::Relaxed);
        core.counters.snapshot(core.queued_frames(), bytes, core.rtt())
    }
}

impl<Out> Clone for Link<Out> {
    fn clone(&self) -> Self {
        Self {
            core: Arc::clone(&self.core),
            sends: PhantomData,
        }
    }
}

impl<Out> fmt::Debug for Link<Out> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("id", &self.core.id)
            .field("node", &self.core.node)
            .finish_non_exhaustive()
    }
}
