//! The operations, each over all rows, cut into items for the team. Where an item is cut never changes a number in it.

mod attend;
mod elementwise;
mod linear;
mod norm;
mod rope;
mod store;

pub(crate) use attend::attend;
pub(crate) use elementwise::{add, embed, gate, select};
pub(crate) use linear::{Scratch, linear};
pub(crate) use norm::rms_norm;
pub(crate) use rope::{RopeTables, rope};
pub(crate) use store::store;

use crate::simd::Level;
use crate::team::Team;

/// With what to run an operation.
pub(crate) struct Exec {
    pub(crate) team: Team,
    pub(crate) level: Level,
}
