//! What a request's room is, and every decision about it.
//!
//! Sans-IO: no tokio, no clock, no randomness, no serialisation, no hash-ordered maps. `now` is an argument, outputs are
//! polled. Two machines share this vocabulary: the [`Room`] at the gateway that owns it, and the [`Host`] at a worker,
//! whose [`Ledger`] is the only code that changes a lease.

mod id;
mod outcome;
mod phase;
mod time;

pub use id::{Attempt, BlockHash, BlockId, Generation, NodeId, RoomId};
pub use outcome::{AbortBy, AttemptError, Failure, Finish, Outcome, Refusal};
pub use phase::PhaseKind;
pub use time::{Span, Time};
