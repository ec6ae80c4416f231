//! Where the end of a worker's KV transfer is waited for.

use std::sync::Arc;
use std::thread;

use kv::KvTransfer;

use crate::beside::is_single_threaded;

/// The last reference to a transfer. Dropping a transfer waits for its thread, and that may take as long as closing its connections does:
/// not on the runtime's threads, where the worker's actor ends.
pub(super) struct LastOf(Option<Arc<dyn KvTransfer>>);

impl LastOf {
    /// To be dropped after every other reference.
    pub(super) fn new(transfer: &Arc<dyn KvTransfer>) -> Self {
        Self(Some(Arc::clone(transfer)))
    }
}

impl Drop for LastOf {
    fn drop(&mut self) {
        let last = self.0.take();
        let end = move || drop(last);
        if is_single_threaded() {
            return end();
        }
        if let Err(error) = thread::Builder::new().name("kv-end".into()).spawn(end) {
            tracing::warn!(%error, "no thread for the end of a KV transfer: it was waited for where it ended");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::{SyncSender, sync_channel};
    use std::thread::{self, ThreadId};
    use std::time::Duration;

    use kv::{KvError, KvTransfer, Offer, Read, ReadId, SourceAddress, Totals, TransferKey};

    use super::LastOf;

    /// A transfer that says where it ended.
    struct Mortal(SyncSender<ThreadId>);

    impl Drop for Mortal {
        fn drop(&mut self) {
            let _ = self.0.send(thread::current().id());
        }
    }

    impl KvTransfer for Mortal {
        fn address(&self) -> SourceAddress {
            SourceAddress(Vec::new())
        }

        fn offer(&self, _: Offer) -> Result<(), KvError> {
            Ok(())
        }

        fn withdraw(&self, _: TransferKey) {}

        fn read(&self, _: Read) -> Result<(), KvError> {
            Ok(())
        }

        fn cancel(&self, _: ReadId) {}

        fn totals(&self) -> Totals {
            Totals::default()
        }
    }

    #[test]
    fn a_transfer_does_not_end_on_the_thread_of_its_owner() {
        let (says, hears) = sync_channel(1);
        let transfer: Arc<dyn KvTransfer> = Arc::new(Mortal(says));
        let last = LastOf::new(&transfer);
        drop(transfer);
        drop(last);
        let ended_on = hears.recv_timeout(Duration::from_secs(30)).unwrap();
        assert_ne!(ended_on, thread::current().id());
    }
}
