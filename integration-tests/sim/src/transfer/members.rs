//! Who takes part.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use kv::{
    Account, EventSink, KvError, KvEvent, KvMemory, Offer, ReadError, ReadId, SourceAddress, TransferKey,
    Withdrawal,
};

use super::{
    faults::Death,
    flow::{Answer, FlowId},
    queue::What,
    world::World,
};
use crate::random::{Random, stream};

const SCHEME: &str = "sim:";
/// What [`kv::ReadStats`] calls this transfer.
pub(super) const TRANSPORT: &str = "simulated";

/// Where a node stands. It keeps its place when it is restarted; paths and faults go by places.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub(crate) struct Place(pub u32);

/// One incarnation at a place.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Debug)]
pub(super) struct MemberId {
    pub(super) place: Place,
    pub(super) incarnation: u32,
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.place.0, self.incarnation)
    }
}

impl MemberId {
    pub(super) fn address(self) -> SourceAddress {
        SourceAddress(format!("{SCHEME}{self}").into_bytes())
    }

    pub(super) fn parse(address: &SourceAddress) -> Result<Self, KvError> {
        let numbers = || {
            let text = std::str::from_utf8(&address.0).ok()?.strip_prefix(SCHEME)?;
            let (place, incarnation) = text.split_once('.')?;
            Some(Self {
                place: Place(place.parse().ok()?),
                incarnation: incarnation.parse().ok()?,
            })
        };
        numbers()
            .ok_or_else(|| KvError::BadAddress(format!("{address:?}, must be {SCHEME}<place>.<incarnation>")))
    }
}

/// One incarnation's side, while it lives.
pub(super) struct Member {
    pub(super) memory: Arc<dyn KvMemory>,
    pub(super) sink: EventSink,
    pub(super) account: Account,
    pub(super) rng: Random,
    pub(super) reads: BTreeMap<ReadId, FlowId>,
    pub(super) frozen: bool,
    /// What the owner has offered and not withdrawn, with the capability: what the account should go by.
    pub(super) standing: BTreeMap<TransferKey, u128>,
    /// Offers that a fault has withdrawn and the owner has not: their end is not told.
    pub(super) withdrawn_early: BTreeSet<TransferKey>,
}

impl World {
    /// A new incarnation at `place`.
    pub(super) fn join(&mut self, place: Place, memory: Arc<dyn KvMemory>, sink: EventSink) -> MemberId {
        let last = self.incarnations.entry(place).or_default();
        *last += 1;
        let id = MemberId {
            place,
            incarnation: *last,
        };
        let member = Member {
            account: Account::new(memory.blocks(), TRANSPORT),
            memory,
            sink,
            rng: stream(self.seed, &format!("kv {id}")),
            reads: BTreeMap::new(),
            frozen: false,
            standing: BTreeMap::new(),
            withdrawn_early: BTreeSet::new(),
        };
        self.members.insert(id, member);
        id
    }

    /// The orderly end of a transfer that was dropped: all it owes is told, and its peers' endpoints fail.
    pub(super) fn leave(&mut self, id: MemberId) {
        let Some(mut member) = self.members.remove(&id) else {
            return;
        };
        member.account.stop();
        for key in member.account.offers.unpin_all() {
            if !member.withdrawn_early.contains(&key) {
                self.tell(&member.sink, KvEvent::Withdrawn { key });
            }
        }
        for id in member.account.open_reads() {
            let result = Err(ReadError::Local("the transfer has stopped".into()));
            member.account.end(id, &result);
            self.tell(&member.sink, KvEvent::ReadEnded { id, result });
        }
        self.dead(id, Death::Crash);
    }

    /// Its thread dies: as its orderly end, and its owner is told that it is down.
    pub(super) fn break_down(&mut self, id: MemberId) {
        let Some(sink) = self.members.get(&id).map(|member| member.sink.clone()) else {
            return;
        };
        self.leave(id);
        let why = "a simulated panic of its thread".into();
        self.tell(&sink, KvEvent::Down { why });
    }

    /// The end without a word: nothing is told, and its memory is never touched again.
    pub(super) fn kill(&mut self, id: MemberId, death: Death) {
        if self.members.remove(&id).is_some() {
            self.dead(id, death);
        }
    }

    /// What a dead member leaves behind at the other ends.
    fn dead(&mut self, id: MemberId, death: Death) {
        self.deaths.insert(id, death);
        let heard = (death == Death::Crash).then(|| self.now + self.config.error_delay);
        let ids: Vec<_> = self.flows.keys().copied().collect();
        for flow_id in ids {
            let Some(flow) = self.flows.get_mut(&flow_id) else {
                continue;
            };
            if flow.reader == id {
                flow.reading = None;
            }
            if flow.source == id {
                flow.answer = Answer::Over;
            }
            let (was_reader, was_source) = (flow.reader == id, flow.source == id);
            if let Some(at) = heard {
                if was_reader {
                    self.queue.push(at, flow_id, What::ReaderGone);
                }
                if was_source {
                    self.queue
                        .push(at, flow_id, What::SourceGone("connection reset by its crash"));
                }
            }
            self.reap(flow_id);
        }
        self.paths.retain(|&(from, to), _| from != id && to != id);
    }

    /// The owner offers blocks.
    pub(super) fn offer(&mut self, id: MemberId, offer: Offer) -> Result<(), KvError> {
        let member = self.members.get_mut(&id).ok_or(KvError::Stopped)?;
        let (key, capability) = (offer.key, offer.capability);
        member.account.offers.insert(offer)?;
        member.standing.insert(key, capability);
        Ok(())
    }

    /// The owner ends an offer.
    pub(super) fn withdraw(&mut self, id: MemberId, key: TransferKey) {
        let Some(member) = self.members.get_mut(&id) else {
            return;
        };
        member.withdrawn_early.remove(&key);
        member.standing.remove(&key);
        if member.account.offers.withdraw(key) == Withdrawal::Done {
            let sink = member.sink.clone();
            self.tell(&sink, KvEvent::Withdrawn { key });
        }
    }

    /// Takes the pin of one answer off.
    pub(super) fn unpin(&mut self, id: MemberId, key: TransferKey) {
        let Some(member) = self.members.get_mut(&id) else {
            return;
        };
        if member.account.offers.unpin(key) && !member.withdrawn_early.remove(&key) {
            let sink = member.sink.clone();
            self.tell(&sink, KvEvent::Withdrawn { key });
        }
    }
}
