//! The supervisor's one table of timers, on a task that does no I/O.
//!
//! A room's deadline is armed here before anything about it is sent, so that a lost message of any kind becomes a
//! timeout. When one passes, the owner is asked (a message with the room's id); an owner that does not answer within
//! the grace is killed, and its rooms are adopted.
//!
//! ```text
//! armed ──deadline──▶ Ask ──answered: armed anew, or disarmed
//!                      └──grace──▶ Kill (and no longer in the table)
//! ```
//!
//! Owners move their deadlines with every message, and nearly always to a later time. The order is by what may be earlier than a deadline and
//! never is later, so that such a move does not touch it: a deadline that turns out not to have passed yet takes its place then.

use std::collections::{BTreeMap, BTreeSet};

use crate::time::{Span, Time};

/// Timers by key. At most one per key; a key is a room, or whatever a supervisor watches.
#[derive(Clone, Debug)]
pub struct WatchTable<K> {
    grace: Span,
    watched: BTreeMap<K, Watched>,
    order: BTreeSet<(Time, K)>,
}

#[derive(Copy, Clone, Debug)]
struct Watched {
    at: Time,
    /// Where it is in the order: not after `at`.
    place: Time,
    asked: bool,
}

/// What a passed deadline leads to.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Debug)]
pub enum Alarm<K> {
    /// Tell the owner that this deadline has passed. It answers by arming the next, or by disarming.
    Ask(K),
    /// The owner did not answer: kill it, and adopt what it owned.
    Kill(K),
}

impl<K: Copy + Ord> WatchTable<K> {
    /// An empty table; an owner has `grace` to answer.
    #[must_use]
    pub fn new(grace: Span) -> Self {
        Self {
            grace,
            watched: BTreeMap::new(),
            order: BTreeSet::new(),
        }
    }

    /// Arms the timer of `key`, or moves it. Counts as an answer.
    pub fn arm(&mut self, key: K, at: Time) {
        match self.watched.get_mut(&key) {
            Some(watched) if !watched.asked && watched.place <= at => watched.at = at,
            _ => {
                self.disarm(key);
                self.put(key, at, false);
            }
        }
    }

    /// Forgets `key`. Returns whether it was watched.
    pub fn disarm(&mut self, key: K) -> bool {
        match self.watched.remove(&key) {
            Some(watched) => self.order.remove(&(watched.place, key)),
            None => false,
        }
    }

    /// The next alarm due by `now`.
    pub fn poll_alarm(&mut self, now: Time) -> Option<Alarm<K>> {
        loop {
            let &(place, key) = self.order.first().filter(|(place, _)| *place <= now)?;
            self.order.remove(&(place, key));
            let watched = self.watched.remove(&key)?;
            if watched.at > now {
                self.put(key, watched.at, watched.asked);
                continue;
            }
            if watched.asked {
                return Some(Alarm::Kill(key));
            }
            // Counted from when it is asked, not from the deadline: this task may have been late itself.
            self.put(key, now + self.grace.max(Span::from_millis(1)), true);
            return Some(Alarm::Ask(key));
        }
    }

    /// When to ask for an alarm next: none is due before that.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Whether `key` is in the table.
    #[must_use]
    pub fn is_watched(&self, key: K) -> bool {
        self.watched.contains_key(&key)
    }

    /// How many keys are watched.
    #[must_use]
    pub fn len(&self) -> usize {
        self.watched.len()
    }

    /// Whether nothing is watched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.watched.is_empty()
    }

    fn put(&mut self, key: K, at: Time, asked: bool) {
        let place = at;
        self.watched.insert(key, Watched { at, place, asked });
        self.order.insert((place, key));
    }
}
