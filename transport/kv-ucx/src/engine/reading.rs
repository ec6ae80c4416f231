//! One read at the reader: what may still land, and how it ends. No I/O.

use std::time::Instant;

use kv::{BlockIndex, Read, ReadError, ReadStats};

use super::EpId;
use crate::message::DataMessage;

/// A contiguous piece that was accepted.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(super) struct Piece {
    /// Position in the read of its first block.
    pub(super) at: u32,
    /// Its first local block.
    pub(super) into: BlockIndex,
    /// Blocks.
    pub(super) count: u32,
    /// What its data must hash to.
    pub(super) checksum: u64,
}

/// An open read. It ends when nothing is landing and it is complete or has failed.
pub(super) struct Reading {
    pub(super) read: Read,
    pub(super) ep: EpId,
    pub(super) progress: Instant,
    taken: Vec<bool>,
    /// Blocks whose data has not been verified.
    missing: usize,
    /// Pieces on their way into the region.
    landing: u32,
    descriptors: u32,
    failed: Option<ReadError>,
}

impl Reading {
    pub(super) fn new(read: Read, ep: EpId, now: Instant) -> Self {
        let blocks = read.into.len();
        Self {
            read,
            ep,
            progress: now,
            taken: vec![false; blocks],
            missing: blocks,
            landing: 0,
            descriptors: 0,
            failed: None,
        }
    }

    /// Lengths of the pieces of the destination that are contiguous.
    pub(super) fn runs(&self) -> Vec<u32> {
        kv::coalesce(&self.read.into, &self.read.into, u32::MAX)
            .iter()
            .map(|run| run.count)
            .collect()
    }

    /// Accepts a piece of `len` bytes: of this attempt, inside the read, contiguous here, and not taken before.
    pub(super) fn take(
        &mut self,
        data: &DataMessage,
        len: usize,
        block_bytes: usize,
    ) -> Result<Piece, ReadError> {
        let wrong = |what: &str| ReadError::SourceLost(format!("it sent a piece {what}"));
        if data.key != self.read.key {
            return Err(wrong("of another transfer"));
        }
        let (start, count) = (data.at as usize, data.count as usize);
        let end = start
            .checked_add(count)
            .filter(|&end| count > 0 && end <= self.taken.len());
        let range = start..end.ok_or_else(|| wrong("outside of the read"))?;
        if count.checked_mul(block_bytes) != Some(len) {
            return Err(wrong("of the wrong size"));
        }
        if self.taken[range.clone()].contains(&true) {
            return Err(wrong("twice"));
        }
        let into = self.read.into[start];
        if !self.read.into[range.clone()]
            .iter()
            .zip(into..)
            .all(|(&block, want)| block == want)
        {
            return Err(wrong("that is not contiguous here"));
        }
        self.taken[range].fill(true);
        self.landing += 1;
        Ok(Piece {
            at: data.at,
            into,
            count: data.count,
            checksum: data.checksum,
        })
    }

    /// A piece has landed, as `checksum` says or not at all.
    pub(super) fn landed(&mut self, piece: &Piece, checksum: Result<u64, ReadError>) {
        self.landing = self.landing.saturating_sub(1);
        match checksum {
            Ok(sum) if sum == piece.checksum => {
                self.missing = self.missing.saturating_sub(piece.count as usize);
                self.descriptors += 1;
            }
            Ok(_) => self.fail(ReadError::Corrupt { block: piece.into }),
            Err(e) => self.fail(e),
        }
    }

    /// Fixes the failure, unless one is fixed already or the read is complete.
    pub(super) fn fail(&mut self, why: ReadError) {
        if self.missing > 0 && self.failed.is_none() {
            self.failed = Some(why);
        }
    }

    /// The connection is gone, and with it whatever was landing.
    pub(super) fn abandon(&mut self, why: ReadError) {
        self.landing = 0;
        self.fail(why);
    }

    /// Whether a failure is fixed.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Whether a piece may still be accepted.
    pub(super) fn wants_data(&self) -> bool {
        self.failed.is_none() && self.missing > 0
    }

    /// The end, once there is one.
    pub(super) fn ended(
        &self,
        block_bytes: usize,
        transport: &'static str,
    ) -> Option<Result<ReadStats, ReadError>> {
        if self.landing > 0 {
            return None;
        }
        if let Some(why) = &self.failed {
            return Some(Err(why.clone()));
        }
        let bytes = (self.read.into.len() * block_bytes) as u64;
        (self.missing == 0).then_some(Ok(ReadStats {
            bytes,
            descriptors: self.descriptors,
            transport,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kv::{ReadId, SourceAddress, TransferKey};

    const KEY: TransferKey = TransferKey {
        gateway: 1,
        seq: 2,
        generation: 3,
    };

    fn reading() -> Reading {
        let source = SourceAddress(b"ucx:127.0.0.1:1".to_vec());
        let read = Read {
            id: ReadId(1),
            key: KEY,
            capability: 0,
            source,
            from: 10,
            into: vec![4, 5, 6, 9],
        };
        Reading::new(read, EpId(1), Instant::now())
    }

    fn data(at: u32, count: u32) -> DataMessage {
        DataMessage {
            id: ReadId(1),
            key: KEY,
            at,
            count,
            checksum: 7,
        }
    }

    fn check(at: u32, count: u32, len: usize, accepted: bool) {
        assert_eq!(
            reading().take(&data(at, count), len, 8).is_ok(),
            accepted,
            "{at} {count} {len}"
        );
    }

    #[test]
    fn a_piece_is_inside_contiguous_and_of_the_right_size() {
        check(0, 3, 24, true);
        check(3, 1, 8, true);
        check(0, 4, 32, false);
        check(3, 2, 16, false);
        check(0, 0, 0, false);
        check(0, 2, 24, false);
        check(u32::MAX, 2, 16, false);
        assert_eq!(reading().runs(), [3, 1]);
    }

    #[test]
    fn another_generation_is_refused() {
        let stale = DataMessage {
            key: TransferKey { generation: 2, ..KEY },
            ..data(0, 1)
        };
        assert!(reading().take(&stale, 8, 8).is_err());
    }

    #[test]
    fn it_ends_well_when_every_block_has_landed_once() {
        let mut reading = reading();
        let a = reading.take(&data(0, 3), 24, 8).unwrap();
        assert!(reading.take(&data(2, 1), 8, 8).is_err());
        let b = reading.take(&data(3, 1), 8, 8).unwrap();
        reading.landed(&a, Ok(7));
        assert_eq!(reading.ended(8, "t"), None);
        reading.landed(&b, Ok(7));
        assert_eq!(
            reading.ended(8, "t"),
            Some(Ok(ReadStats {
                bytes: 32,
                descriptors: 2,
                transport: "t"
            }))
        );
        reading.fail(ReadError::Cancelled);
        assert!(
            reading.ended(8, "t").unwrap().is_ok(),
            "what is complete cannot fail"
        );
    }

    #[test]
    fn a_failure_waits_for_what_is_landing() {
        let mut reading = reading();
        let piece = reading.take(&data(0, 3), 24, 8).unwrap();
        reading.fail(ReadError::Cancelled);
        reading.fail(ReadError::NoProgress { ms: 1 });
        assert!(!reading.wants_data());
        assert_eq!(reading.ended(8, "t"), None);
        reading.landed(&piece, Ok(7));
        assert_eq!(reading.ended(8, "t"), Some(Err(ReadError::Cancelled)));
    }

    #[test]
    fn a_wrong_checksum_names_the_block() {
        let mut reading = reading();
        let piece = reading.take(&data(3, 1), 8, 8).unwrap();
        reading.landed(&piece, Ok(8));
        assert_eq!(reading.ended(8, "t"), Some(Err(ReadError::Corrupt { block: 9 })));
    }
}
