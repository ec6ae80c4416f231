//! Names of the things the protocol speaks of. All are small values that sort, so that no decision depends on hashing.

use std::fmt;

/// One incarnation of a node. A restarted node has another one, so a name from before a restart matches nothing.
///
/// Minted once at process start from the wall clock and random bits; never reused.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct NodeId(pub u64);

/// A room: one sequence of one request, named by the gateway that owns it and never by a client.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct RoomId {
    /// The gateway incarnation that minted and owns the room.
    pub gateway: NodeId,
    /// Unique within that incarnation, ascending.
    pub seq: u64,
}

/// Counts the attempts at one room. A retry or a migration is the same room with the next generation;
/// a message of any other generation than the current one changes nothing.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct Generation(pub u32);

impl Generation {
    /// What the first attempt carries.
    pub const FIRST: Self = Self(1);

    /// The generation after this one. Saturates: restarts are bounded far below `u32::MAX`.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// One attempt at one room: what every lease, transfer and message is keyed by.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct Attempt {
    /// The room.
    pub room: RoomId,
    /// Which try at it.
    pub generation: Generation,
}

/// One KV block of a worker's pool, by index.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct BlockId(pub u32);

/// Names the contents of a full block: a hash chained over all tokens up to its end.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct BlockHash(pub u128);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Display for RoomId {
    /// The text form people see and type: `<gateway incarnation>-<seq>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.gateway, self.seq)
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.room, self.generation.0)
    }
}
