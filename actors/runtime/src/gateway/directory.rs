//! Which actor owns which room: where a worker's messages and grants are delivered.
//!
//! Messages do not go through the actor's mailbox one by one. Each request has an inbox that its actor empties at once; the mailbox
//! sees one [`RequestMessage::Wake`] however many messages came since. So a stream of tokens costs one wake a step at most.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use observe::{NodeEvent, NodeWhat, Recorder};
use ractor::ActorRef;
use room::{NodeId, RoomId};
use wire::RoomKey;

use super::request::RequestMessage;
use crate::clock::Clock;

/// Something for one room.
#[derive(Debug)]
pub(crate) enum Mail {
    /// A worker's message about an attempt.
    Worker { from: NodeId, frame: FromWorker },
    /// Anything else: an input as it stands.
    Input(room::Input),
}

/// A worker's message about one attempt, its link's worker known.
#[derive(Debug)]
pub(crate) struct FromWorker {
    /// The attempt's generation; whether it is current is the room's to decide.
    pub(crate) generation: u32,
    /// What happened.
    pub(crate) news: News,
}

/// What a worker says of an attempt.
#[derive(Debug)]
pub(crate) enum News {
    Reserved {
        cached_blocks: u32,
        /// The same in tokens.
        cached_tokens: u32,
    },
    Refused(room::Refusal),
    Progress {
        positions: u32,
    },
    Tokens {
        from: u32,
        tokens: Vec<wire::TokenOut>,
        finish: Option<room::Finish>,
    },
    Published(wire::Ticket),
    Pulled,
    Failed(room::AttemptError),
    Closed,
    Held,
    NotHeld,
}

/// More unread mail than any well-behaved set of workers can cause while an owner that hangs is given up. What comes on top is dropped:
/// to the room it is a message that was lost.
const INBOX_LIMIT: usize = 65_536;

/// Unread mail of one request.
#[derive(Debug)]
pub(crate) struct Inbox {
    actor: ActorRef<RequestMessage>,
    mail: Mutex<Vec<(usize, Mail)>>,
}

impl Inbox {
    pub(crate) fn new(actor: ActorRef<RequestMessage>) -> Arc<Self> {
        Arc::new(Self {
            actor,
            mail: Mutex::new(Vec::new()),
        })
    }

    /// Takes everything that came.
    pub(crate) fn take(&self) -> Vec<(usize, Mail)> {
        std::mem::take(&mut *self.mail.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn push(&self, index: usize, mail: Mail) -> Pushed {
        let waiting = {
            let mut unread = self.mail.lock().unwrap_or_else(PoisonError::into_inner);
            if unread.len() >= INBOX_LIMIT {
                return Pushed::Full;
            }
            unread.push((index, mail));
            unread.len()
        };
        // A dead actor's mail is its supervisor's business: it adopts the rooms.
        if waiting > 1 || self.actor.cast(RequestMessage::Wake).is_ok() {
            Pushed::Taken
        } else {
            Pushed::Dead
        }
    }

    fn unread(&self) -> usize {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// What became of mail.
#[derive(Copy, Clone, Eq, PartialEq)]
enum Pushed {
    /// Its owner gets it.
    Taken,
    /// Its owner does not read.
    Full,
    /// Its owner is dead.
    Dead,
}

/// All rooms of this gateway.
#[derive(Debug)]
pub(crate) struct Directory {
    rooms: Mutex<BTreeMap<u64, (Arc<Inbox>, usize)>>,
    recorder: Recorder,
    clock: Clock,
}

impl Directory {
    pub(crate) fn new(recorder: Recorder, clock: Clock) -> Self {
        Self {
            rooms: Mutex::default(),
            recorder,
            clock,
        }
    }

    fn with<R>(&self, f: impl FnOnce(&mut BTreeMap<u64, (Arc<Inbox>, usize)>) -> R) -> R {
        f(&mut self.rooms.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes `inbox` the place for mail of the room with this sequence number, known there as `index`.
    pub(crate) fn insert(&self, room: RoomId, inbox: &Arc<Inbox>, index: usize) {
        self.with(|rooms| rooms.insert(room.seq, (Arc::clone(inbox), index)));
    }

    /// Forgets a room.
    pub(crate) fn remove(&self, room: RoomId) {
        self.with(|rooms| rooms.remove(&room.seq));
    }

    /// Messages that no owner has read yet.
    pub(crate) fn unread(&self) -> usize {
        self.with(|rooms| {
            // A request's rooms share an inbox: it is counted with its first one.
            let first = rooms.values().filter(|(_, index)| *index == 0);
            first.map(|(inbox, _)| inbox.unread()).sum()
        })
    }

    /// How many rooms it knows.
    pub(crate) fn len(&self) -> usize {
        self.with(|rooms| rooms.len())
    }

    /// Delivers what a worker says of an attempt. A room that is gone has no use for it, and its worker hears so with the next digest.
    pub(crate) fn news(&self, from: NodeId, key: RoomKey, news: News) {
        let frame = FromWorker {
            generation: key.generation,
            news,
        };
        self.deliver(key.seq, Mail::Worker { from, frame });
    }

    /// Delivers; `false` when there is no such room (it ended: late messages change nothing).
    pub(crate) fn deliver(&self, seq: u64, mail: Mail) -> bool {
        let found = self.with(|rooms| rooms.get(&seq).cloned());
        let Some((inbox, index)) = found else {
            return false;
        };
        let pushed = inbox.push(index, mail);
        if pushed == Pushed::Full {
            let (at, what) = (self.clock.now(), NodeWhat::MailDropped { seq });
            self.recorder.node(&NodeEvent { at, what });
        }
        pushed == Pushed::Taken
    }
}
