//! The handle through which others write to a link.

use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use wire::{EncodeError, Message};

use crate::link::{Core, DownReason, LinkId, LinkStats};

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
        self.core.is_down()
    }

    /// Its figures.
    #[must_use]
    pub fn stats(&self) -> LinkStats {
        self.core.stats()
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
