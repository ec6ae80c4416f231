//! Rooms of one request that are over while others of it are not: what a trace shows is the whole of a request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use room::RoomId;

use crate::history::RoomHistory;

/// The rooms that wait for others of their request, by its first. Every room ends, so nothing stays here; bounded all the same.
#[derive(Debug, Default)]
pub(crate) struct Families(Mutex<BTreeMap<RoomId, Vec<Arc<RoomHistory>>>>);

/// Requests whose rooms may wait at once.
const MOST: usize = 1_024;

impl Families {
    /// A room is over. Returns all rooms of its request, if it was the last of them; of very many such requests, of the oldest those that
    /// are over.
    pub(crate) fn room_over(&self, history: &Arc<RoomHistory>) -> Vec<Arc<RoomHistory>> {
        let facts = history.facts();
        if facts.of <= 1 {
            return vec![Arc::clone(history)];
        }
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rooms = waiting.entry(facts.first).or_default();
        rooms.push(Arc::clone(history));
        if rooms.len() >= facts.of as usize {
            return waiting.remove(&facts.first).unwrap_or_default();
        }
        if waiting.len() > MOST {
            return waiting.pop_first().map(|(_, rooms)| rooms).unwrap_or_default();
        }
        Vec::new()
    }
}
