//! Moves between workers of one process: a copy from one region to another, on the reader's transfer thread.

mod copy;
mod hub;
mod shared;

use std::{
    io,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
};

pub use hub::Hub;

use crate::{
    EventSink, KvError, KvEvent, KvMemory, KvTransfer, MAX_READS, Offer, Read, ReadId, SourceAddress, Totals,
    TransferKey, Withdrawal,
};
use shared::Shared;

/// What [`crate::ReadStats`] and metrics call this transfer.
const TRANSPORT: &str = "in-process";

/// The transfer of one worker to and from the others on the same [`Hub`].
///
/// A source that was dropped is lost to its readers; a read under way when its source is dropped still ends well,
/// as the copy holds the source's region.
pub struct InProcess {
    shared: Arc<Shared>,
    hub: Hub,
    id: u64,
    /// None: copies run inside [`KvTransfer::read`].
    worker: Option<Worker>,
}

struct Worker {
    queue: SyncSender<Read>,
    thread: JoinHandle<()>,
}

impl InProcess {
    /// A transfer with a thread of its own that does the copies. The thread ends when the value is dropped.
    pub fn spawn(hub: &Hub, memory: Arc<dyn KvMemory>, sink: EventSink) -> io::Result<Self> {
        let mut this = Self::inline(hub, memory, sink);
        let (queue, reads) = sync_channel(MAX_READS);
        let (shared, hub) = (this.shared.clone(), hub.clone());
        let thread = thread::Builder::new()
            .name("kv-in-process".into())
            .spawn(move || serve(&reads, &hub, &shared))?;
        this.worker = Some(Worker { queue, thread });
        Ok(this)
    }

    /// A transfer that copies inside [`KvTransfer::read`], so that events come in one fixed order: for simulations.
    pub fn inline(hub: &Hub, memory: Arc<dyn KvMemory>, sink: EventSink) -> Self {
        let shared = Arc::new(Shared::new(memory, sink));
        let id = hub.join(&shared);
        Self {
            shared,
            hub: hub.clone(),
            id,
            worker: None,
        }
    }
}

/// The transfer thread: ends when the queue's sender is gone, with the transfer, and the queue is empty.
fn serve(reads: &Receiver<Read>, hub: &Hub, shared: &Shared) {
    while let Ok(read) = reads.recv() {
        copy::perform(hub, shared, &read);
    }
}

impl KvTransfer for InProcess {
    fn address(&self) -> SourceAddress {
        Hub::address(self.id)
    }

    fn offer(&self, offer: Offer) -> Result<(), KvError> {
        self.shared.account().offers.insert(offer)
    }

    fn withdraw(&self, key: TransferKey) {
        let found = self.shared.account().offers.withdraw(key);
        if found == Withdrawal::Done {
            self.shared.emit(KvEvent::Withdrawn { key });
        }
    }

    fn read(&self, read: Read) -> Result<(), KvError> {
        Hub::parse(&read.source)?;
        self.shared.account().open(&read, self.shared.memory.as_ref())?;
        match &self.worker {
            None => copy::perform(&self.hub, &self.shared, &read),
            Some(worker) => {
                let id = read.id;
                if worker.queue.try_send(read).is_err() {
                    self.shared.account().forget(id);
                    return Err(KvError::Stopped);
                }
            }
        }
        Ok(())
    }

    fn cancel(&self, id: ReadId) {
        self.shared.account().cancel(id);
    }

    fn totals(&self) -> Totals {
        self.shared.account().totals()
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        // In this order: when it is seen to be gone, none of its reads goes on.
        self.shared.account().stop();
        self.hub.leave(self.id);
        let Some(Worker { queue, thread }) = self.worker.take() else {
            return;
        };
        drop(queue);
        // All reads are cancelled, so this waits for the one block that is being copied. An event handler may hold the last reference:
        // a thread cannot wait for itself.
        if thread.thread().id() != thread::current().id() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::HeapMemory;

    const KEY: TransferKey = TransferKey {
        gateway: 1,
        seq: 2,
        generation: 3,
    };

    /// The shortest way through all that is here, so that what stops every move is seen before `tests/it` waits for each of its own.
    fn check(make: fn(&Hub, Arc<dyn KvMemory>, EventSink) -> io::Result<InProcess>) {
        let (hub, from, to) = (Hub::new(), HeapMemory::new(2, 4), HeapMemory::new(2, 4));
        let (from, to) = (Arc::new(from), Arc::new(to));
        let (tell, told) = sync_channel(2);
        let sink: EventSink = Arc::new(move |event| tell.send(event).unwrap());
        let next = || told.recv_timeout(Duration::from_secs(10)).unwrap();
        let source = make(&hub, from.clone(), sink.clone()).unwrap();
        let reader = make(&hub, to.clone(), sink).unwrap();
        from.write_from(1, 0, &[1, 2, 3, 4]).unwrap();
        let (capability, blocks) = (5, vec![1]);
        source
            .offer(Offer {
                key: KEY,
                capability,
                blocks,
            })
            .unwrap();
        let read = Read {
            id: ReadId(6),
            key: KEY,
            capability,
            source: source.address(),
            from: 0,
            into: vec![0],
        };
        reader.read(read).unwrap();
        let ended = next();
        assert!(
            matches!(ended, KvEvent::ReadEnded { id: ReadId(6), result: Ok(stats) } if stats.bytes == 4),
            "{ended:?}"
        );
        let mut landed = [0; 4];
        to.read_into(0, 0, &mut landed).unwrap();
        assert_eq!(landed, [1, 2, 3, 4]);
        source.withdraw(KEY);
        assert_eq!(next(), KvEvent::Withdrawn { key: KEY });
    }

    #[test]
    fn a_block_moves_inside_the_call() {
        check(|hub, memory, sink| Ok(InProcess::inline(hub, memory, sink)));
    }

    #[test]
    fn a_block_moves_on_a_thread() {
        check(InProcess::spawn);
    }
}
