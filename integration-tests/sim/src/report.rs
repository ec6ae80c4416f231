//! What came of a simulation, and how that is told.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use room::Outcome;

use crate::client::End;
use crate::evidence::Evidence;
use crate::invariant::{self, Violation};
use crate::panics::Panics;
use crate::plan::Spans;
use crate::trace::Trace;

/// What came of a simulation.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// How long it was to last.
    pub spans: Spans,
    /// Virtual time that passed.
    pub lasted: Duration,
    /// Requests asked.
    pub requests: usize,
    /// Rooms opened.
    pub rooms: usize,
    /// Answers by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// Faults injected, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// What the cluster said as it happened, by kind.
    pub heard: BTreeMap<&'static str, u64>,
    /// What did not hold.
    pub violations: Vec<Violation>,
    /// How long after the healing everything was back.
    pub quiet_after: Option<Duration>,
    /// How long the same requests took before the faults and after the healing.
    pub probed: (Duration, Duration),
    /// The trace's number.
    pub digest: u64,
    /// Events in the trace.
    pub events: u64,
}

/// Violations of one seed that are told.
const TOLD: usize = 5;

impl Report {
    pub(crate) fn of(seed: u64, evidence: Evidence, trace: &Trace) -> Self {
        let spans = evidence.plan.spans;
        let mut heard = BTreeMap::new();
        for (_, said) in &evidence.said {
            *heard.entry(said.name()).or_default() += 1;
        }
        Self {
            seed,
            spans,
            lasted: evidence.samples.last().map_or(Duration::ZERO, |last| last.at),
            requests: evidence.all().count(),
            rooms: evidence.all().map(|seen| seen.rooms.len()).sum(),
            outcomes: outcomes(&evidence),
            violations: invariant::check(&evidence),
            probed: (evidence.before.took, evidence.after.took),
            quiet_after: evidence.quiet.map(|quiet| quiet.saturating_sub(spans.faults)),
            faults: faults(evidence),
            heard,
            digest: trace.digest(),
            events: trace.events(),
        }
    }

    /// Of a simulation that came to no end: whatever panicked took its thread.
    pub(crate) fn of_panic(seed: u64, spans: Spans, panics: Panics) -> Self {
        let ended = "the simulation ended in a panic".to_owned();
        Self {
            seed,
            spans,
            lasted: Duration::ZERO,
            requests: 0,
            rooms: 0,
            outcomes: BTreeMap::new(),
            faults: BTreeMap::new(),
            heard: BTreeMap::new(),
            violations: panics
                .others
                .into_iter()
                .chain([ended])
                .map(Violation::of_liveness)
                .collect(),
            quiet_after: None,
            probed: (Duration::ZERO, Duration::ZERO),
            digest: 0,
            events: 0,
        }
    }

    /// What does not hold, behind the one line that reproduces it; none if everything does.
    #[must_use]
    pub fn broken(&self) -> Option<String> {
        if self.violations.is_empty() {
            return None;
        }
        let minutes = (self.spans.faults + self.spans.rest).as_secs() / 60;
        let mut text = format!("seed {0} fails: just sim {0} --minutes {minutes}", self.seed);
        for violation in self.violations.iter().take(TOLD) {
            // Writing to a String does not fail.
            let _ = write!(text, "\n    {violation}");
        }
        Some(text)
    }
}

/// Answers by outcome.
fn outcomes(evidence: &Evidence) -> BTreeMap<String, u64> {
    let mut outcomes = BTreeMap::new();
    for seen in evidence.all() {
        for answer in &seen.answers {
            let outcome = answer.outcome.map(|(_, outcome)| outcome);
            *outcomes.entry(label(outcome, &seen.end)).or_default() += 1;
        }
    }
    outcomes
}

fn label(outcome: Option<Outcome>, end: &End) -> String {
    match (outcome, end) {
        (Some(outcome), _) => format!("{outcome:?}"),
        (None, End::Left) => "the client left".to_owned(),
        (None, End::GatewayDied) => "the gateway died".to_owned(),
        (None, _) => "none".to_owned(),
    }
}

/// What was injected, and what clients did.
fn faults(evidence: Evidence) -> BTreeMap<&'static str, u64> {
    let mut faults = evidence.injected;
    let left = evidence.seen.iter().filter(|seen| seen.end == End::Left).count();
    let aborted = evidence.seen.iter().filter(|seen| seen.aborted.is_some()).count();
    let of_clients = [
        ("client leaves", left as u64),
        ("operator aborts", aborted as u64),
        ("owner panics", evidence.panics.injected),
    ];
    faults.extend(of_clients.into_iter().filter(|(_, count)| *count > 0));
    faults
}
