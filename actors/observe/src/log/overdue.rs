//! Stays whose proof is late, again and again: how often that was said, so that it is not said each time.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ::room::{Attempt, NodeId};

/// Stays that are remembered. Of one that is forgotten it is said anew.
const MOST: usize = 1_024;

/// How often the proof of each was late.
#[derive(Debug, Default)]
pub(super) struct Overdue(Mutex<BTreeMap<(NodeId, Attempt), u32>>);

impl Overdue {
    fn times(&self) -> MutexGuard<'_, BTreeMap<(NodeId, Attempt), u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The proof is late once more. Gives how often it was by now.
    pub(super) fn again(&self, worker: NodeId, attempt: Attempt) -> u32 {
        let mut all = self.times();
        let times = all.entry((worker, attempt)).or_default();
        *times = times.saturating_add(1);
        let times = *times;
        if all.len() > MOST {
            all.pop_first();
        }
        times
    }

    /// Nothing of the stay is left.
    pub(super) fn over(&self, worker: NodeId, attempt: Attempt) {
        self.times().remove(&(worker, attempt));
    }
}

/// Whether what has happened so often is worth a line: when the number has doubled.
pub(super) fn is_told(times: u32) -> bool {
    times.is_power_of_two()
}

#[cfg(test)]
mod tests {
    use ::room::{Attempt, Generation, NodeId, RoomId};

    use super::{MOST, Overdue, is_told};

    const WORKER: NodeId = NodeId(1);

    fn attempt(seq: u64) -> Attempt {
        Attempt {
            room: RoomId {
                gateway: NodeId(9),
                seq,
            },
            generation: Generation::FIRST,
        }
    }

    #[test]
    fn each_stay_is_counted_by_itself_and_anew_after_its_end() {
        let overdue = Overdue::default();
        let times = |seq| overdue.again(WORKER, attempt(seq));
        assert_eq!([times(1), times(1), times(2), times(1)], [1, 2, 1, 3]);
        overdue.over(WORKER, attempt(1));
        assert_eq!([times(1), times(2)], [1, 2]);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let overdue = Overdue::default();
        for seq in 0..MOST as u64 + 10 {
            overdue.again(WORKER, attempt(seq));
        }
        assert_eq!(overdue.times().len(), MOST);
    }

    #[test]
    fn lines_become_fewer() {
        let told: Vec<u32> = (1..=20).filter(|times| is_told(*times)).collect();
        assert_eq!(told, [1, 2, 4, 8, 16]);
    }
}
