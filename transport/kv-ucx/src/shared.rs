//! What the callers' threads and the progress thread share.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    net::SocketAddr,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use kv::{
    EventSink, KvError, KvEvent, KvMemory, MAX_OFFERS, MAX_READS, OfferTable, Read, ReadError, ReadId,
    ReadStats, Totals, TransferKey, validate_read,
};
use rustix::event::{EventfdFlags, eventfd};

/// What callers ask of the thread. Bounded: at most one of each per open read.
pub(crate) enum Command {
    Read(Read, SocketAddr),
    Cancel(ReadId),
}

pub(crate) struct Shared {
    sink: EventSink,
    state: Mutex<State>,
    wake: OwnedFd,
    stop: AtomicBool,
    pending: AtomicBool,
}

pub(crate) struct State {
    pub(crate) offers: OfferTable,
    /// Accepted reads whose end has not been told; true once cancelled.
    open: BTreeMap<ReadId, bool>,
    commands: VecDeque<Command>,
    pub(crate) totals: Totals,
    stopped: bool,
}

impl Shared {
    pub(crate) fn new(memory: &dyn KvMemory, sink: EventSink) -> io::Result<Self> {
        let state = State {
            offers: OfferTable::new(MAX_OFFERS, memory.blocks()),
            open: BTreeMap::new(),
            commands: VecDeque::new(),
            totals: Totals::default(),
            stopped: false,
        };
        Ok(Self {
            sink,
            state: Mutex::new(state),
            wake: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
            stop: AtomicBool::new(false),
            pending: AtomicBool::new(false),
        })
    }

    /// Held briefly, and never while an event is told.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn emit(&self, event: KvEvent) {
        (self.sink)(event);
    }

    /// Takes a read in, if it is valid and there is room.
    pub(crate) fn accept(&self, read: Read, from: SocketAddr, memory: &dyn KvMemory) -> Result<(), KvError> {
        validate_read(&read, memory)?;
        {
            let mut state = self.state();
            if state.stopped {
                return Err(KvError::Stopped);
            }
            if state.open.contains_key(&read.id) {
                return Err(KvError::DuplicateRead(read.id));
            }
            if state.open.len() >= MAX_READS {
                return Err(KvError::TooManyReads { limit: MAX_READS });
            }
            state.open.insert(read.id, false);
            state.commands.push_back(Command::Read(read, from));
        }
        self.wake();
        Ok(())
    }

    /// Passes a cancellation on, once per open read.
    pub(crate) fn cancel(&self, id: ReadId) {
        {
            let mut state = self.state();
            match state.open.get_mut(&id) {
                Some(cancelled) if !*cancelled => *cancelled = true,
                _ => return,
            }
            state.commands.push_back(Command::Cancel(id));
        }
        self.wake();
    }

    /// All commands since the last call.
    pub(crate) fn take_commands(&self) -> VecDeque<Command> {
        if !self.pending.swap(false, Ordering::Acquire) {
            return VecDeque::new();
        }
        std::mem::take(&mut self.state().commands)
    }

    /// Tells the end of a read.
    pub(crate) fn end(&self, id: ReadId, result: Result<ReadStats, ReadError>) {
        {
            let mut state = self.state();
            state.open.remove(&id);
            match &result {
                Ok(stats) => {
                    state.totals.transport = stats.transport;
                    state.totals.reads_in += 1;
                    state.totals.bytes_in += stats.bytes;
                    state.totals.descriptors_in += u64::from(stats.descriptors);
                }
                Err(_) => state.totals.failed += 1,
            }
        }
        self.emit(KvEvent::ReadEnded { id, result });
    }

    /// Takes the pin of a serve off.
    pub(crate) fn unpin(&self, key: TransferKey) {
        let last = self.state().offers.unpin(key);
        if last {
            self.emit(KvEvent::Withdrawn { key });
        }
    }

    /// Asks the thread to end.
    pub(crate) fn ask_stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake();
    }

    pub(crate) fn stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// From now on nothing is accepted; every read still open here ends, and every pin is off. UCX is gone by then.
    pub(crate) fn stopped(&self) {
        let (open, withdrawn) = {
            let mut state = self.state();
            state.stopped = true;
            state.commands.clear();
            (std::mem::take(&mut state.open), state.offers.unpin_all())
        };
        for key in withdrawn {
            self.emit(KvEvent::Withdrawn { key });
        }
        for id in open.into_keys() {
            self.end(id, Err(ReadError::Local("the transfer has stopped".into())));
        }
    }

    fn wake(&self) {
        self.pending.store(true, Ordering::Release);
        // A full counter is readable, which is what is wanted.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    pub(crate) fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Makes the wake descriptor unreadable again.
    pub(crate) fn drain_wake(&self) {
        let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
    }

    pub(crate) fn totals(&self) -> Totals {
        let state = self.state();
        Totals {
            reads_open: state.open.len() as u64,
            offers_open: state.offers.len() as u64,
            sends_open: state.offers.in_flight(),
            ..state.totals.clone()
        }
    }
}

/// The one owner of the thread's end: a thread that unwinds still tells every read's end. To outlive the engine.
pub(crate) struct StopGuard(pub(crate) Arc<Shared>);

impl Drop for StopGuard {
    fn drop(&mut self) {
        self.0.stopped();
    }
}
