//! The workers' links as the gateway sees them, and the one record of which worker may hold what for which room.
//!
//! A *leg* is a worker that was sent a `Reserve` or `Prefill` for an attempt and has not been proven to hold nothing of it. Legs are
//! written down under the same lock that queues the frame, so that a heartbeat's digest never tells of a leg whose opening frame is
//! still behind it, nor forgets one that is ahead.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use mesh::{Link, LinkStats, SendError};
use room::{Attempt, Generation, NodeId, RoomId};
use wire::{EncodeError, Kept, Order, RoomKey, ToWorker};

use super::directory::{Directory, Mail, News};
use super::orders::OrderError;
use crate::convert;

struct Worker {
    link: Link<ToWorker>,
    legs: BTreeMap<RoomKey, Leg>,
    /// What the digests still unanswered were about: heartbeat number → every leg at that time, and where it was.
    digests: BTreeMap<u64, BTreeMap<RoomKey, Stage>>,
}

#[derive(Copy, Clone, Eq, PartialEq, Debug)]
struct Leg {
    stage: Stage,
    /// The worker has said that its stay is over: it failed, is finished, or never began.
    over: bool,
}

#[derive(Copy, Clone, Eq, PartialEq, Debug)]
enum Stage {
    /// How far the worker was allowed to go is part of the digest: whatever became of the frame that said so.
    Open { until: u32 },
    /// A `Close` or `Release` was sent: no longer part of the digest, so that the digest closes it too.
    Closing,
}

impl Worker {
    /// The order that opens a leg, or goes on with one that is open, was sent.
    fn open(&mut self, key: RoomKey, until: u32) {
        let stage = Stage::Open { until };
        let fresh = Leg { stage, over: false };
        self.legs.entry(key).or_insert(fresh).stage = stage;
    }
}

impl Leg {
    /// What its worker's answer to a digest means, which does not name it any more; `asked` is where it was when the digest was sent.
    /// Its blocks are returned in any case. What the worker said before, it said before it answered: so if it has ended the stay by
    /// its own word, and the order to close it was not under way, that is all as it should be. Otherwise something was lost: the
    /// order that opened it, the word that it is over, the order to close it, or the answer to that.
    fn proven(self, asked: Stage) -> News {
        match asked {
            Stage::Open { .. } if self.over => News::Closed,
            Stage::Open { .. } | Stage::Closing => News::NotHeld,
        }
    }
}

/// More unanswered digests than a live link ever has.
const DIGESTS_REMEMBERED: usize = 64;

/// All links of this gateway, by worker incarnation.
pub(crate) struct Fabric {
    gateway: NodeId,
    directory: Arc<Directory>,
    workers: Mutex<BTreeMap<NodeId, Worker>>,
}

impl Fabric {
    pub(crate) fn new(gateway: NodeId, directory: Arc<Directory>) -> Self {
        Self {
            gateway,
            directory,
            workers: Mutex::default(),
        }
    }

    fn with<R>(&self, f: impl FnOnce(&mut BTreeMap<NodeId, Worker>) -> R) -> R {
        f(&mut self.workers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A worker's link is up.
    pub(crate) fn up(&self, worker: NodeId, link: Link<ToWorker>) {
        let fresh = Worker {
            link,
            legs: BTreeMap::new(),
            digests: BTreeMap::new(),
        };
        self.with(|workers| workers.insert(worker, fresh));
    }

    /// Where each worker's link leads, and its figures.
    pub(crate) fn links(&self) -> Vec<(NodeId, SocketAddr, LinkStats)> {
        let figures = |(node, worker): (&NodeId, &Worker)| (*node, worker.link.remote(), worker.link.stats());
        self.with(|workers| workers.iter().map(figures).collect())
    }

    /// A worker's link is gone: every room with a leg there hears that the worker is lost, which is proof (the worker drops
    /// everything of ours when the link ends). Before that, `tell` is told of the latest attempt of each.
    pub(crate) fn down(&self, worker: NodeId, tell: impl Fn(RoomKey)) {
        let legs = self
            .with(|workers| workers.remove(&worker))
            .map(|worker| worker.legs)
            .unwrap_or_default();
        // In order: of each room the latest generation stays.
        let latest: BTreeMap<u64, RoomKey> = legs.keys().map(|key| (key.seq, *key)).collect();
        for (seq, key) in latest {
            tell(key);
            self.directory
                .deliver(seq, Mail::Input(room::Input::WorkerLost { worker }));
        }
    }

    /// Sends a frame about an attempt, opening or closing the leg as the frame says. A worker that is gone, or whose queue is full,
    /// is reported to the room as lost.
    ///
    /// # Errors
    /// Why the frame cannot be sent, if that lies in the frame; the room is told that nothing is held.
    pub(crate) fn send(&self, to: NodeId, attempt: Attempt, frame: &ToWorker) -> Result<(), String> {
        let key = convert::room_key(attempt);
        let sent = self.with(|workers| {
            let worker = workers.get_mut(&to)?;
            match frame {
                ToWorker::Reserve { until, .. } | ToWorker::Prefill { until, .. } => {
                    worker.open(key, *until);
                }
                ToWorker::Allow { until: more, .. } => {
                    let stage = worker.legs.get_mut(&key).map(|leg| &mut leg.stage);
                    if let Some(Stage::Open { until }) = stage {
                        *until = (*until).max(*more);
                    }
                }
                ToWorker::Close { .. } | ToWorker::Release { .. } => {
                    worker
                        .legs
                        .entry(key)
                        .and_modify(|leg| leg.stage = Stage::Closing);
                }
                _ => {}
            }
            Some(
                worker
                    .link
                    .send(frame)
                    .map_err(|error| (error, worker.link.clone())),
            )
        });
        match sent {
            Some(Ok(())) => {}
            // Nothing was sent, so nothing is held, and nothing was lost.
            Some(Err((error @ SendError::Invalid(_), _))) => {
                self.proven(to, key);
                self.directory.news(to, key, News::Closed);
                return Err(error.to_string());
            }
            // It says so through its own event, which reports all of its rooms. It may be delivering its last frames: it is let be.
            Some(Err((SendError::Down, _))) => {}
            Some(Err((error @ SendError::Full { .. }, link))) => link.close(error.to_string()),
            None => {
                self.directory
                    .deliver(key.seq, Mail::Input(room::Input::WorkerLost { worker: to }));
            }
        }
        Ok(())
    }

    /// Asks a worker to keep what it has of a room for its trace. One that does not know how to is not asked.
    pub(crate) fn keep_trace(&self, worker: NodeId, seq: u64) {
        self.with(|workers| {
            if let Some(worker) = workers.get(&worker) {
                // To one of an older version it cannot be sent; and a trace is no reason to end a link.
                let _ = worker.link.send(&ToWorker::KeepTrace { seq });
            }
        });
    }

    /// Sends a worker what an operator wants of it.
    ///
    /// # Errors
    /// If it is not linked, does not know orders, or does not read.
    pub(crate) fn order(&self, worker: NodeId, n: u64, order: Order) -> Result<(), OrderError> {
        let sent = self.with(|workers| {
            let worker = workers.get(&worker)?;
            Some(worker.link.send(&ToWorker::Order { n, order }))
        });
        match sent {
            Some(Ok(())) => Ok(()),
            Some(Err(SendError::Invalid(EncodeError::TooNew { .. }))) => Err(OrderError::TooOld),
            Some(Err(error @ SendError::Invalid(_))) => Err(OrderError::Refused(error.to_string())),
            Some(Err(SendError::Down | SendError::Full { .. })) | None => Err(OrderError::Unlinked),
        }
    }

    /// Queues heartbeat `n` with the digest, behind everything sent so far.
    pub(crate) fn beat(&self, worker: NodeId, n: u64) {
        self.with(|workers| {
            let Some(worker) = workers.get_mut(&worker) else {
                return;
            };
            let asked = worker.legs.iter().map(|(key, leg)| (*key, leg.stage));
            worker.digests.insert(n, asked.collect());
            while worker.digests.len() > DIGESTS_REMEMBERED {
                worker.digests.pop_first();
            }
            let kept = |(key, leg): (&RoomKey, &Leg)| match leg.stage {
                Stage::Open { until } => Some(Kept { key: *key, until }),
                Stage::Closing => None,
            };
            let open = worker.legs.iter().filter_map(kept).collect();
            match worker.link.send(&ToWorker::Heartbeat { n, open }) {
                Ok(()) | Err(SendError::Down) => {}
                Err(error) => worker.link.close(error.to_string()),
            }
        });
    }

    /// Tells every worker that this gateway leaves: they give back all that they hold for it.
    pub(crate) fn goodbye(&self, reason: &str) {
        let reason = reason.to_owned();
        let goodbye = ToWorker::Goodbye { reason };
        self.with(|workers| {
            for worker in workers.values() {
                // One that cannot be told sees the link end.
                let _ = worker.link.send(&goodbye);
            }
        });
    }

    /// The worker's answer to heartbeat `n`: what it still holds. A leg that was there when the digest was taken and is not held is
    /// proven closed, or lost; one that was told to close and is held shows that the worker is alive and at it.
    pub(crate) fn digest_answered(&self, worker: NodeId, n: u64, held: &BTreeSet<RoomKey>) {
        let news: Vec<(RoomKey, News)> = self.with(|workers| {
            let Some(worker) = workers.get_mut(&worker) else {
                return Vec::new();
            };
            let asked = worker.digests.remove(&n).unwrap_or_default();
            worker.digests.retain(|older, _| *older > n);
            let mut news = Vec::new();
            for (key, asked) in asked {
                let Some(leg) = worker.legs.get(&key).copied() else {
                    continue;
                };
                match held.contains(&key) {
                    false if !planted!(UnknownRoomIgnored) => {
                        worker.legs.remove(&key);
                        news.push((key, leg.proven(asked)));
                    }
                    true if leg.stage == Stage::Closing => news.push((key, News::Held)),
                    _ => {}
                }
            }
            news
        });
        for (key, news) in news {
            self.directory.news(worker, key, news);
        }
    }

    /// The worker says that its stay is over. The leg is not, before there is proof.
    pub(crate) fn over(&self, worker: NodeId, key: RoomKey) {
        self.with(|workers| {
            if let Some(leg) = workers
                .get_mut(&worker)
                .and_then(|worker| worker.legs.get_mut(&key))
            {
                leg.over = true;
            }
        });
    }

    /// Whether the worker may hold something of this attempt.
    pub(crate) fn has_leg(&self, worker: NodeId, key: RoomKey) -> bool {
        self.with(|workers| {
            let worker = workers.get(&worker);
            worker.is_some_and(|worker| worker.legs.contains_key(&key))
        })
    }

    /// The worker holds nothing of this attempt any more.
    pub(crate) fn proven(&self, worker: NodeId, key: RoomKey) {
        self.with(|workers| workers.get_mut(&worker).map(|worker| worker.legs.remove(&key)));
    }

    /// Gives up on a worker that does not prove its blocks returned.
    pub(crate) fn fence(&self, worker: NodeId, why: &str) {
        let link = self.with(|workers| workers.get(&worker).map(|worker| worker.link.clone()));
        if let Some(link) = link {
            link.close(why);
        }
    }

    /// Everything that may still be held for a room: what a successor of its dead owner must drain.
    pub(crate) fn legs(&self, room: RoomId) -> Vec<(NodeId, Generation)> {
        self.with(|workers| {
            let mut legs = Vec::new();
            for (node, worker) in workers.iter() {
                let all = RoomKey {
                    seq: room.seq,
                    generation: 0,
                }..=RoomKey {
                    seq: room.seq,
                    generation: u32::MAX,
                };
                legs.extend(
                    worker
                        .legs
                        .range(all)
                        .map(|(key, _)| (*node, Generation(key.generation))),
                );
            }
            legs
        })
    }

    /// How many legs there are, at all workers.
    pub(crate) fn open_legs(&self) -> usize {
        self.with(|workers| workers.values().map(|worker| worker.legs.len()).sum())
    }

    /// This gateway's name.
    pub(crate) fn gateway(&self) -> NodeId {
        self.gateway
    }
}
