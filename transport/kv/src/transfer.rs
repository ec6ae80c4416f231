//! The trait, its commands and its events.

use std::{collections::BTreeSet, fmt, sync::Arc};

use crate::{BlockIndex, KvError, KvMemory, Offer, ReadError, ReadId, TransferKey};

/// Most offers a transfer holds, withdrawn ones with sends in flight included.
pub const MAX_OFFERS: usize = 65_536;
/// Most reads a transfer has open.
pub const MAX_READS: usize = 4_096;
/// Most blocks of one offer or one read.
pub const MAX_BLOCKS: usize = 65_536;
/// Longest source address in bytes.
pub const MAX_ADDRESS_BYTES: usize = 256;

/// Where a source is. Opaque to everyone but the transfer that made it; at most [`MAX_ADDRESS_BYTES`].
#[derive(Clone, Eq, PartialEq, Ord, PartialOrd, Hash)]
pub struct SourceAddress(pub Vec<u8>);

impl fmt::Debug for SourceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It came from a peer, and may be on its way into a log.
        write!(f, "SourceAddress({:?})", String::from_utf8_lossy(&self.0))
    }
}

/// A reader's request for blocks of an offer.
#[derive(Clone, Eq, PartialEq, Debug)]
pub struct Read {
    /// Minted by the reader, unique in its process.
    pub id: ReadId,
    /// Whose blocks.
    pub key: TransferKey,
    /// What the source published with them.
    pub capability: u128,
    /// Where the source is.
    pub source: SourceAddress,
    /// Index into the offer's blocks of the first one wanted.
    pub from: u32,
    /// Local blocks that receive them, in order. They belong to the transfer until [`KvEvent::ReadEnded`].
    pub into: Vec<BlockIndex>,
}

/// What a finished read moved.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct ReadStats {
    /// Bytes of KV that arrived.
    pub bytes: u64,
    /// Contiguous pieces they came in.
    pub descriptors: u32,
    /// What carried them: `"in-process"`, `"ucx-tcp"`, `"ucx-shm"`, ...
    pub transport: &'static str,
}

/// What a transfer tells its owner.
#[derive(Clone, Eq, PartialEq, Debug)]
pub enum KvEvent {
    /// A read ended: exactly one per accepted read. No byte of it can land any more; its blocks may be reused.
    ReadEnded {
        /// Which read.
        id: ReadId,
        /// What it moved, or why it failed.
        result: Result<ReadStats, ReadError>,
    },
    /// A withdrawn offer has no send in flight any more: its blocks may be reused. Exactly one per withdrawn offer,
    /// and one for each withdrawal of a key that is not offered.
    Withdrawn {
        /// Which offer.
        key: TransferKey,
    },
    /// The transfer's own thread has died: nothing is accepted or answered any more. At most once, after the ends of all
    /// that was open have been told. Its owner needs another transfer.
    Down {
        /// What it died of.
        why: String,
    },
}

/// Receives events, on a transfer's thread (in-process: also a reader's of the same hub) or inside the call that caused
/// them; must not block, nor call back into the transfer.
pub type EventSink = Arc<dyn Fn(KvEvent) + Send + Sync>;

/// Counters since the start, for metrics.
#[derive(Clone, Eq, PartialEq, Debug, Default)]
pub struct Totals {
    /// What carries the bytes, as in [`ReadStats::transport`]; empty while that is not known yet.
    pub transport: &'static str,
    /// Bytes that arrived in reads that succeeded.
    pub bytes_in: u64,
    /// Reads that succeeded.
    pub reads_in: u64,
    /// Contiguous pieces they came in.
    pub descriptors_in: u64,
    /// Bytes whose send completed.
    pub bytes_out: u64,
    /// Reads answered as a source.
    pub reads_out: u64,
    /// Contiguous pieces sent.
    pub descriptors_out: u64,
    /// Reads refused as a source.
    pub refused: u64,
    /// Own reads that failed.
    pub failed: u64,
    /// Reads open now.
    pub reads_open: u64,
    /// Offers open now, withdrawn ones with sends in flight included.
    pub offers_open: u64,
    /// Sends in flight now.
    pub sends_open: u64,
}

/// A way to move KV blocks between workers. No method blocks on a peer.
pub trait KvTransfer: Send + Sync + 'static {
    /// What a reader needs to reach this source.
    fn address(&self) -> SourceAddress;

    /// Publishes blocks. They must not be written until [`KvEvent::Withdrawn`].
    fn offer(&self, offer: Offer) -> Result<(), KvError>;

    /// Ends an offer: no further read of it is answered, and [`KvEvent::Withdrawn`] comes once its sends have
    /// completed (at once for a key that is not offered). Repeating it is harmless.
    fn withdraw(&self, key: TransferKey);

    /// Starts a read. If accepted, exactly one [`KvEvent::ReadEnded`] follows, whatever the peer does.
    fn read(&self, read: Read) -> Result<(), KvError>;

    /// A hint that the read is not wanted: [`KvEvent::ReadEnded`] comes when no byte of it can land any more, with
    /// [`ReadError::Cancelled`] unless it had ended otherwise before. Unknown ids are ignored.
    fn cancel(&self, id: ReadId);

    /// Counters since the start.
    fn totals(&self) -> Totals;
}

/// Checks a read against the region it lands in: a non-empty, bounded list of distinct blocks, a bounded address.
pub(crate) fn validate_read(read: &Read, memory: &dyn KvMemory) -> Result<(), KvError> {
    let len = read.source.0.len();
    if len == 0 || len > MAX_ADDRESS_BYTES {
        return Err(KvError::BadAddress(format!(
            "{len} bytes, must be 1 to {MAX_ADDRESS_BYTES}"
        )));
    }
    validate_blocks(&read.into, memory.blocks())
}

/// Checks a block list against a region of `blocks` blocks.
pub(crate) fn validate_blocks(list: &[BlockIndex], blocks: u32) -> Result<(), KvError> {
    if list.is_empty() || list.len() > MAX_BLOCKS {
        return Err(KvError::BadBlocks(format!(
            "{} blocks, must be 1 to {MAX_BLOCKS}",
            list.len()
        )));
    }
    if let Some(&b) = list.iter().find(|&&b| b >= blocks) {
        return Err(KvError::BadBlocks(format!("block {b}, the region has {blocks}")));
    }
    let distinct: BTreeSet<_> = list.iter().collect();
    if distinct.len() != list.len() {
        return Err(KvError::BadBlocks("a block is named twice".into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HeapMemory;

    fn check_address(len: usize, fits: bool) {
        let read = Read {
            id: ReadId(1),
            key: TransferKey {
                gateway: 1,
                seq: 1,
                generation: 1,
            },
            capability: 0,
            source: SourceAddress(vec![0; len]),
            from: 0,
            into: vec![0],
        };
        let found = validate_read(&read, &HeapMemory::new(1, 8));
        match found {
            Ok(()) => assert!(fits, "{len}"),
            Err(KvError::BadAddress(why)) => assert!(!fits && why.contains(&len.to_string()), "{why}"),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn an_address_is_there_and_bounded() {
        check_address(0, false);
        check_address(1, true);
        check_address(256, true);
        check_address(257, false);
    }

    fn check_blocks(list: &[BlockIndex], region: u32, wrong: Option<&str>) {
        match (validate_blocks(list, region), wrong) {
            (Ok(()), None) => {}
            (Err(KvError::BadBlocks(why)), Some(wrong)) => {
                assert!(why.contains(wrong), "{why} lacks {wrong}");
            }
            (found, _) => panic!("{found:?} for {wrong:?}"),
        }
    }

    #[test]
    fn a_block_list_is_there_bounded_inside_and_distinct() {
        let all: Vec<_> = (0..65_537).collect();
        check_blocks(&all[..65_536], 70_000, None);
        check_blocks(&all, 70_000, Some("65537 blocks"));
        check_blocks(&[], 4, Some("0 blocks"));
        check_blocks(&[3, 0], 4, None);
        check_blocks(&[3, 4], 4, Some("block 4, the region has 4"));
        check_blocks(&[3, 0, 3], 4, Some("twice"));
    }
}
