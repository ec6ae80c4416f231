//! What is kept of one room, or of one stay: what was fixed at its opening, and its events in order, as far as there is room.
//!
//! The bound: [`Kept::MILESTONES`] and [`Kept::CHUNKS`] events, the first half and the last half of each; how many were left out in between is
//! known. Chunks of a prompt have an allowance of their own, so that a long prompt does not push out a phase. Tokens are summed up
//! ([`Stream`]): of their batches only the first and those after a long wait are events.

mod kept;
mod room;
mod stay;
mod stream;

pub use kept::{Entries, Kept};
pub use room::{RoomHistory, RoomState, Workers};
pub use stay::StayHistory;
pub use stream::Stream;
