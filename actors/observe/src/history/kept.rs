//! A bounded list: the first so many, and the last so many.

use std::collections::VecDeque;

/// One of a list's two halves.
#[derive(Clone, PartialEq, Debug)]
struct Ends<E> {
    most: usize,
    first: Vec<(u32, E)>,
    last: VecDeque<(u32, E)>,
    left_out: u32,
}

impl<E> Ends<E> {
    fn new(most: usize) -> Self {
        Self {
            most,
            first: Vec::new(),
            last: VecDeque::new(),
            left_out: 0,
        }
    }

    fn push(&mut self, place: u32, event: E) {
        let half = self.most / 2;
        if self.first.len() < half {
            return self.first.push((place, event));
        }
        if self.last.len() >= half {
            self.last.pop_front();
            self.left_out = self.left_out.saturating_add(1);
        }
        self.last.push_back((place, event));
    }

    fn iter(&self) -> impl Iterator<Item = &(u32, E)> {
        self.first.iter().chain(&self.last)
    }
}

/// The events of a room or a stay that are kept.
#[derive(Clone, PartialEq, Debug)]
pub struct Kept<E> {
    milestones: Ends<E>,
    chunks: Ends<E>,
    next: u32,
}

impl<E> Default for Kept<E> {
    fn default() -> Self {
        Self {
            milestones: Ends::new(Self::MILESTONES),
            chunks: Ends::new(Self::CHUNKS),
            next: 0,
        }
    }
}

impl<E> Kept<E> {
    /// Events kept, other than chunks.
    pub const MILESTONES: usize = 64;
    /// Chunks kept.
    pub const CHUNKS: usize = 32;

    /// Keeps an event that a room has few of.
    pub(super) fn milestone(&mut self, event: E) {
        self.milestones.push(self.next, event);
        self.next = self.next.saturating_add(1);
    }

    /// Keeps an event that a room may have many of.
    pub(super) fn chunk(&mut self, event: E) {
        self.chunks.push(self.next, event);
        self.next = self.next.saturating_add(1);
    }

    /// Events left out.
    #[must_use]
    pub fn left_out(&self) -> u32 {
        self.milestones.left_out.saturating_add(self.chunks.left_out)
    }

    /// Those kept, in order.
    #[must_use]
    pub fn iter(&self) -> Entries<'_, E> {
        let mut all: Vec<&(u32, E)> = self.milestones.iter().chain(self.chunks.iter()).collect();
        all.sort_by_key(|(place, _)| *place);
        Entries(all.into_iter())
    }
}

/// Events in order.
#[derive(Debug)]
pub struct Entries<'a, E>(std::vec::IntoIter<&'a (u32, E)>);

impl<'a, E> Iterator for Entries<'a, E> {
    type Item = &'a E;

    fn next(&mut self) -> Option<&'a E> {
        self.0.next().map(|(_, event)| event)
    }
}
