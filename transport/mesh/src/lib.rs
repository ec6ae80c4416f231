//! Links between nodes: one mutually authenticated QUIC connection per gateway and worker, with one ordered stream of
//! [`wire`] frames each way.
//!
//! Workers dial ([`Dialer`]), gateways listen ([`Listener`]). Each hears of its links through one trait
//! ([`WorkerLinks`], [`GatewayLinks`]) and writes to them through [`Link`]. What mesh promises:
//!
//! * **Every link that comes up goes down, once.** [`LinkEvent::Up`] first, then frames in the order they were sent,
//!   then exactly one [`LinkEvent::Down`], whatever happens: a task that is aborted or panics says it too.
//! * **A link is an incarnation.** It is never repaired. What comes after it is another link with another [`LinkId`],
//!   and nothing that was queued on the old one is carried over. A worker that comes with a newer epoch replaces its old
//!   link at once, and the old one's `Down` is heard before the new one's `Up`. An older epoch replaces nothing.
//! * **Silence is the end.** Nothing that can be understood for the lease time, by the monotonic clock, ends the link at either end by
//!   local knowledge. A node that was frozen for that long finds its links over when it wakes, before it believes a frame.
//! * **Nothing waits without a bound.** Queues are bounded in frames and bytes, and refuse; so is what has come and is not
//!   dealt with ([`Unread`]); a peer that takes nothing for the stall time loses its link; a hello has a deadline.
//! * **An end is told.** Whoever ends a link says why, with a code of its own for each reason; only who is killed says nothing.
//! * **A bad frame costs a frame.** One that is unknown or malformed is counted and dropped. Only when the stream can
//!   not be told apart into frames any more does the link end.
//!
//! What a heartbeat says is not mesh's business: it only says when one is due ([`GatewayLinks::beat`]).
//!
//! Tasks and their fates: a [`Listener`] and a [`Dialer`] own one task each, which owns one task per link (or per
//! attempt at one); each link owns a keeper, which does no I/O and holds its timers. Ending an owner ends what it owns.

/// Whether this build has fault switches: what a node's hello says of itself.
///
/// They come with the cargo feature `faults`, which is off unless asked for: `cargo build --release` makes a binary without them, and
/// the code behind them is not in it. The crates whose tests need them ask for them as a development dependency, and cargo gives a
/// package one set of features a build: so `cargo test --workspace` has them in every crate, the binary under test included.
pub const FAULTS: bool = cfg!(feature = "faults");

#[macro_use]
mod planted;

mod complaints;
mod config;
mod endpoint;
#[cfg(feature = "faults")]
mod faults;
#[cfg(not(feature = "faults"))]
#[path = "no_faults.rs"]
mod faults;
mod gateway;
mod identity;
mod link;
mod lose;
mod worker;

pub use config::Config;
pub use endpoint::{BindError, client_config, dial_endpoint, listen_endpoint, server_config};
#[cfg(feature = "faults")]
pub use faults::{Fault, Faults};
pub use gateway::{GatewayLinks, GatewayNode, GatewaySide, Listener, ListenerFigures, ListenerStats};
pub use identity::{DevCa, Identity, IdentityError, IdentityFiles};
pub use link::{DownReason, Link, LinkEvent, LinkId, LinkStats, SendError, Side, Unread};
pub use lose::{LoseError, lose};
pub use worker::{
    BadTarget, Credentials, DialError, DialState, DialStatus, Dialer, Target, WorkerLinks, WorkerSide,
};
