//! What a link tells its owner.

use std::fmt::Debug;
use std::time::Duration;

use wire::{HeaderError, Message};

use crate::link::{Link, Unread};

/// Which end of a link this is: what goes out, what comes in, and what the peer said of itself.
pub trait Side: Debug + Send + Sync + 'static {
    /// What this end sends.
    type Out: Message;
    /// What it receives.
    type In: Message;
    /// The peer's part of the hello.
    type Peer: Clone + Debug + Send + Sync + 'static;
}

/// One incarnation of a link.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct LinkId {
    /// Ascending within its listener or dialer, from 1.
    pub number: u64,
    /// The peer's incarnation.
    pub epoch: u64,
}

/// Something about one link. In this order: `Up`, any number of `Frame`s, `Down`.
#[derive(Debug)]
pub enum LinkEvent<S: Side> {
    /// It is up.
    Up {
        /// To write to it, and to end it.
        link: Link<S::Out>,
        /// Who is at the other end.
        peer: S::Peer,
    },
    /// A frame has come.
    Frame {
        /// On which link.
        link: LinkId,
        /// The frame.
        frame: S::In,
        /// To be dropped when the frame has been dealt with: see there.
        unread: Unread,
    },
    /// It is over. No frame of it comes after this one.
    Down {
        /// Which.
        link: LinkId,
        /// Why.
        why: DownReason,
    },
}

/// Why a link is over.
#[derive(Clone, Eq, PartialEq, Debug, thiserror::Error)]
pub enum DownReason {
    /// Nothing that could be understood was heard for the lease time.
    #[error("silent for {} ms, the lease is {} ms", silence.as_millis(), lease.as_millis())]
    Silent {
        /// Since the last frame.
        silence: Duration,
        /// What is allowed.
        lease: Duration,
    },
    /// The peer takes nothing.
    #[error("the peer took nothing for {} ms", stalled.as_millis())]
    NotReading {
        /// For how long.
        stalled: Duration,
    },
    /// The owner at this end had so many frames that it had not dealt with that none was read for the lease time.
    #[error("this end was behind with its frames for {} ms", lease.as_millis())]
    Behind {
        /// The lease time.
        lease: Duration,
    },
    /// The peer has restarted, and its new incarnation is here.
    #[error("replaced by a new incarnation")]
    Replaced,
    /// [`Link::close`] was called at this end.
    #[error("closed here: {0}")]
    Closed(String),
    /// The peer stopped in order.
    #[error("stopped by the peer")]
    PeerStopped,
    /// The peer closed it.
    #[error("closed by the peer: {0}")]
    PeerClosed(String),
    /// The connection is lost.
    #[error("connection lost: {0}")]
    Lost(String),
    /// What comes is not frames any more.
    #[error("out of step: {0}")]
    Framing(#[from] HeaderError),
    /// This end was stopped, and what was queued was delivered or had its time; or it was dropped, and what was queued was not.
    #[error("stopped here")]
    Stopped,
}
