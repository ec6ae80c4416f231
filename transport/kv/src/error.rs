//! Errors, one enum per act of the API.

use crate::{BlockIndex, ReadId, TransferKey};

/// A range that is not inside the region.
#[derive(Copy, Clone, Eq, PartialEq, Debug, thiserror::Error)]
#[error(
    "block {block}, bytes {offset}..{offset}+{len}: the region has {blocks} blocks of {block_bytes} bytes"
)]
pub struct OutOfRange {
    /// The block asked for.
    pub block: BlockIndex,
    /// First byte asked for, within the block.
    pub offset: usize,
    /// Bytes asked for.
    pub len: usize,
    /// Blocks of the region.
    pub blocks: u32,
    /// Bytes of a block.
    pub block_bytes: usize,
}

/// Why an offer or a read was not accepted at all (no event follows).
#[derive(Clone, Eq, PartialEq, Debug, thiserror::Error)]
pub enum KvError {
    /// The table of offers is full.
    #[error("{limit} offers are open already; withdraw one first")]
    TooManyOffers {
        /// The limit.
        limit: usize,
    },
    /// An offer under this key stands already, or is being withdrawn.
    #[error("transfer {0} is offered already; a retry needs the next generation")]
    DuplicateOffer(TransferKey),
    /// The table of reads is full.
    #[error("{limit} reads are open already; wait for one to end")]
    TooManyReads {
        /// The limit.
        limit: usize,
    },
    /// A read with this id is open already.
    #[error("{0} is open already; mint a new id")]
    DuplicateRead(ReadId),
    /// The block list is empty, too long, names a block twice, or a block that the region does not have.
    #[error("bad block list: {0}")]
    BadBlocks(String),
    /// The source's address is not one of this transfer.
    #[error("bad source address: {0}")]
    BadAddress(String),
    /// The transfer's thread has ended.
    #[error("the transfer has stopped")]
    Stopped,
}

/// Why a source refused a read.
#[derive(Copy, Clone, Eq, PartialEq, Debug, thiserror::Error)]
pub enum Refusal {
    /// Nothing is offered under the key, or no longer.
    #[error("nothing is offered under this key")]
    NoSuchOffer,
    /// The capability is not the one the source minted.
    #[error("the capability does not match the offer")]
    WrongCapability,
    /// The blocks asked for are not inside the offer.
    #[error("the offer has fewer blocks")]
    OutOfRange,
    /// The two sides have blocks of different sizes.
    #[error("block sizes differ")]
    Layout,
    /// The source has as many sends in flight as it allows.
    #[error("the source is busy")]
    Busy,
    /// The message was malformed or of another version.
    #[error("the source did not understand the request")]
    Malformed,
}

/// How a read failed. In every case no byte of it can land any more.
#[derive(Clone, Eq, PartialEq, Debug, thiserror::Error)]
pub enum ReadError {
    /// The source answered no.
    #[error("refused by the source: {0}")]
    Refused(Refusal),
    /// A block is not what the source sent for this (room, generation, position), by its checksum or, within a process, by its bytes. It
    /// must not be used.
    #[error("block {block} arrived corrupt or belongs to another room")]
    Corrupt {
        /// The local block.
        block: BlockIndex,
    },
    /// The source or the way to it is gone.
    #[error("source lost: {0}")]
    SourceLost(String),
    /// Nothing arrived for this long.
    #[error("no progress for {ms} ms")]
    NoProgress {
        /// The limit that passed, in milliseconds.
        ms: u64,
    },
    /// The reader cancelled it.
    #[error("cancelled by the reader")]
    Cancelled,
    /// Something on this side failed.
    #[error("local transfer failure: {0}")]
    Local(String),
}
