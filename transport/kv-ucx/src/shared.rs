//! What the callers' threads and the progress thread share.

use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use kv::{Account, EventSink, KvError, KvEvent, KvMemory, Read, ReadError, ReadId, ReadStats, TransferKey};
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
    pub(crate) account: Account,
    commands: VecDeque<Command>,
}

impl Shared {
    pub(crate) fn new(memory: &dyn KvMemory, sink: EventSink) -> io::Result<Self> {
        let state = State {
            account: Account::new(memory.blocks(), ""),
            commands: VecDeque::new(),
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
        {
            let mut state = self.state();
            state.account.open(&read, memory)?;
            state.commands.push_back(Command::Read(read, from));
        }
        self.wake();
        Ok(())
    }

    /// Passes a cancellation on, once per open read.
    pub(crate) fn cancel(&self, id: ReadId) {
        {
            let mut state = self.state();
            if !state.account.cancel(id) {
                return;
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
        self.state().account.end(id, &result);
        self.emit(KvEvent::ReadEnded { id, result });
    }

    /// Takes the pin of an answer off.
    pub(crate) fn unpin(&self, key: TransferKey) {
        let last = self.state().account.offers.unpin(key);
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
            state.account.stop();
            state.commands.clear();
            (state.account.open_reads(), state.account.offers.unpin_all())
        };
        for key in withdrawn {
            self.emit(KvEvent::Withdrawn { key });
        }
        for id in open {
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
}

/// The one owner of the thread's end: a thread that unwinds still tells every read's end. To outlive the engine.
pub(crate) struct StopGuard(pub(crate) Arc<Shared>);

impl Drop for StopGuard {
    fn drop(&mut self) {
        self.0.stopped();
        if std::thread::panicking() {
            let why = "the UCX thread panicked".to_owned();
            self.0.emit(KvEvent::Down { why });
        }
    }
}
