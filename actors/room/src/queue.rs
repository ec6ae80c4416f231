//! The rooms that wait at the desk: in which order they are looked at, and who makes room in a full queue.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::ops::Bound;

use crate::admission::Waiting;
use crate::command::{Bid, Priority};
use crate::fair::{Clocks, Share, Tenant};
use crate::id::{Attempt, NodeId, RoomId};
use crate::policy::Hints;
use crate::time::Time;

/// A place in the queue. Of one priority and one tenant, the least goes first.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Debug)]
pub(crate) struct Place {
    urgency: Reverse<Priority>,
    tenant: Tenant,
    arrived: Time,
    room: RoomId,
}

impl Place {
    pub(crate) fn room(self) -> RoomId {
        self.room
    }
}

/// A room, and what it costs its tenant to be granted: nothing, if that was paid with an earlier attempt. Such a one waits for no turn of its
/// tenant's either.
#[derive(Debug)]
struct Entry {
    waiting: Waiting,
    tokens: u32,
}

/// What a tenant has in the queue.
#[derive(Copy, Clone, Debug)]
struct Holding {
    rooms: usize,
    weight: u16,
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    entries: BTreeMap<Place, Entry>,
    places: BTreeMap<RoomId, Place>,
    tenants: BTreeMap<Tenant, Holding>,
    clocks: Clocks,
    /// How many answers have begun.
    begun: usize,
}

impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn begun(&self) -> usize {
        self.begun
    }

    /// All, in no order that matters.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Waiting> {
        self.entries.values().map(|entry| &entry.waiting)
    }

    pub(crate) fn of(&self, room: RoomId) -> Option<&Waiting> {
        let entry = self.entries.get(self.places.get(&room)?)?;
        Some(&entry.waiting)
    }

    /// A room that is not here comes in.
    pub(crate) fn enter(&mut self, bid: Bid, hints: Hints, tokens: u32) {
        let (share, room) = (bid.share, bid.attempt.room);
        let place = Place {
            urgency: Reverse(bid.priority),
            tenant: share.tenant,
            arrived: bid.arrived,
            room,
        };
        self.begun += usize::from(bid.begun);
        let holding = self.tenants.entry(share.tenant).or_insert(Holding {
            rooms: 0,
            weight: share.weight,
        });
        holding.rooms += 1;
        holding.weight = share.weight;
        self.places.insert(room, place);
        let waiting = Waiting {
            bid,
            hints,
            passed: 0,
        };
        self.entries.insert(place, Entry { waiting, tokens });
    }

    /// A room goes, whatever becomes of it.
    pub(crate) fn leave(&mut self, room: RoomId) -> Option<Waiting> {
        let place = self.places.remove(&room)?;
        let Entry { waiting, .. } = self.entries.remove(&place)?;
        self.begun -= usize::from(waiting.bid.begun);
        if let Some(holding) = self.tenants.get_mut(&place.tenant) {
            holding.rooms -= 1;
            if holding.rooms == 0 {
                self.tenants.remove(&place.tenant);
            }
        }
        if self.is_empty() {
            self.clocks.rest();
        }
        Some(waiting)
    }

    /// A room goes because it is granted: its tenant pays.
    pub(crate) fn take(&mut self, place: Place) -> Option<Waiting> {
        let entry = self.entries.get(&place)?;
        let (share, tokens) = (entry.waiting.bid.share, entry.tokens);
        self.clocks.granted(share, tokens, self.tenants.keys().copied());
        self.leave(place.room)
    }

    /// These were looked at, and another one was granted.
    pub(crate) fn pass_by(&mut self, passed: &[Place]) {
        for place in passed {
            if let Some(Entry { waiting, .. }) = self.entries.get_mut(place) {
                waiting.passed = waiting.passed.saturating_add(1);
            }
        }
    }

    /// Makes room for one of this share: the last room of whoever has most here by its weight goes, if that is still more than the other
    /// would have. One whose client reads its answer already stays.
    pub(crate) fn oust_for(&mut self, share: Share) -> Option<Attempt> {
        let own = self.tenants.get(&share.tenant).map_or(0, |holding| holding.rooms);
        // As fractions, each by its weight: a / b > c / d.
        let more = |rooms: usize, weight: u16, than: (usize, u16)| {
            rooms as u128 * u128::from(than.1.max(1)) > than.0 as u128 * u128::from(weight.max(1))
        };
        let mut most: Option<(Tenant, Holding)> = None;
        for (tenant, holding) in &self.tenants {
            let greater =
                most.is_none_or(|(_, most)| more(holding.rooms, holding.weight, (most.rooms, most.weight)));
            if greater {
                most = Some((*tenant, *holding));
            }
        }
        let (tenant, holding) = most?;
        if tenant == share.tenant || !more(holding.rooms, holding.weight, (own + 1, share.weight)) {
            return None;
        }
        let its = |(place, entry): &(&Place, &Entry)| place.tenant == tenant && !entry.waiting.bid.begun;
        let (last, _) = self.entries.iter().rev().find(its)?;
        let room = last.room;
        self.leave(room).map(|waiting| waiting.bid.attempt)
    }

    /// All, in the order in which they are to be looked at: by priority, then by turns of the tenants, then by arrival.
    pub(crate) fn turns(&self) -> Turns<'_> {
        Turns {
            queue: self,
            rest: self.entries.first_key_value().map(|(place, _)| place.urgency),
            heads: BTreeSet::new(),
            tails: BTreeMap::new(),
        }
    }
}

/// The first room of a tenant that was not looked at yet; the least is next.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd)]
struct Head {
    clock: u64,
    arrived: Time,
    place: Place,
}

/// Walks through the queue. What a tenant would be granted on the way counts for its later rooms.
pub(crate) struct Turns<'a> {
    queue: &'a Queue,
    /// The priority that comes next; none after the last.
    rest: Option<Reverse<Priority>>,
    heads: BTreeSet<Head>,
    /// What is behind each head, and the clock there.
    tails: BTreeMap<Tenant, Tail<'a>>,
}

struct Tail<'a> {
    clock: u64,
    rooms: btree_map::Range<'a, Place, Entry>,
}

impl<'a> Turns<'a> {
    /// Begins with a priority: with the first room of each tenant that has one of it.
    fn begin(&mut self, urgency: Reverse<Priority>) {
        let queue = self.queue;
        self.tails.clear();
        let mut from = least(urgency, Tenant(0));
        while let Some((place, _)) = queue.entries.range(from..).next() {
            if place.urgency != urgency {
                break;
            }
            let (tenant, last) = (place.tenant, greatest(urgency, place.tenant));
            let tail = Tail {
                clock: queue.clocks.of(tenant),
                rooms: queue.entries.range(*place..=last),
            };
            self.tails.insert(tenant, tail);
            self.next_of(tenant);
            from = match tenant.0.checked_add(1) {
                Some(next) => least(urgency, Tenant(next)),
                None => break,
            };
        }
        let last = greatest(urgency, Tenant(u64::MAX));
        let after = (Bound::Excluded(last), Bound::Unbounded);
        let next = queue.entries.range(after).next();
        self.rest = next.map(|(place, _)| place.urgency);
    }

    /// Makes the next room of a tenant its head.
    fn next_of(&mut self, tenant: Tenant) {
        let Some(tail) = self.tails.get_mut(&tenant) else {
            return;
        };
        let Some((place, entry)) = tail.rooms.next() else {
            return;
        };
        let clock = match entry.tokens {
            0 => self.queue.clocks.now(),
            _ => tail.clock,
        };
        self.heads.insert(Head {
            clock,
            arrived: place.arrived,
            place: *place,
        });
        let cost = entry.waiting.bid.share.cost(entry.tokens);
        tail.clock = tail.clock.saturating_add(cost);
    }
}

impl<'a> Iterator for Turns<'a> {
    type Item = (Place, &'a Waiting);

    fn next(&mut self) -> Option<Self::Item> {
        while self.heads.is_empty() {
            let urgency = self.rest?;
            self.begin(urgency);
        }
        let Head { place, .. } = self.heads.pop_first()?;
        self.next_of(place.tenant);
        let entry = self.queue.entries.get(&place)?;
        Some((place, &entry.waiting))
    }
}

fn least(urgency: Reverse<Priority>, tenant: Tenant) -> Place {
    Place {
        urgency,
        tenant,
        arrived: Time { micros: 0 },
        room: RoomId {
            gateway: NodeId(0),
            seq: 0,
        },
    }
}

fn greatest(urgency: Reverse<Priority>, tenant: Tenant) -> Place {
    Place {
        urgency,
        tenant,
        arrived: Time { micros: u64::MAX },
        room: RoomId {
            gateway: NodeId(u64::MAX),
            seq: u64::MAX,
        },
    }
}
