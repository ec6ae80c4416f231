//! What a request's room is, and every decision about it.
//!
//! Sans-IO: no tokio, no clock, no randomness, no serialisation, no hash-ordered maps. `now` is an argument, outputs are
//! polled. Two machines share this vocabulary: the [`Room`] at the gateway that owns it, and the [`Host`] at a worker,
//! whose [`Ledger`] is the only code that changes a lease.

mod admission;
mod command;
mod config;
mod event;
mod host;
mod id;
mod input;
mod ledger;
mod outcome;
mod phase;
mod placement;
mod restart;
mod room;
mod time;
mod watch;

pub use admission::{Desk, Verdict};
pub use command::{Bid, Command, Credit, Order, Priority, Work};
pub use config::{DeskLimits, Limits};
pub use event::{Event, Happening, Proof, Transition, Why};
pub use host::{
    EngineInput, FromOwner, Host, HostCommand, HostCounters, HostInput, HostLimits, HostSpec, Job, StayCause, StayPhase,
    StayTransition, StayView, ToOwner, TransferInput,
};
pub use id::{Attempt, BlockHash, BlockId, Generation, NodeId, RoomId};
pub use input::{Input, Report, Route};
pub use ledger::{Ask, Closed, Grant, Hold, Holds, Ledger, Occupancy};
pub use outcome::{AbortBy, AttemptError, Failure, Finish, Outcome, Refusal};
pub use phase::PhaseKind;
pub use placement::{Advert, Role, WorkerSpec, WorkerView};
pub use restart::{Restart, Restarts};
pub use room::{Inherited, LegView, Room, RoomSpec, WaitsFor};
pub use time::{Span, Time};
pub use watch::{Alarm, WatchTable};
