//! What a request's room is, and every decision about it.
//!
//! Sans-IO: no tokio, no clock, no randomness, no serialisation, no hash-ordered maps. `now` is an argument, outputs are
//! polled. Content-free: only counts; the caller adds tokens, tickets and text when it performs commands.
//!
//! # Who decides what
//!
//! * A [`Room`] is one sequence of one request, at the gateway that owns it: its phase, its attempts, its one outcome.
//! * The [`Desk`], one at each gateway, admits rooms by credit: it knows the workers and what is promised of them.
//! * A [`Host`] is one worker's side of the protocol; its [`Ledger`] is the only code that changes a lease.
//! * [`WatchTable`] and [`Restarts`] are the supervisor's: whose deadline has passed, and who is started again.
//!
//! # The protocol
//!
//! ```text
//!   room (owner)                prefill worker              decode worker
//!        │ Reserve ─────────────────────────────────────────────▶ │ blocks and a slot, or Refused
//!        │ ◀──────────────────────────────────────────── Reserved │
//!        │ Prefill ──────────────────▶ │ computes; Progress       │
//!        │ ◀───────────────── Tokens 0 │ (to the client at once)  │
//!        │ ◀──────────────── Published │                          │
//!        │ Pull ────────────────────────────────────────────────▶ │
//!        │                             │ ◀─ asks ──────────────── │
//!        │                             │ ─────────────────── KV ▶ │
//!        │ ◀────────────────────────────────────────────── Pulled │
//!        │ Release ──────────────────▶ │                          │
//!        │ ◀─────────────────── Closed │                          │
//!        │ ◀─────────────────────────────────────────── Tokens 1.. │
//!        │ Allow (as the reader reads) ─────────────────────────▶ │
//!        │ ◀───────────────────────────────────── Tokens, Finished │
//!        │ Close ───────────────────────────────────────────────▶ │
//!        │ ◀────────────────────────────────────────────── Closed │
//! ```
//!
//! A mixed worker is both: `Reserve`, then `Prefill`, under one lease, and nothing is pulled.
//!
//! Everything is about one [`Attempt`]: a room and its generation. Whatever fails, the owner closes the attempt and
//! begins the next one, which computes the prompt and what was delivered. `Close` is repeated until there is proof that
//! the lease is returned: `Closed`, or the answer to a digest of the attempts that the gateway wants kept, or the fence.
//!
//! # What holds whatever happens
//!
//! ```text
//!   a room has one outcome, and has it by its deadline         Room::settle, the table of waits at the module `room`
//!   an old message changes nothing                             `leg_index` at the owner, `legal` and tombstones at the host
//!   a block is free, leased, cached or quarantined             `Blocks::change`
//!   nobody gets a block that another may touch                 holds: taken before the work, released by its proof
//!   blocks come back though every Close is lost                repetition, digest, end of the link: each alone
//!   a queue is bounded and refuses by type                     the desk's; a host's stays by its slots and blocks
//!   an answer is not computed far ahead of its reader          an allowance that only grows; the digest repeats it
//! ```
//!
//! Where to begin: `room` (an owner's phases and what ends each), then `host` (a worker's), then `ledger`; `admission` stands
//! apart. Every state × every input of both sides is a snapshot in `tests/it/snapshots`.

#[macro_use]
mod planted;

mod admission;
mod command;
mod config;
mod credit;
mod event;
mod fair;
mod host;
mod id;
mod index;
mod input;
mod ledger;
mod outcome;
mod phase;
mod placement;
mod policy;
mod queue;
mod restart;
mod room;
mod time;
mod watch;

pub use admission::{Absence, Desk, Verdict};
pub use command::{Bid, Command, Credit, Order, Priority, Work};
pub use config::{DeskLimits, Limits};
pub use credit::{Advert, Role, WorkerSpec};
pub use event::{Event, Happening, Proof, Transition, Why};
pub use fair::{Share, Tenant};
pub use host::{
    EngineInput, FromOwner, Host, HostCommand, HostCounters, HostInput, HostLimits, HostSpec, Job, Kept,
    StayCause, StayPhase, StayTransition, StayView, ToOwner, TransferInput,
};
pub use id::{Attempt, BlockHash, BlockId, Generation, NodeId, RoomId};
pub use index::{PrefixIndex, Taken};
pub use input::{Input, Report, Route};
pub use ledger::{Ask, CacheChange, Closed, Grant, Hold, Holds, Ledger, Occupancy};
pub use outcome::{AbortBy, AttemptError, Failure, Finish, Outcome, Refusal};
pub use phase::PhaseKind;
pub use placement::WorkerView;
pub use policy::{Asked, ByTime, Candidate, Choice, Hints, LongestPrefix, Pace, Policy, RoundRobin, Weights};
pub use restart::{Restart, Restarts};
pub use room::{Inherited, LegView, Room, RoomSpec, WaitsFor};
pub use time::{Span, Time};
pub use watch::{Alarm, WatchTable};
