//! One read with both its ends. Each end goes by what it knows itself; that they share a struct is the simulation's
//! convenience.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kv::{Read, ReadError, Run, TransferKey};
use tokio::time::Instant;

use super::{faults::Fault, members::MemberId, pins::Pins};

/// Names a read for ever, over all members.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Debug)]
pub(super) struct FlowId(pub(super) u64);

/// A read.
pub(super) struct Flow {
    pub(super) reader: MemberId,
    pub(super) source: MemberId,
    pub(super) read: Read,
    /// What the source is asked for: the read's own key and capability, but for a fault.
    pub(super) asked: (TransferKey, u128),
    /// Size of the reader's blocks.
    pub(super) block_bytes: usize,
    pub(super) fault: Option<Fault>,
    /// None once its end has been told, or the reader is dead.
    pub(super) reading: Option<Reading>,
    pub(super) answer: Answer,
}

impl Flow {
    /// Blocks asked for.
    pub(super) fn blocks(&self) -> u32 {
        u32::try_from(self.read.into.len()).unwrap_or(u32::MAX)
    }

    /// Whether both ends are done with it.
    pub(super) fn is_over(&self) -> bool {
        self.reading.is_none() && matches!(self.answer, Answer::Over)
    }

    /// The answer, while it is under way.
    pub(super) fn serving(&mut self) -> Option<&mut Serving> {
        match &mut self.answer {
            Answer::UnderWay(serving) => Some(serving),
            Answer::ToCome | Answer::Over => None,
        }
    }

    /// The read, while pieces of it are accepted.
    pub(super) fn accepting(&mut self) -> Option<&mut Reading> {
        self.reading.as_mut().filter(|reading| reading.failed.is_none())
    }
}

/// The reader's end.
pub(super) struct Reading {
    pub(super) progress: Instant,
    /// Blocks announced so far.
    pub(super) taken: u32,
    /// Blocks that have not landed.
    pub(super) missing: u32,
    /// Positions of the blocks that have.
    pub(super) landed: BTreeSet<u32>,
    pub(super) descriptors: u32,
    /// Fixed when the endpoint's close begins; told when it has ended.
    pub(super) failed: Option<ReadError>,
    pub(super) pins: Pins,
}

/// The source's end.
pub(super) enum Answer {
    /// The request has not arrived.
    ToCome,
    /// The offer is pinned for it.
    UnderWay(Serving),
    /// Nothing is to come.
    Over,
}

/// An answer under way.
pub(super) struct Serving {
    pub(super) progress: Instant,
    pub(super) to_send: VecDeque<Run>,
    /// Pieces whose send has not completed, by their position in the read.
    pub(super) in_flight: BTreeMap<u32, Piece>,
    /// Whether its endpoint is being closed by force.
    pub(super) closing: bool,
}

/// A piece on its way.
pub(super) struct Piece {
    pub(super) run: Run,
    /// Of each block as it was when the piece was posted, under its position in the offer.
    pub(super) checksums: Vec<u64>,
}

impl Serving {
    /// Whether the pin can go.
    pub(super) fn has_ended(&self) -> bool {
        !self.closing && self.in_flight.is_empty() && self.to_send.is_empty()
    }
}
