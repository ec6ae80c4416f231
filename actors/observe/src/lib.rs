//! What is said about what happens. Sans-IO: no tokio, no clock, no sockets.
//!
//! ```text
//!   runtime ── events ──▶ histories (at the gateway's board, at a worker's)
//!                │              │
//!                ▼              ▼ what is over, and kept
//!            Recorder ──▶ log, listeners (metrics, a test's recorder), TraceSink (spans)
//! ```
//!
//! One schema ([`Event`]), in one place; everything that a person looks at is made of it. The modules:
//!
//! * `event`: the schema; `facts`: what is fixed when a room or a stay is opened; `ids`: traces and spans and their names;
//! * `history`: what is kept of one room or stay, bounded;
//! * `labels`: outcomes, reasons, phases and causes as words;
//! * [`span`]: histories as the spans of a trace;
//! * `explain`: a room's history and present as what a person is told;
//! * `log`: an event as a line; `recorder`: who hears of it; `roster`: what workers are called; `sampling`: which traces are kept.

#![deny(clippy::wildcard_enum_match_arm)]

mod event;
pub mod explain;
mod facts;
mod families;
mod history;
mod ids;
pub mod labels;
mod log;
mod metrics;
mod recorder;
mod roster;
mod sampling;
pub mod span;

pub use event::{
    Event, LinkEnd, Moved, NodeEvent, NodeWhat, RefusedBecause, RoomEvent, RoomWhat, StayEvent, StayWhat,
    Text, WorkerEnd,
};
pub use facts::{Drawing, Facts, Prepared, SharedFacts, StayFacts};
pub use history::{Entries, Failed, Kept, RoomHistory, RoomState, StayHistory, Stream, Workers};
pub use ids::{SpanId, SpanKind, Trace, TraceId};
pub use metrics::{
    Exposition, GatewayLevels, LinkLevel, LinkedWorker, Metrics, NodeLevels, Pool, RoomLevel, Tables,
    TurnedAway, WorkerLevels, outcomes,
};
pub use recorder::{Listener, Recorder, Told, TraceSink};
pub use roster::{Gone, Roster};
pub use sampling::{Keep, Sampling};
