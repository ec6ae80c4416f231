//! UCX as values of one thread: safe calls in, queues of happenings out.
//!
//! A [`Context`] holds the configuration; a [`Listener`] takes connections; **every [`Connection`] has a UCX worker of
//! its own**. A UCX worker is what peers share: over shared memory they write into its one receive queue, and one that
//! dies or is stopped between claiming a slot and filling it blocks that queue for good. With a worker each, a peer can
//! block none but itself, and the end of a connection is the destruction of its worker: when that returns, UCX touches
//! nothing of it any more, whatever the peer does.
//!
//! Callbacks only append to a queue. Every operation that is started yields exactly one [`Happening::Done`], whether
//! it ended at once, later, or in error, unless its connection is dropped before. A connection keeps what UCX may
//! still touch (headers, payloads) until then; the region outlives it, as its owner holds it.

#![allow(unsafe_code)]

mod address;
mod callbacks;
mod connection;
mod context;
mod listener;
mod ops;
mod queue;
mod worker;

pub(crate) use connection::Connection;
pub(crate) use context::Context;
pub use context::OpenError;
pub(crate) use listener::Listener;
pub(crate) use ops::Body;
pub(crate) use queue::{ConnRequest, Happening, Message, Payload};
pub(crate) use worker::Armed;
