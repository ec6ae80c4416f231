//! "Where is my request?", answered: a room's history and its present, as what a person is told. The command line, the live page and the
//! admin listener print this and decide nothing of their own.
//!
//! ```text
//!   RoomHistory ── what happened ──┐
//!   Standing ───── what is now ────┼──▶ account() ──▶ Account: where it is, what it waits for, who holds what,
//!   (waits, legs, deadline, peers) ┘                  what ends it and when, what is odd about it, its timeline
//! ```

mod account;
mod ends;
mod failures;
mod lines;
mod names;
mod odd;
mod stretches;
mod times;
mod words;

use room::{Generation, LegView, NodeId, Time, WaitsFor};

pub use account::{Account, Ends, Held, Line, Met, Tone, Took, account};
pub use stretches::Stretch;
pub use times::lasting;
pub use words::waits_for;

/// What a room's owner knows of it now, beyond what has happened.
#[derive(Clone, Debug)]
pub struct Standing<'a> {
    /// Now, by the gateway's clock.
    pub now: Time,
    /// The same by the clock on the wall, in milliseconds since 1970; none leaves wall times out.
    pub unix_ms: Option<u64>,
    /// What it waits for.
    pub waits_for: WaitsFor,
    /// Whether that is credit, and there is no worker to give it.
    pub no_worker: bool,
    /// What ends that wait at the latest.
    pub deadline: Option<Time>,
    /// How many attempts may fail by a fault, until the room does.
    pub most_faults: u32,
    /// Who may hold blocks for it, and for which attempt.
    pub legs: &'a [LegView],
    /// The workers that are linked.
    pub peers: &'a [Known],
    /// Where Jaeger's pages are, such as `http://localhost:16686`; none if nobody said.
    pub jaeger: Option<&'a str>,
}

/// A linked worker, as far as a room's account needs it.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its incarnation.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// Whether nothing new goes there.
    pub draining: bool,
    /// When it last reported; none before it did.
    pub heard: Option<Time>,
    /// Where its own admin listener is asked, if it has one.
    pub admin: Option<String>,
    /// What it said then that it holds for this room.
    pub holds: Vec<Holding>,
}

/// What a worker said that it holds for one attempt.
#[derive(Clone, Debug)]
pub struct Holding {
    /// Which attempt.
    pub generation: Generation,
    /// Blocks.
    pub blocks: u32,
    /// The attempt's phase there.
    pub phase: String,
}

impl Standing<'_> {
    fn peer(&self, node: NodeId) -> Option<&Known> {
        self.peers.iter().find(|peer| peer.node == node)
    }
}
