//! Two workers on a data path, and what they are told.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use kv::{HeapMemory, KvEvent, KvMemory, KvTransfer, Offer, Read, ReadError, ReadId, ReadStats, TransferKey};
use tokio::time::Instant;

use super::super::{Config, Network, Place, SimTransfer};

pub(super) const BLOCKS: u32 = 32;
pub(super) const BLOCK_BYTES: usize = 64;
pub(super) const CAPABILITY: u128 = 42;
pub(super) const SOURCE: Place = Place(1);
pub(super) const READER: Place = Place(2);
/// Longer than anything takes that ends at all.
pub(super) const LONG: Duration = Duration::from_secs(60);

pub(super) fn key(seq: u64) -> TransferKey {
    TransferKey {
        gateway: 7,
        seq,
        generation: 3,
    }
}

/// One worker.
pub(super) struct Side {
    pub(super) transfer: SimTransfer,
    pub(super) memory: Arc<HeapMemory>,
    told: Arc<Mutex<Vec<(Duration, KvEvent)>>>,
}

impl Side {
    pub(super) fn new(network: &Network, place: Place, block_bytes: usize) -> Self {
        let memory = Arc::new(HeapMemory::new(BLOCKS, block_bytes));
        let told = Arc::new(Mutex::new(Vec::new()));
        let (tell, since) = (Arc::clone(&told), Instant::now());
        let sink = Arc::new(move |event| tell.lock().unwrap().push((since.elapsed(), event)));
        let transfer = network.join(place, Arc::clone(&memory) as _, sink);
        Self {
            transfer,
            memory,
            told,
        }
    }

    pub(super) fn fill(&self, block: u32, byte: u8) {
        let bytes = vec![byte; self.memory.block_bytes()];
        self.memory.write_from(block, 0, &bytes).unwrap();
    }

    pub(super) fn holds(&self, block: u32, byte: u8) -> bool {
        let mut bytes = vec![0; self.memory.block_bytes()];
        self.memory.read_into(block, 0, &mut bytes).unwrap();
        bytes.iter().all(|&b| b == byte)
    }

    /// Events so far, with when they came.
    pub(super) fn told(&self) -> Vec<(Duration, KvEvent)> {
        self.told.lock().unwrap().clone()
    }

    /// The one end of a read, if it has been told.
    pub(super) fn end(&self, id: u64) -> Option<(Duration, Result<ReadStats, ReadError>)> {
        let mut ends = self.told().into_iter().filter_map(|(at, event)| match event {
            KvEvent::ReadEnded { id: ended, result } if ended == ReadId(id) => Some((at, result)),
            _ => None,
        });
        let end = ends.next();
        assert_eq!(ends.next(), None, "a second end of read {id}");
        end
    }

    /// When a withdrawal was told, if it was.
    pub(super) fn withdrawn(&self, key: TransferKey) -> Option<Duration> {
        let mut told = self
            .told()
            .into_iter()
            .filter_map(|(at, event)| (event == KvEvent::Withdrawn { key }).then_some(at));
        let withdrawn = told.next();
        assert_eq!(told.next(), None, "a second withdrawal of {key}");
        withdrawn
    }
}

/// Source and reader.
pub(super) struct Pair {
    pub(super) network: Network,
    pub(super) source: Side,
    pub(super) reader: Side,
}

impl Pair {
    pub(super) fn new(seed: u64) -> Self {
        let network = Network::new(Config::default(), seed);
        Self {
            source: Side::new(&network, SOURCE, BLOCK_BYTES),
            reader: Side::new(&network, READER, BLOCK_BYTES),
            network,
        }
    }

    /// Offers the first `count` blocks of the source as room `seq`, filled with 1, 2, 3...
    pub(super) fn offer(&self, seq: u64, count: u32) {
        for block in 0..count {
            self.source.fill(block, u8::try_from(block + 1).unwrap());
        }
        let offer = Offer {
            key: key(seq),
            capability: CAPABILITY,
            blocks: (0..count).collect(),
        };
        self.source.transfer.offer(offer).unwrap();
    }

    /// Reads all of them, backwards in memory from block 31.
    pub(super) fn read(&self, id: u64, seq: u64, count: u32) -> Read {
        Read {
            id: ReadId(id),
            key: key(seq),
            capability: CAPABILITY,
            source: self.source.transfer.address(),
            from: 0,
            into: (0..count).map(|i| BLOCKS - 1 - i).collect(),
        }
    }

    /// Offers, asks, and lets it run for `ms`.
    pub(super) async fn start(&self, count: u32, ms: u64) {
        self.offer(1, count);
        self.reader.transfer.read(self.read(1, 1, count)).unwrap();
        pass(ms).await;
    }

    /// Whether the reader has what the source offered.
    pub(super) fn arrived(&self, count: u32) -> bool {
        (0..count).all(|i| self.reader.holds(BLOCKS - 1 - i, u8::try_from(i + 1).unwrap()))
    }

    /// At the end everything has come back, and nobody touched what was pinned.
    pub(super) fn check_clean(&self) {
        assert_eq!(self.network.violations(), Vec::<String>::new());
        assert_eq!(self.network.in_flight(), 0, "reads in flight");
        for side in [&self.source, &self.reader] {
            let totals = side.transfer.totals();
            assert_eq!((totals.reads_open, totals.sends_open), (0, 0));
        }
    }
}

/// Virtual time passes.
pub(super) async fn pass(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}
