//! The worker's end: dials every gateway it is told of, for as long as it lives.

mod backoff;
mod credentials;
mod dial;
mod dialer;
mod status;
mod target;

use std::net::SocketAddr;

use wire::{HelloAck, ToGateway, ToWorker};

use crate::link::{LinkEvent, Side};

pub use credentials::Credentials;
pub use dial::DialError;
pub use dialer::Dialer;
pub use status::{DialState, DialStatus};
pub use target::{BadTarget, Target};

/// The worker's end of a link.
#[derive(Debug)]
pub enum WorkerSide {}

impl Side for WorkerSide {
    type Out = ToGateway;
    type In = ToWorker;
    type Peer = HelloAck;
}

/// What a worker does with its links. No function may block: they are called where frames are read and timers run.
pub trait WorkerLinks: Send + Sync + 'static {
    /// Something about a link. Events of one link come one at a time and in order; those of different links do not wait
    /// for each other.
    ///
    /// A heartbeat must be answered, or the gateway takes the worker for dead.
    fn event(&self, event: LinkEvent<WorkerSide>);

    /// A gateway could not be reached, or refused. It is dialled again; this is for whoever shows the worker's state.
    fn dial_failed(&self, address: SocketAddr, error: &DialError) {
        let _ = (address, error);
    }
}
