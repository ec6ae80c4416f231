//! What is remembered of attempts that are gone, so that a late message about one opens nothing.

use std::collections::{BTreeMap, VecDeque};

use crate::id::{Attempt, Generation, RoomId};

/// The newest generation that was ever leased here, for the most recent rooms. Bounded: the oldest room is forgotten
/// first, and a message so late that its room is forgotten opens a lease that the next digest closes.
#[derive(Clone, Debug)]
pub(super) struct Tombstones {
    newest: BTreeMap<RoomId, Generation>,
    order: VecDeque<RoomId>,
    limit: usize,
}

impl Tombstones {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            newest: BTreeMap::new(),
            order: VecDeque::new(),
            limit: limit.max(1),
        }
    }

    pub(super) fn remember(&mut self, attempt: Attempt) {
        if let Some(newest) = self.newest.get_mut(&attempt.room) {
            *newest = attempt.generation.max(*newest);
            return;
        }
        if self.order.len() >= self.limit
            && let Some(oldest) = self.order.pop_front()
        {
            self.newest.remove(&oldest);
        }
        self.order.push_back(attempt.room);
        self.newest.insert(attempt.room, attempt.generation);
    }

    /// Whether this generation of the room, or a later one, was already here.
    pub(super) fn outdates(&self, attempt: Attempt) -> bool {
        let newest = self.newest.get(&attempt.room);
        newest.is_some_and(|newest| attempt.generation <= *newest) && !planted!(TombstoneMissing)
    }
}
