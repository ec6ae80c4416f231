//! A transfer that fails as a script says, for tests of what stands above it. A build without the feature `faults` has none of this.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    EventSink, KvError, KvEvent, KvMemory, KvTransfer, Offer, Read, ReadError, ReadId, SourceAddress, Totals,
    TransferKey,
};

/// What goes wrong with one read.
#[derive(Clone, Eq, PartialEq, Debug)]
pub enum Fault {
    /// It never starts and ends with this error.
    Fail(ReadError),
    /// It does not start before [`Faulty::release`].
    HoldStart,
    /// It runs, but its end is not told before [`Faulty::release`]: its blocks stay pinned.
    HoldEnd,
    /// It runs, and the thread that tells its end dies once it has told it. (The in-process transfer outlives that.)
    Panic,
    /// It ends well, but one bit of the first block that landed is wrong.
    Corrupt,
    /// It asks with a capability that the source did not mint.
    WrongCapability,
    /// It asks for the generation before its own.
    StaleGeneration,
}

/// Wraps a transfer and applies scripted faults. Nothing here waits or sleeps: what is held stays until released.
pub struct Faulty<T> {
    inner: T,
    script: Arc<Script>,
}

struct Script {
    sink: EventSink,
    memory: Arc<dyn KvMemory>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    reads_seen: u64,
    by_read: BTreeMap<u64, Fault>,
    by_default: Option<Fault>,
    on_end: BTreeMap<ReadId, (Fault, u32)>,
    held_reads: Vec<Read>,
    hold_withdrawn: bool,
    held_events: Vec<KvEvent>,
}

impl<T: KvTransfer> Faulty<T> {
    /// Builds the wrapped transfer with `make`, whose events pass through the script before they reach `sink`.
    /// `memory` is the region of the wrapped transfer.
    pub fn new<E>(
        memory: Arc<dyn KvMemory>,
        sink: EventSink,
        make: impl FnOnce(EventSink) -> Result<T, E>,
    ) -> Result<Self, E> {
        let script = Arc::new(Script {
            sink,
            memory,
            state: Mutex::default(),
        });
        let filter = script.clone();
        let inner = make(Arc::new(move |event| filter.pass(event)))?;
        Ok(Self { inner, script })
    }

    /// Applies `fault` to the `nth` read from the start, counted from 0.
    pub fn on_read(&self, nth: u64, fault: Fault) {
        self.script.state().by_read.insert(nth, fault);
    }

    /// Applies `fault` to every read from now on that [`on_read`](Self::on_read) does not name; `None`: to none.
    pub fn on_every(&self, fault: Option<Fault>) {
        self.script.state().by_default = fault;
    }

    /// How many reads were started or held so far: the number of the next one.
    #[must_use]
    pub fn reads_seen(&self) -> u64 {
        self.script.state().reads_seen
    }

    /// While true, no [`KvEvent::Withdrawn`] is told: as if a send of every offer were in flight.
    pub fn hold_withdrawn(&self, hold: bool) {
        self.script.state().hold_withdrawn = hold;
    }

    /// Tells that the transfer's thread has died, which it has not.
    pub fn seem_down(&self) {
        let why = "a test's fault".to_owned();
        (self.script.sink)(KvEvent::Down { why });
    }

    /// Starts the held reads and tells the held events, in the order they came, and holds withdrawals no longer, nor the ends of reads that
    /// are under way.
    pub fn release(&self) {
        let (reads, events) = {
            let mut state = self.script.state();
            state.hold_withdrawn = false;
            state.on_end.retain(|_, (fault, _)| *fault != Fault::HoldEnd);
            (
                std::mem::take(&mut state.held_reads),
                std::mem::take(&mut state.held_events),
            )
        };
        for event in events {
            (self.script.sink)(event);
        }
        for read in reads {
            let id = read.id;
            if let Err(e) = self.inner.read(read) {
                (self.script.sink)(KvEvent::ReadEnded {
                    id,
                    result: Err(ReadError::Local(e.to_string())),
                });
            }
        }
    }
}

impl Script {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells an event, or keeps it.
    fn pass(&self, event: KvEvent) {
        let mut dies = false;
        let corrupt = {
            let mut state = self.state();
            let (hold, corrupt) = match &event {
                KvEvent::Withdrawn { .. } => (state.hold_withdrawn, None),
                KvEvent::ReadEnded { id, result } => match state.on_end.remove(id) {
                    Some((Fault::HoldEnd, _)) => (true, None),
                    Some((Fault::Corrupt, block)) if result.is_ok() => (false, Some(block)),
                    Some((Fault::Panic, _)) => {
                        dies = true;
                        (false, None)
                    }
                    _ => (false, None),
                },
                KvEvent::Down { .. } => (false, None),
            };
            if hold {
                state.held_events.push(event);
                return;
            }
            corrupt
        };
        if let Some(block) = corrupt {
            self.flip_bit(block);
        }
        (self.sink)(event);
        // A thread that dies already still tells the ends of its other reads: a panic on top of its own would end the process.
        assert!(!dies || std::thread::panicking(), "a test's fault");
    }

    fn flip_bit(&self, block: u32) {
        let mut byte = [0u8];
        if self.memory.read_into(block, 0, &mut byte).is_ok() {
            byte[0] ^= 1;
            let _ = self.memory.write_from(block, 0, &byte);
        }
    }
}

impl<T: KvTransfer> KvTransfer for Faulty<T> {
    fn address(&self) -> SourceAddress {
        self.inner.address()
    }

    fn offer(&self, offer: Offer) -> Result<(), KvError> {
        self.inner.offer(offer)
    }

    fn withdraw(&self, key: TransferKey) {
        self.inner.withdraw(key);
    }

    fn read(&self, mut read: Read) -> Result<(), KvError> {
        let fault = {
            let mut state = self.script.state();
            let nth = state.reads_seen;
            state.reads_seen += 1;
            state.by_read.remove(&nth).or_else(|| state.by_default.clone())
        };
        match fault {
            None => self.inner.read(read),
            Some(Fault::Fail(error)) => {
                (self.script.sink)(KvEvent::ReadEnded {
                    id: read.id,
                    result: Err(error),
                });
                Ok(())
            }
            Some(Fault::HoldStart) => {
                self.script.state().held_reads.push(read);
                Ok(())
            }
            Some(Fault::WrongCapability) => {
                read.capability = !read.capability;
                self.inner.read(read)
            }
            Some(Fault::StaleGeneration) => {
                read.key.generation = read.key.generation.wrapping_sub(1);
                self.inner.read(read)
            }
            Some(at_end) => {
                let id = read.id;
                let first = read.into.first().copied().unwrap_or_default();
                // Before the read starts: its end may come at once.
                self.script.state().on_end.insert(id, (at_end, first));
                self.inner.read(read).inspect_err(|_| {
                    self.script.state().on_end.remove(&id);
                })
            }
        }
    }

    fn cancel(&self, id: ReadId) {
        let held = {
            let mut state = self.script.state();
            let before = state.held_reads.len();
            state.held_reads.retain(|read| read.id != id);
            state.held_reads.len() < before
        };
        if held {
            (self.script.sink)(KvEvent::ReadEnded {
                id,
                result: Err(ReadError::Cancelled),
            });
        } else {
            self.inner.cancel(id);
        }
    }

    fn totals(&self) -> Totals {
        self.inner.totals()
    }
}
