//! A bounded list: of each kind of event the first so many, and the last so many.

use std::collections::VecDeque;

/// The events of one kind.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Ends<E> {
    most: usize,
    first: Vec<(u32, E)>,
    last: VecDeque<(u32, E)>,
    left_out: u32,
}

impl<E> Ends<E> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            first: Vec::new(),
            last: VecDeque::new(),
            left_out: 0,
        }
    }

    pub(super) fn push(&mut self, place: u32, event: E) {
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

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &(u32, E)> {
        self.first.iter().chain(&self.last)
    }
}

/// The events of a room or a stay that are kept.
#[derive(Clone, PartialEq, Debug)]
pub struct Kept<E> {
    milestones: Ends<E>,
    chunks: Ends<E>,
    repeats: Ends<E>,
    next: u32,
}

impl<E> Default for Kept<E> {
    fn default() -> Self {
        Self {
            milestones: Ends::new(Self::MILESTONES),
            chunks: Ends::new(Self::CHUNKS),
            repeats: Ends::new(Self::REPEATS),
            next: 0,
        }
    }
}

impl<E> Kept<E> {
    /// Events kept that decide something, or that there are few of.
    pub const MILESTONES: usize = 64;
    /// Chunks kept.
    pub const CHUNKS: usize = 32;
    /// Repetitions kept.
    pub const REPEATS: usize = 16;

    /// Keeps an event that decides something, or that a room has few of.
    pub(super) fn milestone(&mut self, event: E) {
        let place = self.place();
        self.milestones.push(place, event);
    }

    /// Keeps an event by which a prompt or an answer goes on: a long one has many.
    pub(super) fn chunk(&mut self, event: E) {
        let place = self.place();
        self.chunks.push(place, event);
    }

    /// Keeps an event that says once more what was said before.
    pub(super) fn repeat(&mut self, event: E) {
        let place = self.place();
        self.repeats.push(place, event);
    }

    fn place(&mut self) -> u32 {
        let place = self.next;
        self.next = place.saturating_add(1);
        place
    }

    /// Events left out.
    #[must_use]
    pub fn left_out(&self) -> u32 {
        [&self.milestones, &self.chunks, &self.repeats]
            .iter()
            .fold(0, |sum: u32, kind| sum.saturating_add(kind.left_out))
    }

    /// Those kept, in order.
    #[must_use]
    pub fn iter(&self) -> Entries<'_, E> {
        Entries(self.in_order().into_iter())
    }

    /// Those kept, in order, each with how many were left out just before it. The last of all is always kept.
    #[must_use]
    pub fn with_gaps(&self) -> Vec<(u32, &E)> {
        let mut all = Vec::new();
        let mut next = 0_u32;
        for (place, event) in self.in_order() {
            all.push((place.saturating_sub(next), event));
            next = place.saturating_add(1);
        }
        all
    }

    fn in_order(&self) -> Vec<&(u32, E)> {
        let kinds = [&self.milestones, &self.chunks, &self.repeats];
        let mut all: Vec<&(u32, E)> = kinds.into_iter().flat_map(|kind| kind.iter()).collect();
        all.sort_by_key(|(place, _)| *place);
        all
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
