//! What callbacks leave behind for the thread's loop.

use std::{cell::RefCell, collections::VecDeque, ffi::c_void};

use crate::{
    Ucx,
    sys::{Handle, Status},
};

/// A peer's wish to connect; answer it with accept or reject.
pub(crate) struct ConnRequest(pub(super) Handle);

/// An active message.
pub(crate) struct Message {
    /// Which kind, as in `message`.
    pub(crate) id: u32,
    /// Its header, copied.
    pub(crate) header: Vec<u8>,
    /// Its data. Must be given back to the connection: copied, received or released.
    pub(crate) payload: Payload,
}

/// The data of an active message.
pub(crate) enum Payload {
    /// Nothing to give back.
    Bytes(Vec<u8>),
    /// In UCX's memory.
    Held {
        /// Its start.
        data: *mut c_void,
        /// Bytes.
        len: usize,
    },
    /// Still at the sender.
    Rendezvous {
        /// What UCX knows it by.
        data: *mut c_void,
        /// Bytes.
        len: usize,
    },
}

impl Payload {
    /// Bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Held { len, .. } | Self::Rendezvous { len, .. } => *len,
        }
    }
}

/// What a connection tells its owner.
pub(crate) enum Happening<T> {
    /// It is dead and must be dropped.
    Failed(Status),
    /// A message came.
    Message(Message),
    /// An operation ended: UCX touches its memory no more.
    Done {
        /// The tag it was started with.
        tag: T,
        /// How it ended.
        status: Status,
        /// Bytes received, for a receive.
        len: usize,
    },
}

pub(super) enum Raw {
    Connect(ConnRequest),
    Failed(Status),
    Message(Message),
    Done { op: u64, status: Status, len: usize },
}

/// Filled by callbacks and emptied by the loop, on one thread, never both at once.
pub(super) struct Queue {
    events: RefCell<VecDeque<Raw>>,
    pub(super) ucx: Ucx,
}

impl Queue {
    pub(super) fn new(ucx: Ucx) -> Self {
        Self {
            events: RefCell::default(),
            ucx,
        }
    }

    /// Called from C: must not panic, so a queue in use (which cannot be) loses the event.
    pub(super) fn push(&self, event: Raw) {
        if let Ok(mut events) = self.events.try_borrow_mut() {
            events.push_back(event);
        }
    }

    pub(super) fn pop(&self) -> Option<Raw> {
        self.events.try_borrow_mut().ok()?.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.try_borrow().is_ok_and(|events| events.is_empty())
    }
}
