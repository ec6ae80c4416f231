//! The schema: everything that is said about what happens, in one closed enum of typed fields.
//!
//! Spans, metrics, logs, histories, the live view and the recorders of tests are all made of these, so they cannot disagree. Nobody matches
//! one of them with a wildcard: whoever adds a kind says everywhere how it is seen, or it does not compile.
//!
//! ```text
//!   Room   at the gateway: what its owner, its supervisor and its links see of one room
//!   Stay   at a worker: what its host, its engine and its transfer see of one attempt there
//!   Node   links, workers, engines, steps: what is about no single room
//! ```
//!
//! What `room` decides is told in `room`'s own words, which are wrapped here and not copied.

mod node;
mod room;
mod stay;

use std::sync::Arc;

pub use node::{LinkEnd, NodeEvent, NodeWhat, RefusedBecause, WorkerEnd};
pub use room::{Moved, RoomEvent, RoomWhat};
pub use stay::{StayEvent, StayWhat};

/// Words that are shared and not copied: names, and reasons that come from elsewhere.
pub type Text = Arc<str>;

/// Something that happened.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// To a room, at its owner's gateway.
    Room(RoomEvent),
    /// To a stay, at its worker.
    Stay(StayEvent),
    /// To a node.
    Node(NodeEvent),
}
