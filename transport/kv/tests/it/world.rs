//! A source and a reader on one hub, and what they were told.

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, Condvar, Mutex},
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
pub(crate) const HANG: Duration = Duration::from_secs(20);

/// Events, in the order told.
#[derive(Clone, Default)]
pub(crate) struct Told(Arc<(Mutex<VecDeque<KvEvent>>, Condvar)>);

impl Told {
    pub(crate) fn sink(&self) -> EventSink {
        let told = self.clone();
        Arc::new(move |event| {
            told.0.0.lock().unwrap().push_back(event);
            told.0.1.notify_all();
        })
    }

    pub(crate) fn next(&self) -> KvEvent {
        let queue = self.0.0.lock().unwrap();
        let (mut queue, wait) = self
            .0
            .1
            .wait_timeout_while(queue, HANG, |queue| queue.is_empty())
            .unwrap();
        assert!(!wait.timed_out(), "an event never came");
        queue.pop_front().unwrap()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.0.lock().unwrap().is_empty()
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
        let (source_told, told) = (Told::default(), Told::default());
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
        let mut got = vec![0; BLOCK];
        self.memory.read_into(into, 0, &mut got).unwrap();
        got == pattern(from)
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
