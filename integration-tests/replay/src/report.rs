//! What is counted, and what it comes to.

use room::{Outcome, Time};
use serde::Serialize;

use crate::latency::Batch;
use crate::setup::{PolicyName, Setup};

/// What became of one request.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Record {
    /// When it came.
    pub arrival: Time,
    /// When its first token was at the gateway, and its last.
    pub tokens: Option<(Time, Time)>,
    /// How many it has.
    pub count: u32,
    /// How it ended.
    pub outcome: Option<Outcome>,
}

impl Record {
    pub(crate) fn new(arrival: Time) -> Self {
        Self {
            arrival,
            tokens: None,
            count: 0,
            outcome: None,
        }
    }

    pub(crate) fn delivered(&mut self, now: Time, count: u32) {
        let first = self.tokens.map_or(now, |(first, _)| first);
        self.tokens = Some((first, now));
        self.count += count;
    }

    /// Microseconds to the first token.
    #[must_use]
    pub fn first_us(&self) -> Option<u64> {
        self.tokens.map(|(first, _)| (first - self.arrival).micros)
    }

    /// Microseconds between two tokens, on average over the answer; nothing, if it has but one.
    #[must_use]
    pub fn between_us(&self) -> Option<u64> {
        let (first, last) = self.tokens?;
        Some((last - first).micros / u64::from(self.count.max(2) - 1))
    }

    fn is_whole(&self) -> bool {
        matches!(self.outcome, Some(Outcome::Completed(_)))
    }

    fn is_good(&self, setup: &Setup) -> bool {
        let in_time = |us: Option<u64>, most| us.is_some_and(|us| us <= most);
        self.is_whole()
            && in_time(self.first_us(), setup.first_token_us)
            && in_time(self.between_us(), setup.between_tokens_us)
    }
}

/// What a worker counts.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub(crate) struct Tally {
    /// Microseconds in steps.
    pub(crate) busy_us: u64,
    pub(crate) steps: u64,
    /// Tokens of prompts computed.
    pub(crate) computed: u64,
    /// Blocks of prompts that were started here, and those of them that were cached.
    pub(crate) blocks: u64,
    pub(crate) cached: u64,
    /// Prompts started here.
    pub(crate) prompts: u64,
    /// What cannot be: a sequence that the scheduler does not take, a step that it does not know.
    pub(crate) broken: u64,
}

impl Tally {
    pub(crate) fn ran(&mut self, batch: &Batch, micros: u64) {
        self.busy_us += micros;
        self.steps += 1;
        self.computed += u64::from(batch.prompt_tokens());
    }

    pub(crate) fn found(&mut self, positions: u32, computed: u32) {
        let blocks = |positions: u32| u64::from(positions.div_ceil(crate::trace::BLOCK_TOKENS));
        self.prompts += 1;
        self.blocks += blocks(positions);
        self.cached += blocks(computed);
    }
}

/// The figures of one replay.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// Who placed.
    pub policy: &'static str,
    /// How many times as fast as recorded requests came.
    pub speed: f64,
    /// Requests a second that came.
    pub offered: f64,
    /// Requests a second that were served in time: first token and distance of tokens.
    pub good: f64,
    /// The same as a share of all.
    pub good_share: f64,
    /// Shares that ended without an answer.
    pub refused_share: f64,
    /// Shares whose first token was late, or whose tokens were too far apart, among those answered.
    pub late_share: f64,
    /// See above.
    pub slow_share: f64,
    /// Of the blocks of prompts that were computed, the share that was cached where they were.
    pub hit: f64,
    /// Time in steps of the busiest prefill worker over that of the mean one; the same of decode workers.
    pub prefill_imbalance: f64,
    /// See above.
    pub decode_imbalance: f64,
    /// The mean prefill worker's share of time in steps.
    pub prefill_busy: f64,
    /// The mean decode worker's.
    pub decode_busy: f64,
    /// Share of prompts that were computed where they were answered.
    pub local: f64,
    /// Milliseconds to the first token: half, nine in ten and 99 in a hundred have it by then.
    pub first_ms: [f64; 3],
    /// Milliseconds between tokens.
    pub between_ms: [f64; 3],
    /// Attempts that were evicted or refused by a worker and tried again.
    pub retries: u64,
    /// Steps of all workers.
    pub steps: u64,
    /// Gaps in what was heard of caches.
    pub gaps: u64,
    /// How long the replay took, in seconds of this machine.
    pub took_s: f64,
}

impl Summary {
    pub(crate) fn of(setup: &Setup, speed: f64, run: &crate::world::Replayed, took_s: f64) -> Self {
        let records = &run.records;
        let all = records.len() as u64;
        let count = |test: &dyn Fn(&Record) -> bool| records.iter().filter(|r| test(r)).count() as u64;
        let share = |test: &dyn Fn(&Record) -> bool| ratio(count(test), all);
        let good_share = share(&|r| r.is_good(setup));
        let late = |us: Option<u64>, most| us.is_some_and(|us| us > most);
        let last = records.iter().map(|r| r.arrival.micros).max().unwrap_or(0).max(1);
        let offered = seconds(all * 1_000_000) / seconds(last);
        let spread = |of: fn(&Record) -> Option<u64>| {
            let whole = records.iter().filter(|r| r.is_whole());
            percentiles(whole.filter_map(of).collect())
        };
        let (prefill, decode) = run
            .tallies
            .split_at(usize::from(setup.prefill).min(run.tallies.len()));
        let sum = |of: fn(&Tally) -> u64| run.tallies.iter().map(of).sum::<u64>();
        let local: u64 = decode.iter().map(|t| t.prompts).sum();
        Self {
            policy: setup.policy.name(),
            speed,
            offered,
            good: offered * good_share,
            good_share,
            refused_share: share(&|r| !r.is_whole()),
            late_share: share(&|r| r.is_whole() && late(r.first_us(), setup.first_token_us)),
            slow_share: share(&|r| r.is_whole() && late(r.between_us(), setup.between_tokens_us)),
            hit: ratio(sum(|t| t.cached), sum(|t| t.blocks)),
            prefill_imbalance: imbalance(prefill),
            decode_imbalance: imbalance(decode),
            prefill_busy: busy(prefill, run.ended),
            decode_busy: busy(decode, run.ended),
            local: ratio(local, sum(|t| t.prompts)),
            first_ms: spread(Record::first_us),
            between_ms: spread(Record::between_us),
            retries: run.retries,
            steps: sum(|t| t.steps),
            gaps: run.gaps,
            took_s,
        }
    }

    /// Whether this is of that policy.
    #[must_use]
    pub fn is_of(&self, policy: PolicyName) -> bool {
        self.policy == policy.name()
    }
}

/// The greatest over the mean.
fn imbalance(tallies: &[Tally]) -> f64 {
    let most = tallies.iter().map(|t| t.busy_us).max().unwrap_or(0);
    let sum: u64 = tallies.iter().map(|t| t.busy_us).sum();
    ratio(most * tallies.len() as u64, sum)
}

fn busy(tallies: &[Tally], until: Time) -> f64 {
    let sum: u64 = tallies.iter().map(|t| t.busy_us).sum();
    ratio(sum, until.micros * tallies.len() as u64)
}

/// Half, nine in ten, 99 in a hundred, in milliseconds.
fn percentiles(mut micros: Vec<u64>) -> [f64; 3] {
    micros.sort_unstable();
    [50, 90, 99].map(|percent| {
        let at = (micros.len() * percent / 100).min(micros.len().saturating_sub(1));
        micros.get(at).map_or(0.0, |us| seconds(*us) * 1_000.0)
    })
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

/// A share; zero of nothing.
#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

#[cfg(test)]
mod tests {
    use room::{Finish, Outcome, Time};

    use super::{Record, percentiles};
    use crate::setup::{PolicyName, Setup};

    #[test]
    fn in_time_means_whole_soon_and_steady() {
        let setup = Setup::new(PolicyName::LeastLoaded);
        let at = |ms: u64| Time { micros: ms * 1_000 };
        let mut record = Record::new(at(1_000));
        record.delivered(at(2_900), 1);
        record.delivered(at(3_400), 20);
        record.outcome = Some(Outcome::Completed(Finish::Length));
        assert_eq!(
            (record.first_us(), record.between_us()),
            (Some(1_900_000), Some(25_000))
        );
        assert!(record.is_good(&setup));
        let mut slow = record;
        slow.delivered(at(3_500), 1);
        assert!(!slow.is_good(&setup));
        let mut late = record;
        late.arrival = at(800);
        assert!(!late.is_good(&setup));
        let mut half = record;
        half.outcome = None;
        assert!(!half.is_good(&setup));
    }

    #[test]
    fn percentiles_are_of_what_is_there() {
        assert_eq!(percentiles(Vec::new()), [0.0; 3]);
        assert_eq!(
            percentiles((1..=100).map(|ms| ms * 1_000).collect()),
            [51.0, 91.0, 100.0]
        );
    }
}
