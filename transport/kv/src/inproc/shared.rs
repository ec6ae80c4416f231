//! One worker's side: its account, and who hears its events.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::TRANSPORT;
use crate::{Account, EventSink, KvEvent, KvMemory, ReadError, ReadId, ReadStats, TransferKey};

pub(super) struct Shared {
    pub(super) memory: Arc<dyn KvMemory>,
    sink: EventSink,
    account: Mutex<Account>,
}

impl Shared {
    pub(super) fn new(memory: Arc<dyn KvMemory>, sink: EventSink) -> Self {
        let account = Mutex::new(Account::new(memory.blocks(), TRANSPORT));
        Self {
            memory,
            sink,
            account,
        }
    }

    /// Never held while an event is handed out, nor together with another worker's.
    pub(super) fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands out an event. A sink that panics costs its owner the event, and no one else the transfer: it may be running on another
    /// worker's thread.
    pub(super) fn emit(&self, event: KvEvent) {
        let _ = catch_unwind(AssertUnwindSafe(|| (self.sink)(event)));
    }

    /// Closes a read and says so.
    pub(super) fn end(&self, id: ReadId, result: Result<ReadStats, ReadError>) {
        self.account().end(id, &result);
        self.emit(KvEvent::ReadEnded { id, result });
    }

    /// Takes the pin of an answer off.
    pub(super) fn unpin(&self, key: TransferKey) {
        let last = self.account().offers.unpin(key);
        if last {
            self.emit(KvEvent::Withdrawn { key });
        }
    }
}
