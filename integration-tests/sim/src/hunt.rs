//! Bugs planted in the product on purpose: how many seeds it takes to find each.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use planted::Bug;
use serde::Serialize;

use crate::many::threads;
use crate::plan::Spans;
use crate::run::run;

/// What came of looking for one bug.
#[derive(Clone, Debug, Serialize)]
pub struct Hunted {
    /// Its name.
    pub bug: &'static str,
    /// For each first seed, how many seeds it took; none if it was not found.
    pub seeds: Vec<Option<u64>>,
    /// The middle of these, where those that were not found come last.
    pub median: Option<u64>,
    /// The invariants that did not hold where it was found.
    pub found_by: BTreeSet<&'static str>,
}

impl Hunted {
    /// Whether it was found from every first seed.
    #[must_use]
    pub fn is_found(&self) -> bool {
        self.seeds.iter().all(Option::is_some)
    }
}

/// How many seeds it took from the first, and what did not hold then.
type Found = Option<(u64, BTreeSet<&'static str>)>;

/// Looks for each of the bugs from each of the first seeds on, with `most` seeds at most. `each` hears of every one that is done.
pub fn hunt(bugs: &[Bug], firsts: &[u64], most: u64, spans: Spans, each: impl Fn(&Hunted)) -> Vec<Hunted> {
    let of = |bug: &Bug| {
        let hunted = hunt_one(*bug, firsts, most, spans);
        each(&hunted);
        hunted
    };
    bugs.iter().map(of).collect()
}

fn hunt_one(bug: Bug, firsts: &[u64], most: u64, spans: Spans) -> Hunted {
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<Found>> = Mutex::new(vec![None; firsts.len()]);
    thread::scope(|scope| {
        for _ in 0..threads().min(firsts.len()) {
            scope.spawn(|| {
                while let Some((at, first)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    firsts.get(at).map(|first| (at, *first))
                } {
                    let one = look(bug, first, most, spans);
                    found.lock().unwrap_or_else(PoisonError::into_inner)[at] = one;
                }
            });
        }
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let seeds: Vec<Option<u64>> = found
        .iter()
        .map(|one| one.as_ref().map(|(seeds, _)| *seeds))
        .collect();
    let mut sorted = seeds.clone();
    sorted.sort_by_key(|seeds| seeds.unwrap_or(u64::MAX));
    Hunted {
        bug: bug.name(),
        median: sorted.get(sorted.len() / 2).copied().flatten(),
        seeds,
        found_by: found.into_iter().flatten().flat_map(|(_, by)| by).collect(),
    }
}

/// Plants it in this thread and runs seeds until one does not hold.
fn look(bug: Bug, first: u64, most: u64, spans: Spans) -> Found {
    let _planted = planted::plant(Some(bug));
    (first..first + most).find_map(|seed| {
        let violations = run(seed, spans, false).violations;
        let by: BTreeSet<&'static str> = violations.iter().map(|violation| violation.invariant).collect();
        (!by.is_empty()).then(|| (seed - first + 1, by))
    })
}
