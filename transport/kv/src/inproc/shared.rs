//! One worker's side: its offers, its open reads, its counters.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::TRANSPORT;
use crate::{
    EventSink, KvError, KvEvent, KvMemory, MAX_OFFERS, MAX_READS, OfferTable, Read, ReadError, ReadId,
    ReadStats, Totals, TransferKey, validate_read,
};

pub(super) struct Shared {
    pub(super) memory: Arc<dyn KvMemory>,
    sink: EventSink,
    state: Mutex<State>,
}

pub(super) struct State {
    pub(super) offers: OfferTable,
    /// Open reads; true once cancelled.
    reads: BTreeMap<ReadId, bool>,
    pub(super) totals: Totals,
    stopped: bool,
}

impl Shared {
    pub(super) fn new(memory: Arc<dyn KvMemory>, sink: EventSink) -> Self {
        let offers = OfferTable::new(MAX_OFFERS, memory.blocks());
        let totals = Totals {
            transport: TRANSPORT,
            ..Totals::default()
        };
        let state = State {
            offers,
            reads: BTreeMap::new(),
            totals,
            stopped: false,
        };
        Self {
            memory,
            sink,
            state: Mutex::new(state),
        }
    }

    /// Never held while an event is handed out, nor together with another worker's.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands out an event. A sink that panics costs its owner the event, and no one else the transfer: it may be running on another
    /// worker's thread.
    pub(super) fn emit(&self, event: KvEvent) {
        let _ = catch_unwind(AssertUnwindSafe(|| (self.sink)(event)));
    }

    pub(super) fn accept(&self, read: &Read) -> Result<(), KvError> {
        validate_read(read, self.memory.as_ref())?;
        let mut state = self.state();
        if state.stopped {
            return Err(KvError::Stopped);
        }
        if state.reads.contains_key(&read.id) {
            return Err(KvError::DuplicateRead(read.id));
        }
        if state.reads.len() >= MAX_READS {
            return Err(KvError::TooManyReads { limit: MAX_READS });
        }
        state.reads.insert(read.id, false);
        Ok(())
    }

    pub(super) fn forget(&self, id: ReadId) {
        self.state().reads.remove(&id);
    }

    pub(super) fn cancel(&self, id: ReadId) {
        if let Some(cancelled) = self.state().reads.get_mut(&id) {
            *cancelled = true;
        }
    }

    pub(super) fn is_cancelled(&self, id: ReadId) -> bool {
        let state = self.state();
        state.stopped || state.reads.get(&id).copied().unwrap_or(true)
    }

    pub(super) fn stop(&self) {
        self.state().stopped = true;
    }

    /// Closes a read and says so.
    pub(super) fn end(&self, id: ReadId, result: Result<ReadStats, ReadError>) {
        {
            let mut state = self.state();
            state.reads.remove(&id);
            match &result {
                Ok(stats) => {
                    state.totals.reads_in += 1;
                    state.totals.bytes_in += stats.bytes;
                    state.totals.descriptors_in += u64::from(stats.descriptors);
                }
                Err(_) => state.totals.failed += 1,
            }
        }
        self.emit(KvEvent::ReadEnded { id, result });
    }

    /// Ends a send; `sent` is (bytes, descriptors) if it completed.
    pub(super) fn unpin(&self, key: TransferKey, sent: Option<(u64, u32)>) {
        let last = {
            let mut state = self.state();
            if let Some((bytes, descriptors)) = sent {
                state.totals.reads_out += 1;
                state.totals.bytes_out += bytes;
                state.totals.descriptors_out += u64::from(descriptors);
            }
            state.offers.unpin(key)
        };
        if last {
            self.emit(KvEvent::Withdrawn { key });
        }
    }

    pub(super) fn totals(&self) -> Totals {
        let state = self.state();
        Totals {
            reads_open: state.reads.len() as u64,
            offers_open: state.offers.len() as u64,
            sends_open: state.offers.in_flight(),
            ..state.totals.clone()
        }
    }
}
