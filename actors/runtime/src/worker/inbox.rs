//! What has happened around a worker and was not looked at yet: frames of gateways, events of the engine and of the transfer.
//!
//! None of it goes through the actor's mailbox by itself. The actor empties the inbox at once, and its mailbox sees one
//! [`WorkerMessage::Wake`] however much has come since: what many gateways or steps of the engine cause together costs one wake, and is
//! told as one frame to each gateway. Order is kept: it is that in which things came.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::EngineEvent;
use kv::KvEvent;
use mesh::{Link, LinkEvent, LinkId, WorkerLinks, WorkerSide};
use ractor::ActorRef;
use room::NodeId;
use wire::{ToGateway, ToWorker};

use super::WorkerMessage;
use super::board::StayBoard;

/// Something that happened.
pub(crate) enum News {
    /// A gateway's link is up.
    LinkUp { gateway: NodeId, link: Link<ToGateway> },
    /// A gateway's link is over; its leases end with it.
    LinkDown { link: LinkId, why: mesh::DownReason },
    /// A gateway's frame. It counts as unread while it is here: that bounds what a gateway can put here.
    Frame {
        link: LinkId,
        frame: ToWorker,
        unread: mesh::Unread,
    },
    /// The engine's. Bounded: a sequence has no more steps than positions, and samples no further than its owner has allowed.
    Engine(EngineEvent),
    /// The transfer's. Bounded: one for each read and each offer.
    Kv(KvEvent),
}

/// The inbox; shared by all who put something in.
pub(super) struct Inbox {
    worker: ActorRef<WorkerMessage>,
    board: Arc<StayBoard>,
    /// None: nobody reads any more.
    unread: Mutex<Option<Vec<News>>>,
}

/// The end that the actor reads. With it the inbox ends: whoever goes on for a while (an engine in its last step) fills nothing.
pub(super) struct Reader {
    inbox: Arc<Inbox>,
    /// The memory for what comes next.
    spare: Vec<News>,
}

/// Makes the two ends.
pub(super) fn inbox(worker: ActorRef<WorkerMessage>, board: Arc<StayBoard>) -> (Arc<Inbox>, Reader) {
    let inbox = Arc::new(Inbox {
        worker,
        board,
        unread: Mutex::new(Some(Vec::new())),
    });
    let reader = Reader {
        inbox: Arc::clone(&inbox),
        spare: Vec::new(),
    };
    (inbox, reader)
}

impl Inbox {
    fn unread(&self) -> MutexGuard<'_, Option<Vec<News>>> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Never blocks. An actor that is gone has taken its links, its engine and its transfer along, and needs no news.
    pub(super) fn push(&self, news: News) {
        let is_first = match &mut *self.unread() {
            Some(unread) => {
                self.board.posted();
                unread.push(news);
                unread.len() == 1
            }
            None => false,
        };
        if is_first {
            let _ = self.worker.cast(WorkerMessage::Wake);
        }
    }
}

impl Reader {
    /// Everything that came; to be [given back](Self::recycle) when it is dealt with.
    pub(super) fn take(&mut self) -> Vec<News> {
        let empty = std::mem::take(&mut self.spare);
        self.inbox.unread().replace(empty).unwrap_or_default()
    }

    /// No memory is asked for, or given back, under load.
    pub(super) fn recycle(&mut self, mut read: Vec<News>) {
        read.clear();
        self.spare = read;
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Dropped outside of the lock: news may be the last to hold a link.
        let unread = self.inbox.unread().take();
        drop(unread);
    }
}

/// Brings the links' events into the inbox.
pub(super) struct Inward(pub(super) Arc<Inbox>);

impl WorkerLinks for Inward {
    fn event(&self, event: LinkEvent<WorkerSide>) {
        self.0.push(match event {
            LinkEvent::Up { link, peer } => News::LinkUp {
                gateway: NodeId(peer.epoch),
                link,
            },
            LinkEvent::Frame { link, frame, unread } => News::Frame { link, frame, unread },
            LinkEvent::Down { link, why } => News::LinkDown { link, why },
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use engine::{EngineEvent, SequenceKey};
    use ractor::{Actor, ActorProcessingErr, ActorRef};
    use tokio::time::{sleep, timeout};

    use super::{News, inbox};
    use crate::worker::WorkerMessage;

    /// Counts what it is told.
    struct Woken(Arc<AtomicUsize>);

    impl Actor for Woken {
        type Msg = WorkerMessage;
        type State = ();
        type Arguments = ();

        async fn pre_start(&self, _: ActorRef<WorkerMessage>, (): ()) -> Result<(), ActorProcessingErr> {
            Ok(())
        }

        async fn handle(
            &self,
            _: ActorRef<WorkerMessage>,
            _: WorkerMessage,
            (): &mut (),
        ) -> Result<(), ActorProcessingErr> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
    }

    fn stopped(key: u64) -> News {
        News::Engine(EngineEvent::Stopped {
            key: SequenceKey(key),
        })
    }

    fn key(news: &News) -> u64 {
        match news {
            News::Engine(EngineEvent::Stopped { key }) => key.0,
            _ => panic!("other news"),
        }
    }

    #[tokio::test]
    async fn whatever_comes_together_wakes_once_and_keeps_its_order() {
        let wakes = Arc::new(AtomicUsize::new(0));
        let (worker, ended) = Actor::spawn(None, Woken(Arc::clone(&wakes)), ()).await.unwrap();
        let woken = async |times: usize| {
            let so_often = async {
                while wakes.load(Ordering::SeqCst) < times {
                    sleep(Duration::from_millis(1)).await;
                }
            };
            timeout(Duration::from_secs(30), so_often).await.unwrap();
        };
        let board = Arc::<crate::worker::StayBoard>::default();
        let (inbox, mut reader) = inbox(worker.clone(), Arc::clone(&board));
        (1..=3).for_each(|key| inbox.push(stopped(key)));
        woken(1).await;
        let news = reader.take();
        assert_eq!(news.iter().map(key).collect::<Vec<_>>(), [1, 2, 3]);
        reader.recycle(news);
        inbox.push(stopped(4));
        woken(2).await;
        assert_eq!(reader.take().iter().map(key).collect::<Vec<_>>(), [4]);
        assert!(reader.take().is_empty());
        assert_eq!(board.mailbox(), 4, "nobody has said that it took any");
        inbox.push(stopped(5));
        drop(reader);
        inbox.push(stopped(6));
        assert_eq!(board.mailbox(), 5, "nobody is left to take it");
        woken(3).await;
        worker.stop(None);
        ended.await.unwrap();
        assert_eq!(wakes.load(Ordering::SeqCst), 3);
    }
}
