//! The stays at a worker and those that ended lately, with their histories: what a worker can be asked for, and what traces are made of.
//! Outlives the worker's incarnations; bounded.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use observe::{StayEvent, StayFacts, StayHistory, StayWhat};
use room::{Attempt, NodeId, Span};

use super::local::Figures;

/// How many ended stays are remembered: a gateway that wants one of them for a trace says so when its room is over, some heartbeats later. A
/// history has ten kilobytes at most, and two mostly.
const REMEMBERED: usize = 1_024;

#[derive(Debug)]
struct Open {
    history: StayHistory,
    /// Its owner wants it for a trace.
    wanted: bool,
}

#[derive(Debug, Default)]
struct Stays {
    open: BTreeMap<Attempt, Open>,
    ended: VecDeque<Arc<StayHistory>>,
}

/// The board.
#[derive(Debug, Default)]
pub(crate) struct StayBoard {
    stays: Mutex<Stays>,
    /// What the worker last said of itself.
    figures: Mutex<Option<Figures>>,
    /// Messages that the worker's actor has not looked at.
    mailbox: AtomicUsize,
    /// An incarnation of the worker is there.
    is_built: AtomicBool,
    /// An operator wants it to take no rooms.
    is_drained: AtomicBool,
}

/// What became of an event.
pub(super) struct Kept {
    /// What is fixed of the stay; none of an attempt that is not, or no longer, here.
    pub(super) facts: Option<Arc<StayFacts>>,
    /// For new tokens, how long after those before them they came.
    pub(super) gap: Option<Span>,
    /// The stay's history, if it is over and is to be traced.
    pub(super) traced: Option<Arc<StayHistory>>,
}

impl StayBoard {
    fn with<R>(&self, f: impl FnOnce(&mut Stays) -> R) -> R {
        f(&mut self.stays.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps what happened to a stay.
    pub(super) fn keep(&self, event: &StayEvent) -> Kept {
        self.with(|stays| {
            if let StayWhat::Opened(facts) = &event.what {
                let history = StayHistory::new(Arc::clone(facts));
                let wanted = facts.trace.is_some_and(|trace| trace.is_sampled());
                stays.open.insert(event.attempt, Open { history, wanted });
                return Kept::of(facts);
            }
            let Some(open) = stays.open.get_mut(&event.attempt) else {
                return Kept {
                    facts: None,
                    gap: None,
                    traced: None,
                };
            };
            let gap = open.history.push(event);
            let mut kept = Kept {
                gap,
                ..Kept::of(open.history.facts())
            };
            if open.history.ended().is_some()
                && let Some(open) = stays.open.remove(&event.attempt)
            {
                let history = stays.remember(open.history);
                kept.traced = open.wanted.then_some(history);
            }
            kept
        })
    }

    /// A gateway wants what is known of one of its rooms for a trace. Gives what is over; the rest is given when it is.
    pub(super) fn want(&self, gateway: NodeId, seq: u64) -> Vec<Arc<StayHistory>> {
        let is_of = |attempt: &Attempt| attempt.room.gateway == gateway && attempt.room.seq == seq;
        self.with(|stays| {
            for (attempt, open) in &mut stays.open {
                open.wanted |= is_of(attempt);
            }
            let ended = stays.ended.iter();
            ended
                .filter(|history| is_of(&history.facts().attempt))
                .cloned()
                .collect()
        })
    }

    /// What is not here any more is over, though its last step was lost.
    pub(super) fn retain(&self, is_here: impl Fn(Attempt) -> bool) {
        self.with(|stays| {
            for (attempt, open) in std::mem::take(&mut stays.open) {
                if is_here(attempt) {
                    stays.open.insert(attempt, open);
                } else {
                    stays.remember(open.history);
                }
            }
        });
    }

    /// An incarnation of the worker begins.
    pub(crate) fn begins(&self) {
        self.is_built.store(true, Ordering::Relaxed);
    }

    /// Whether there is one.
    pub(super) fn is_built(&self) -> bool {
        self.is_built.load(Ordering::Relaxed)
    }

    /// An operator wants the worker to take no rooms, or to take them again.
    pub(crate) fn drain(&self, drained: bool) {
        self.is_drained.store(drained, Ordering::Relaxed);
    }

    /// Whether it is to take none.
    pub(super) fn is_drained(&self) -> bool {
        self.is_drained.load(Ordering::Relaxed)
    }

    /// The worker's incarnation is over: so is what was there, without another word.
    pub(crate) fn over(&self) {
        self.is_built.store(false, Ordering::Relaxed);
        self.retain(|_| false);
        self.show(None);
        self.mailbox.store(0, Ordering::Relaxed);
    }

    /// What the worker says of itself, or that there is none.
    pub(super) fn show(&self, figures: Option<Figures>) {
        *self.figures.lock().unwrap_or_else(PoisonError::into_inner) = figures;
    }

    /// What it last said.
    pub(super) fn figures(&self) -> Option<Figures> {
        self.figures
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// A message is put into the worker's mailbox.
    pub(super) fn posted(&self) {
        self.mailbox.fetch_add(1, Ordering::Relaxed);
    }

    /// It is looked at.
    pub(super) fn taken(&self) {
        // What is posted to an incarnation that is over is never taken, and what it posted to itself not counted.
        let less = |posted: usize| Some(posted.saturating_sub(1));
        let _ = self
            .mailbox
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Messages that wait for the worker's actor.
    pub(crate) fn mailbox(&self) -> usize {
        self.mailbox.load(Ordering::Relaxed)
    }

    /// The stays that are here, by their attempts.
    pub(crate) fn open(&self) -> Vec<StayHistory> {
        self.with(|stays| stays.open.values().map(|open| open.history.clone()).collect())
    }

    /// Those that ended lately, oldest first.
    pub(crate) fn lately_ended(&self) -> Vec<Arc<StayHistory>> {
        self.with(|stays| stays.ended.iter().cloned().collect())
    }
}

impl Stays {
    fn remember(&mut self, history: StayHistory) -> Arc<StayHistory> {
        let history = Arc::new(history);
        if self.ended.len() >= REMEMBERED {
            self.ended.pop_front();
        }
        self.ended.push_back(Arc::clone(&history));
        history
    }
}

impl Kept {
    fn of(facts: &Arc<StayFacts>) -> Self {
        Self {
            facts: Some(Arc::clone(facts)),
            gap: None,
            traced: None,
        }
    }
}

#[cfg(test)]
mod tests;
