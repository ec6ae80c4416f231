//! What is kept of one room, or of one stay: what was fixed at its opening, and its events in order, as far as there is room.
//!
//! The bound: [`Kept::MILESTONES`], [`Kept::CHUNKS`] and [`Kept::REPEATS`] events, the first half and the last half of each; how many were left
//! out, and where, is known. What decides (an opening, a phase, a failed attempt, an outcome) has an allowance of its own, so that neither a long
//! prompt nor a worker that is told again and again pushes it out. Tokens are summed up ([`Stream`]): of their batches only the first and those
//! after a long wait are events.
//!
//! A room's history also keeps what its events do not say and what is forgotten elsewhere: the names of the workers that it mentions, and how
//! far an attempt was when it failed.

mod kept;
mod room;
mod state;
mod stay;
mod stream;

pub use kept::{Entries, Kept};
pub use room::RoomHistory;
pub use state::{Failed, RoomState, Workers};
pub use stay::StayHistory;
pub use stream::Stream;
