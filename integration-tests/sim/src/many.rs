//! Many seeds at a time, and what came of all of them.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde::Serialize;

use crate::plan::Spans;
use crate::report::Report;
use crate::run::run;

/// A seed that broke an invariant.
#[derive(Clone, Debug, Serialize)]
pub struct Broken {
    /// The seed.
    pub seed: u64,
    /// What did not hold; the first few.
    pub violations: Vec<String>,
}

/// What came of many seeds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Totals {
    /// How many.
    pub seeds: u64,
    /// Virtual time in all, in hours of one cluster.
    pub cluster_hours: f64,
    /// Requests asked.
    pub requests: u64,
    /// Rooms opened.
    pub rooms: u64,
    /// Answers by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// Faults injected, all kinds together.
    pub faults: u64,
    /// Faults injected, by kind.
    pub faults_by_kind: BTreeMap<&'static str, u64>,
    /// What the clusters said as it happened, by kind.
    pub heard: BTreeMap<&'static str, u64>,
    /// The longest time from the healing until everything was back, in milliseconds.
    pub slowest_rest_ms: u64,
    /// The seed that took it.
    pub slowest_rest_seed: u64,
    /// The most that the requests of a new cluster took longer when they were asked again after the healing, in milliseconds.
    pub slowest_again_ms: u64,
    /// The seed of which they were.
    pub slowest_again_seed: u64,
    /// Events in all traces.
    pub events: u64,
    /// Seeds that broke an invariant.
    pub broken: Vec<Broken>,
}

/// Violations of one seed that are kept.
const KEPT: usize = 8;

impl Totals {
    /// One more.
    pub fn add(&mut self, report: &Report) {
        self.seeds += 1;
        self.cluster_hours += report.lasted.as_secs_f64() / 3_600.0;
        self.requests += report.requests as u64;
        self.rooms += report.rooms as u64;
        self.events += report.events;
        for (outcome, count) in &report.outcomes {
            *self.outcomes.entry(outcome.clone()).or_default() += count;
        }
        for (kind, count) in &report.faults {
            self.faults += count;
            *self.faults_by_kind.entry(kind).or_default() += count;
        }
        for (kind, count) in &report.heard {
            *self.heard.entry(kind).or_default() += count;
        }
        let (before, after) = report.probed;
        let slower_ms = ms(after.saturating_sub(before));
        if slower_ms > self.slowest_again_ms {
            (self.slowest_again_ms, self.slowest_again_seed) = (slower_ms, report.seed);
        }
        let rest_ms = ms(report.quiet_after.unwrap_or_default());
        if rest_ms > self.slowest_rest_ms {
            (self.slowest_rest_ms, self.slowest_rest_seed) = (rest_ms, report.seed);
        }
        if !report.violations.is_empty() {
            let violations = report.violations.iter().take(KEPT).map(ToString::to_string);
            self.broken.push(Broken {
                seed: report.seed,
                violations: violations.collect(),
            });
        }
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// How many simulations this machine runs at a time.
pub(crate) fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Runs all of these seeds, each in one thread, as many at a time as the machine has processors; `each` hears of every one that is done.
pub fn run_many(seeds: Range<u64>, spans: Spans, each: impl Fn(&Report) + Sync) -> Totals {
    let next = AtomicU64::new(seeds.start);
    let totals = Mutex::new(Totals::default());
    thread::scope(|scope| {
        for _ in 0..threads() {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if !seeds.contains(&seed) {
                        return;
                    }
                    let report = run(seed, spans, false);
                    each(&report);
                    totals.lock().unwrap_or_else(PoisonError::into_inner).add(&report);
                }
            });
        }
    });
    let mut totals = totals.into_inner().unwrap_or_else(PoisonError::into_inner);
    totals.broken.sort_by_key(|broken| broken.seed);
    totals
}

/// Ten minutes, as most simulations last.
pub const TEN_MINUTES: Duration = Duration::from_secs(600);
