//! A source and a reader on one hub, and what they were told.

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    time::Duration,
};

use kv::{
    EventSink, Faulty, HeapMemory, Hub, InProcess, KvEvent, KvMemory, KvTransfer, Offer, Read, ReadError,
    ReadId, ReadStats, TransferKey,
};

pub(crate) const BLOCK: usize = 256;
pub(crate) const BLOCKS: u32 = 16;
pub(crate) const KEY: TransferKey = TransferKey {
    gateway: 1,
    seq: 2,
    generation: 3,
};
pub(crate) const CAPABILITY: u128 = 42;
pub(crate) const HANG: Duration = Duration::from_secs(10);

/// Events, in the order told.
#[derive(Clone)]
pub(crate) struct Told {
    events: Arc<(Mutex<VecDeque<KvEvent>>, Condvar)>,
    patience: Duration,
}

impl Told {
    /// Of what is told by another thread, or else inside the calls, so that all is there already.
    pub(crate) fn new(by_thread: bool) -> Self {
        Self {
            events: Arc::default(),
            patience: if by_thread { HANG } else { Duration::ZERO },
        }
    }

    pub(crate) fn sink(&self) -> EventSink {
        let told = self.clone();
        Arc::new(move |event| {
            told.queue().push_back(event);
            told.events.1.notify_all();
        })
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<KvEvent>> {
        self.events.0.lock().unwrap()
    }

    pub(crate) fn next(&self) -> KvEvent {
        let (mut queue, wait) = self
            .events
            .1
            .wait_timeout_while(self.queue(), self.patience, |queue| queue.is_empty())
            .unwrap();
        assert!(!wait.timed_out(), "an event never came");
        queue.pop_front().unwrap()
    }

    /// All that was told and not looked at yet, without waiting for more.
    pub(crate) fn so_far(&self) -> Vec<KvEvent> {
        self.queue().drain(..).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue().is_empty()
    }

    pub(crate) fn end_of(&self, id: u64) -> Result<ReadStats, ReadError> {
        match self.next() {
            KvEvent::ReadEnded { id: ended, result } if ended == ReadId(id) => result,
            other => panic!("{other:?}, not the end of read {id}"),
        }
    }
}

pub(crate) struct World {
    pub(crate) hub: Hub,
    pub(crate) source: InProcess,
    pub(crate) source_told: Told,
    pub(crate) reader: Faulty<InProcess>,
    pub(crate) memory: Arc<HeapMemory>,
    pub(crate) told: Told,
}

impl World {
    /// Both with threads, or both inline.
    pub(crate) fn new(threads: bool) -> Self {
        let hub = Hub::new();
        let (source_memory, memory) = (region(), region());
        let (source_told, told) = (Told::new(threads), Told::new(threads));
        let make = |memory: Arc<HeapMemory>, sink| match threads {
            true => InProcess::spawn(&hub, memory, sink).unwrap(),
            false => InProcess::inline(&hub, memory, sink),
        };
        for block in 0..BLOCKS {
            source_memory.write_from(block, 0, &pattern(block)).unwrap();
        }
        let source = make(source_memory, source_told.sink());
        let wrapped = |sink| Ok::<_, Infallible>(make(memory.clone(), sink));
        let Ok(reader) = Faulty::new(memory.clone(), told.sink(), wrapped);
        Self {
            hub: hub.clone(),
            source,
            source_told,
            reader,
            memory,
            told,
        }
    }

    pub(crate) fn offer(&self, blocks: &[u32]) {
        self.source
            .offer(Offer {
                key: KEY,
                capability: CAPABILITY,
                blocks: blocks.to_vec(),
            })
            .unwrap();
    }

    pub(crate) fn request(&self, id: u64, into: &[u32]) -> Read {
        let source = self.source.address();
        Read {
            id: ReadId(id),
            key: KEY,
            capability: CAPABILITY,
            source,
            from: 0,
            into: into.to_vec(),
        }
    }

    pub(crate) fn read(&self, id: u64, into: &[u32]) {
        self.reader.read(self.request(id, into)).unwrap();
    }

    /// Whether local block `into` holds what the source filled its block `from` with.
    pub(crate) fn holds(&self, into: u32, from: u32) -> bool {
        self.bytes(into) == pattern(from)
    }

    /// What local block `block` holds.
    pub(crate) fn bytes(&self, block: u32) -> Vec<u8> {
        let mut got = vec![0; BLOCK];
        self.memory.read_into(block, 0, &mut got).unwrap();
        got
    }
}

fn region() -> Arc<HeapMemory> {
    Arc::new(HeapMemory::new(BLOCKS, BLOCK))
}

fn pattern(block: u32) -> Vec<u8> {
    (0..BLOCK)
        .map(|i| u8::try_from((i * 7 + block as usize * 31 + 1) % 251).unwrap())
        .collect()
}
