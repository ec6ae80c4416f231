//! What a cache says of itself as it changes, for whoever keeps an index of it elsewhere.

use std::collections::VecDeque;

use crate::id::BlockHash;

/// One change of what a worker's pool holds the contents of.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct CacheChange {
    /// Its place among all changes of this worker's incarnation, counted from 0.
    pub seq: u64,
    /// The contents.
    pub hash: BlockHash,
    /// Whether they are here from now on, or from now on not.
    pub stored: bool,
}

/// The last changes that nobody has taken. Nothing waits for it: beyond its bound the oldest are dropped, and whoever
/// follows sees the gap in the numbers and asks for everything anew.
#[derive(Clone, Debug, Default)]
pub(super) struct Feed {
    next: u64,
    changes: VecDeque<CacheChange>,
    /// None are kept while it is zero.
    limit: usize,
}

impl Feed {
    /// Keeps so many from now on.
    pub(super) fn keep(&mut self, limit: usize) {
        self.limit = limit;
    }

    pub(super) fn push(&mut self, hash: BlockHash, stored: bool) {
        let seq = self.next;
        self.next += 1;
        if self.changes.len() >= self.limit {
            self.changes.pop_front();
        }
        if self.limit > 0 {
            self.changes.push_back(CacheChange { seq, hash, stored });
        }
    }

    pub(super) fn poll(&mut self) -> Option<CacheChange> {
        self.changes.pop_front()
    }

    /// The number that the next change will have.
    pub(super) fn next(&self) -> u64 {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(limit: usize, pushed: u128) -> (Vec<u64>, u64) {
        let mut feed = Feed::default();
        feed.keep(limit);
        for hash in 0..pushed {
            feed.push(BlockHash(hash), true);
        }
        let next = feed.next();
        let seqs = std::iter::from_fn(|| feed.poll()).map(|change| change.seq);
        (seqs.collect(), next)
    }

    #[test]
    fn the_last_are_kept_and_all_are_counted() {
        assert_eq!(kept(3, 2), (vec![0, 1], 2));
        assert_eq!(kept(3, 3), (vec![0, 1, 2], 3));
        assert_eq!(kept(3, 5), (vec![2, 3, 4], 5));
        assert_eq!(kept(0, 4), (vec![], 4));
    }
}
