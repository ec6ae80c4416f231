//! One lease, and what asking for one takes and gives.

use crate::id::{BlockHash, BlockId};
use crate::ledger::hold::Holds;

/// What an attempt asks of the pool.
#[derive(Clone, Eq, PartialEq, Debug, Default)]
pub struct Ask {
    /// Blocks wanted, shared ones included.
    pub blocks: u32,
    /// How many of the leading blocks may be shared with others because the attempt will never write them.
    pub shareable: u32,
    /// Names of the contents of the leading full blocks, in order. Fewer than `blocks`; excess is ignored.
    pub hashes: Vec<BlockHash>,
}

/// What was granted.
#[derive(Clone, Eq, PartialEq, Debug)]
pub struct Grant {
    /// The blocks, in sequence order. The first `cached` of them are shared and must only be read.
    pub blocks: Vec<BlockId>,
    /// How many leading blocks hold their contents already.
    pub cached: u32,
}

/// What closing a lease came to.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Closed {
    /// Nobody touches the blocks: they are back.
    Returned,
    /// Somebody may still touch the blocks: they come back with the last proof.
    Quarantined,
    /// There is no such open lease.
    Unknown,
}

/// The right of one attempt to a set of blocks. Once closed it only says who still has to prove that it stopped.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) blocks: Vec<BlockId>,
    /// Leading blocks that were shared at the grant.
    pub(super) cached: u32,
    /// Names of the leading full blocks, where known.
    pub(super) hashes: Vec<BlockHash>,
    /// Leading blocks whose contents are known to be complete.
    pub(super) complete: usize,
    pub(super) holds: Holds,
    pub(super) closed: bool,
}
