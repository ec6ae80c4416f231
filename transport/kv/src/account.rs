//! One side's account: what it offers, what it reads, what it has moved. Pure: no clock, no I/O, no lock.

use std::collections::BTreeMap;

use crate::{
    KvError, KvMemory, MAX_OFFERS, MAX_READS, OfferTable, Read, ReadError, ReadId, ReadStats, Totals,
    TransferKey, transfer::validate_read,
};

/// What every transfer keeps of its own side.
pub struct Account {
    /// Its offers.
    pub offers: OfferTable,
    /// Reads that were accepted and whose end has not been told; true once cancelled.
    reads: BTreeMap<ReadId, bool>,
    moved: Totals,
    stopped: bool,
}

impl Account {
    /// An empty account over a region of `region_blocks` blocks. `transport`: what carries the bytes, if that is known already.
    pub fn new(region_blocks: u32, transport: &'static str) -> Self {
        Self {
            offers: OfferTable::new(MAX_OFFERS, region_blocks),
            reads: BTreeMap::new(),
            moved: Totals {
                transport,
                ..Totals::default()
            },
            stopped: false,
        }
    }

    /// Opens a read into `memory`, if it is valid, new, and there is room.
    pub fn open(&mut self, read: &Read, memory: &dyn KvMemory) -> Result<(), KvError> {
        validate_read(read, memory)?;
        if self.stopped {
            return Err(KvError::Stopped);
        }
        if self.reads.contains_key(&read.id) {
            return Err(KvError::DuplicateRead(read.id));
        }
        if self.reads.len() >= MAX_READS {
            return Err(KvError::TooManyReads { limit: MAX_READS });
        }
        self.reads.insert(read.id, false);
        Ok(())
    }

    /// Forgets a read that was opened and not begun.
    pub fn forget(&mut self, id: ReadId) {
        self.reads.remove(&id);
    }

    /// Notes that a read is not wanted. True the first time, for one that is open.
    pub fn cancel(&mut self, id: ReadId) -> bool {
        match self.reads.get_mut(&id) {
            Some(cancelled) => !std::mem::replace(cancelled, true),
            None => false,
        }
    }

    /// Whether a read should go no further.
    pub fn is_cancelled(&self, id: ReadId) -> bool {
        self.stopped || self.reads.get(&id).copied().unwrap_or(true)
    }

    /// Closes a read and counts what it moved.
    pub fn end(&mut self, id: ReadId, result: &Result<ReadStats, ReadError>) {
        self.reads.remove(&id);
        match result {
            Ok(stats) => {
                self.moved.transport = stats.transport;
                self.moved.reads_in += 1;
                self.moved.bytes_in += stats.bytes;
                self.moved.descriptors_in += u64::from(stats.descriptors);
            }
            Err(_) => self.moved.failed += 1,
        }
    }

    /// Begins an answer to a peer's read of the offer under `key`, which is pinned for it.
    pub fn answer(&mut self, key: TransferKey) {
        self.offers.pin(key);
        self.moved.reads_out += 1;
    }

    /// Counts what was sent in an answer.
    pub fn sent(&mut self, bytes: u64, descriptors: u32, transport: &'static str) {
        self.moved.transport = transport;
        self.moved.bytes_out += bytes;
        self.moved.descriptors_out += u64::from(descriptors);
    }

    /// Counts a peer's read that was refused.
    pub fn refused(&mut self) {
        self.moved.refused += 1;
    }

    /// Opens no read from now on.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// The reads that are open.
    pub fn open_reads(&self) -> Vec<ReadId> {
        self.reads.keys().copied().collect()
    }

    /// Counters since the start, and what is open now.
    pub fn totals(&self) -> Totals {
        Totals {
            reads_open: self.reads.len() as u64,
            offers_open: self.offers.len() as u64,
            sends_open: self.offers.in_flight(),
            ..self.moved.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HeapMemory, Offer, SourceAddress};

    const KEY: TransferKey = TransferKey {
        gateway: 1,
        seq: 1,
        generation: 1,
    };

    fn read(id: u64) -> Read {
        Read {
            id: ReadId(id),
            key: KEY,
            capability: 0,
            source: SourceAddress(b"inproc:1".to_vec()),
            from: 0,
            into: vec![0],
        }
    }

    #[test]
    fn a_read_is_open_once_until_its_end() {
        let memory = HeapMemory::new(1, 8);
        let mut account = Account::new(1, "");
        account.open(&read(1), &memory).unwrap();
        assert_eq!(account.totals().reads_open, 1);
        assert!(matches!(
            account.open(&read(1), &memory),
            Err(KvError::DuplicateRead(ReadId(1)))
        ));
        assert!(!account.is_cancelled(ReadId(1)));
        assert!(account.cancel(ReadId(1)) && !account.cancel(ReadId(1)) && !account.cancel(ReadId(2)));
        assert!(account.is_cancelled(ReadId(1)));
        account.end(ReadId(1), &Err(ReadError::Cancelled));
        assert_eq!((account.totals().reads_open, account.totals().failed), (0, 1));
        account.open(&read(1), &memory).unwrap();
        account.stop();
        assert_eq!(account.open_reads(), [ReadId(1)]);
        assert!(account.is_cancelled(ReadId(1)));
        assert!(matches!(account.open(&read(2), &memory), Err(KvError::Stopped)));
    }

    #[test]
    fn what_was_moved_adds_up() {
        let memory = HeapMemory::new(4, 8);
        let mut account = Account::new(4, "");
        let blocks = vec![0, 1, 2];
        let capability = 1;
        let offer = Offer {
            key: KEY,
            capability,
            blocks,
        };
        account.offers.insert(offer).unwrap();
        for (id, bytes, descriptors) in [(1, 16, 1), (2, 24, 3)] {
            account.answer(KEY);
            account.sent(bytes, descriptors, "out");
            account.open(&read(id), &memory).unwrap();
            let stats = ReadStats {
                bytes,
                descriptors,
                transport: "in",
            };
            account.end(ReadId(id), &Ok(stats));
        }
        account.refused();
        account.open(&read(3), &memory).unwrap();
        account.end(ReadId(3), &Err(ReadError::Cancelled));
        account.open(&read(4), &memory).unwrap();
        let want = Totals {
            transport: "in",
            bytes_in: 40,
            reads_in: 2,
            descriptors_in: 4,
            bytes_out: 40,
            reads_out: 2,
            descriptors_out: 4,
            refused: 1,
            failed: 1,
            reads_open: 1,
            offers_open: 1,
            sends_open: 2,
        };
        assert_eq!(account.totals(), want);
        account.sent(0, 0, "out");
        assert_eq!(account.totals().transport, "out", "what carried the last");
        assert_eq!(Account::new(4, "known").totals().transport, "known");
    }

    #[test]
    fn no_more_reads_are_open_than_may_be() {
        let memory = HeapMemory::new(1, 8);
        let mut account = Account::new(1, "");
        for id in 0..MAX_READS as u64 {
            account.open(&read(id), &memory).unwrap();
        }
        let one_more = read(MAX_READS as u64);
        assert!(matches!(
            account.open(&one_more, &memory),
            Err(KvError::TooManyReads { limit: MAX_READS })
        ));
        account.forget(ReadId(0));
        account.open(&one_more, &memory).unwrap();
    }
}
