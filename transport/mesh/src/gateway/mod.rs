//! The gateway's end: takes connections, judges hellos, and keeps one link per worker.

mod hello;
mod judge;
mod listener;
mod registry;

use wire::{Hello, ToGateway, ToWorker};

use crate::link::{Link, LinkEvent, Side};

pub use listener::{Listener, ListenerFigures, ListenerStats};

/// The gateway's end of a link.
#[derive(Debug)]
pub enum GatewaySide {}

impl Side for GatewaySide {
    type Out = ToWorker;
    type In = ToGateway;
    type Peer = Hello;
}

/// Who the gateway is.
#[derive(Clone, Eq, PartialEq, Debug)]
pub struct GatewayNode {
    /// Its name, for people.
    pub name: String,
    /// Its incarnation: new at every start of the process.
    pub epoch: u64,
}

/// What a gateway does with its links. No function may block: they are called where frames are read and timers run.
pub trait GatewayLinks: Send + Sync + 'static {
    /// Whether the worker fits (its model, its layout). Version, certificate and role are judged already.
    ///
    /// # Errors
    /// Why it does not fit, for people: the worker is told, and tries again later.
    fn accept(&self, hello: &Hello) -> Result<(), String>;

    /// Heartbeat `n` of this link is due, counted from 1: send it, with the digest.
    ///
    /// The digest must list exactly the attempts whose opening frames are queued on the link before it. So take it and
    /// queue it under the same lock under which opening and closing frames are queued. (Mesh cannot do this: whatever
    /// it took when it wrote could tell of an attempt whose frame is still in the queue behind, or miss one.) A
    /// heartbeat that is left out is silence.
    fn beat(&self, link: &Link<ToWorker>, n: u64);

    /// Something about a link. Events of one link come one at a time and in order; those of different links do not wait
    /// for each other.
    fn event(&self, event: LinkEvent<GatewaySide>);
}
