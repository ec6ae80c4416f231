//! One side of a test: a region, a transfer, the events it told.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use kv::{
    BlockIndex, KvEvent, KvMemory, KvTransfer, Offer, Read, ReadError, ReadId, ReadStats, SourceAddress,
    TransferKey,
};
use kv_ucx::{Ucx, UcxConfig, UcxTransfer, fetch_wheel};

use crate::memory::FastMemory;

pub(crate) const CAPABILITY: u128 = 0xfeed_beef;
/// Long enough for a debug build on a busy machine.
pub(crate) const NO_PROGRESS_MS: u64 = 3_000;
/// Far above every deadline of the transfer: passing it means that one does not exist.
pub(crate) const HANG: Duration = Duration::from_secs(60);

/// UCX for the tests: the pinned wheel, or where it cannot be had what the machine has.
pub(crate) fn ucx() -> &'static Ucx {
    static UCX: OnceLock<Ucx> = OnceLock::new();
    UCX.get_or_init(|| {
        let cache = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        match fetch_wheel(&cache, &mut |_, _| ()) {
            Ok(library) => Ucx::load(Some(&library), None).unwrap_or_else(|e| panic!("the fetched UCX: {e}")),
            Err(fetch) => Ucx::load(None, None).unwrap_or_else(|load| {
                panic!("these tests need UCX: the wheel cannot be fetched ({fetch}); {load}")
            }),
        }
    })
}

pub(crate) fn key(seq: u64) -> TransferKey {
    TransferKey {
        gateway: 5,
        seq,
        generation: 1,
    }
}

#[derive(Default)]
struct Told {
    ended: BTreeMap<ReadId, Result<ReadStats, ReadError>>,
    withdrawn: BTreeMap<TransferKey, u32>,
}

pub(crate) struct Side {
    pub(crate) transfer: UcxTransfer,
    pub(crate) memory: Arc<FastMemory>,
    told: Arc<(Mutex<Told>, Condvar)>,
}

static NEXT_READ: AtomicU64 = AtomicU64::new(1);

/// Held by a test that moves much or waits for deadlines: those run one at a time.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Side {
    pub(crate) fn new(tls: &str, blocks: u32, block_bytes: usize) -> Self {
        let memory = Arc::new(FastMemory::new(blocks, block_bytes));
        let told = Arc::new((Mutex::new(Told::default()), Condvar::new()));
        let note = told.clone();
        let sink = Arc::new(move |event| {
            let mut told = note.0.lock().unwrap();
            match event {
                KvEvent::ReadEnded { id, result } => {
                    assert!(told.ended.insert(id, result).is_none(), "{id} ended twice");
                }
                KvEvent::Withdrawn { key } => *told.withdrawn.entry(key).or_default() += 1,
                KvEvent::Down { why } => panic!("{why}"),
            }
            note.1.notify_all();
        });
        let config = UcxConfig {
            tls: Some(tls.into()),
            net_devices: None,
            bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
            no_progress_ms: NO_PROGRESS_MS,
        };
        let transfer = UcxTransfer::start(ucx(), config, memory.clone(), sink).unwrap();
        Self {
            transfer,
            memory,
            told,
        }
    }

    fn wait<R>(&self, what: &str, mut look: impl FnMut(&mut Told) -> Option<R>) -> R {
        let give_up = Instant::now() + HANG;
        let mut told = self.told.0.lock().unwrap();
        loop {
            if let Some(found) = look(&mut told) {
                return found;
            }
            let left = give_up.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{what} never came; {:?}", self.transfer.totals());
            told = self.told.1.wait_timeout(told, left).unwrap().0;
        }
    }

    /// Fills block `b` with the pattern of (seq, b) for every block of the list.
    pub(crate) fn fill(&self, seq: u64, blocks: &[BlockIndex]) {
        for &b in blocks {
            let bytes = pattern(seq, b, self.memory.block_bytes());
            self.memory.write_from(b, 0, &bytes).unwrap();
        }
    }

    pub(crate) fn offer(&self, seq: u64, blocks: &[BlockIndex]) {
        let offer = Offer {
            key: key(seq),
            capability: CAPABILITY,
            blocks: blocks.to_vec(),
        };
        self.transfer.offer(offer).unwrap();
    }

    pub(crate) fn withdraw(&self, seq: u64) {
        self.transfer.withdraw(key(seq));
    }

    pub(crate) fn withdrawn(&self, seq: u64) {
        self.wait("a withdrawal's end", |told| {
            told.withdrawn.contains_key(&key(seq)).then_some(())
        });
        assert_eq!(self.told.0.lock().unwrap().withdrawn.remove(&key(seq)), Some(1));
    }

    pub(crate) fn start(&self, source: &SourceAddress, seq: u64, from: u32, into: &[BlockIndex]) -> ReadId {
        self.start_with(source, key(seq), CAPABILITY, from, into)
    }

    pub(crate) fn start_with(
        &self,
        source: &SourceAddress,
        key: TransferKey,
        capability: u128,
        from: u32,
        into: &[BlockIndex],
    ) -> ReadId {
        let id = ReadId(NEXT_READ.fetch_add(1, Ordering::Relaxed));
        let read = Read {
            id,
            key,
            capability,
            source: source.clone(),
            from,
            into: into.to_vec(),
        };
        self.transfer.read(read).unwrap();
        id
    }

    pub(crate) fn end(&self, id: ReadId) -> Result<ReadStats, ReadError> {
        self.wait("a read's end", |told| told.ended.remove(&id))
    }

    /// Reads from block 0 on, and asserts that all arrives.
    pub(crate) fn arrives(&self, source: &SourceAddress, seq: u64, into: &[BlockIndex]) -> ReadStats {
        self.end(self.start(source, seq, 0, into))
            .unwrap_or_else(|why| panic!("a read of {} blocks for {seq}: {why}", into.len()))
    }

    /// Asserts that `into` holds what `source` blocks were filled with for `seq`.
    pub(crate) fn check(&self, seq: u64, source: &[BlockIndex], into: &[BlockIndex]) {
        let size = self.memory.block_bytes();
        let mut got = vec![0; size];
        for (&from, &to) in source.iter().zip(into) {
            self.memory.read_into(to, 0, &mut got).unwrap();
            assert!(
                got == pattern(seq, from, size),
                "block {to} is not source block {from}"
            );
        }
    }

    /// Drops the transfer; the reads whose end was told.
    pub(crate) fn stop(self) -> Vec<ReadId> {
        let Self { transfer, told, .. } = self;
        drop(transfer);
        let told = told.0.lock().unwrap();
        told.ended.keys().copied().collect()
    }

    /// Waits until nothing is open any more.
    pub(crate) fn settle(&self) {
        let give_up = Instant::now() + HANG;
        loop {
            let totals = self.transfer.totals();
            if totals.reads_open == 0 && totals.sends_open == 0 {
                return;
            }
            assert!(Instant::now() < give_up, "something stays open: {totals:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Bytes that no other (seq, block) has; made by doubling, as a debug build is slow byte by byte.
fn pattern(seq: u64, block: BlockIndex, len: usize) -> Vec<u8> {
    let mut word = seq.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(block) << 17) ^ 1;
    let mut out = Vec::with_capacity(len * 2);
    while out.len() < len.min(1024) {
        word = word
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        out.extend((word >> 8).to_le_bytes());
    }
    while out.len() < len {
        out.extend_from_within(..);
    }
    out.truncate(len);
    out
}
