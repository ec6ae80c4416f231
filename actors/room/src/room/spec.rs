//! What a room is made from.

use crate::command::Priority;
use crate::fair::Share;
use crate::id::{Generation, NodeId};
use crate::outcome::Outcome;
use crate::time::Time;

/// The counts of a sequence. Its content stays with the caller.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct RoomSpec {
    /// Tokens of the prompt.
    pub positions: u32,
    /// Tokens of the answer at most; at least one is sampled.
    pub max_new: u32,
    /// When the request ends, whatever else.
    pub deadline: Time,
    /// How urgent it is.
    pub priority: Priority,
    /// Whose it is.
    pub share: Share,
}

/// What a supervisor knows of a room whose owner died: from the commands that went through its hands.
#[derive(Clone, Eq, PartialEq, Debug)]
pub struct Inherited {
    /// The last generation that was enqueued.
    pub generation: Generation,
    /// Every leg that an order was sent to and that was not proven returned.
    pub legs: Vec<(NodeId, Generation)>,
    /// The outcome: the dead owner's, if it fixed one.
    pub outcome: Outcome,
    /// Whether that was answered already.
    pub answered: bool,
}

/// One leg, for show.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct LegView {
    /// The worker that may hold a lease.
    pub worker: NodeId,
    /// For which attempt.
    pub generation: Generation,
    /// Whether it was told to return it; if so, how often.
    pub told_to_close: Option<u32>,
}
