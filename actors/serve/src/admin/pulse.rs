//! What the last minutes were like: a sample a second of what was opened, ended, delivered and moved, and of how long it took. A listener of
//! the node's recorder; bounded, whatever happens.

mod histogram;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use observe::{Listener, Moved, RoomEvent, RoomWhat, SharedFacts, Text, Told};
use room::{Happening, NodeId, Outcome, Span, Time};
use serde::{Deserialize, Serialize};

use histogram::Histogram;

/// Seconds remembered.
const SECONDS: usize = 300;

/// Pairs of workers remembered, between which KV was moved; of more, the ones that moved longest ago are forgotten.
const PAIRS: usize = 256;

/// The window that figures of "now" are made of, in seconds.
const WINDOW_S: usize = 60;

/// One second.
#[derive(Clone, Debug, Default)]
struct Second {
    opened: u32,
    completed: u32,
    aborted: u32,
    failed: u32,
    expired: u32,
    tokens: u32,
    bytes: u64,
    /// Rooms open at its end.
    open: u32,
    first_token: Histogram,
    between: Histogram,
}

/// KV that one worker pulled from another.
#[derive(Clone, Debug)]
struct Pair {
    bytes: u64,
    descriptors: u64,
    pulls: u64,
    transport: Text,
    last: Time,
}

#[derive(Debug, Default)]
struct Parts {
    /// The second that is being counted, since the clock's origin.
    second: u64,
    present: Second,
    past: VecDeque<Second>,
    open: u32,
    pairs: BTreeMap<(NodeId, NodeId), Pair>,
}

/// The listener.
#[derive(Debug, Default)]
pub(crate) struct Pulse(Mutex<Parts>);

/// Quantiles, in milliseconds; none where there was nothing.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Quantiles {
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p90_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
}

/// Figures of the last minute, or of the time since the start if that is shorter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LastMinute {
    /// Seconds that it has.
    pub(crate) seconds: u64,
    pub(crate) opened: u64,
    pub(crate) completed: u64,
    pub(crate) aborted: u64,
    pub(crate) failed: u64,
    pub(crate) expired: u64,
    pub(crate) tokens_per_s: f64,
    pub(crate) opened_per_s: f64,
    pub(crate) kv_bytes_per_s: f64,
    /// From a request's arrival to its first token.
    pub(crate) first_token: Quantiles,
    /// Between two batches of tokens of one answer.
    pub(crate) between_tokens: Quantiles,
}

/// Whole seconds one after the other, a column each: what plots are drawn from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Series {
    /// The first of them, since the clock's origin.
    pub(crate) from_s: u64,
    pub(crate) opened: Vec<u32>,
    pub(crate) completed: Vec<u32>,
    /// Failed or expired.
    pub(crate) wrong: Vec<u32>,
    pub(crate) tokens: Vec<u32>,
    pub(crate) open: Vec<u32>,
    pub(crate) first_p50_ms: Vec<Option<f64>>,
    pub(crate) first_p99_ms: Vec<Option<f64>>,
    pub(crate) between_p50_ms: Vec<Option<f64>>,
    pub(crate) between_p99_ms: Vec<Option<f64>>,
}

/// KV moved between two workers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Moves {
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    pub(crate) bytes: u64,
    pub(crate) descriptors: u64,
    pub(crate) pulls: u64,
    pub(crate) transport: Text,
    pub(crate) last: Time,
}

impl Parts {
    /// Closes the seconds that are over.
    fn roll(&mut self, now: Time) {
        let second = now.micros / 1_000_000;
        // After a long silence nothing of before is left.
        let first = second.saturating_sub(SECONDS as u64 + 1);
        if self.second < first {
            self.past.clear();
            self.second = first;
            self.present = Second::default();
        }
        while self.second < second {
            let mut over = std::mem::take(&mut self.present);
            over.open = self.open;
            if self.past.len() >= SECONDS {
                self.past.pop_front();
            }
            self.past.push_back(over);
            self.second += 1;
        }
    }

    fn happened(&mut self, event: &RoomEvent, facts: &SharedFacts, gap: Option<Span>) {
        self.roll(event.at);
        let present = &mut self.present;
        match &event.what {
            RoomWhat::Opened(_) => {
                present.opened += 1;
                self.open = self.open.saturating_add(1);
            }
            RoomWhat::Room(Happening::Delivered { from, count }) => {
                present.tokens = present.tokens.saturating_add(*count);
                if *from == 0 {
                    present.first_token.add(event.at - facts.arrived());
                } else if let Some(gap) = gap {
                    present.between.add(gap);
                }
            }
            RoomWhat::Moved(moved) => {
                present.bytes = present.bytes.saturating_add(moved.bytes);
                self.moved(moved, event.at);
            }
            RoomWhat::Answered { outcome, .. } => match outcome {
                Outcome::Completed(_) => present.completed += 1,
                Outcome::Aborted(_) => present.aborted += 1,
                Outcome::Failed(_) => present.failed += 1,
                Outcome::Expired(_) => present.expired += 1,
            },
            RoomWhat::Ended { .. } => self.open = self.open.saturating_sub(1),
            RoomWhat::Room(_)
            | RoomWhat::Cached { .. }
            | RoomWhat::NotSent { .. }
            | RoomWhat::WorkerSaid { .. }
            | RoomWhat::TimerFired { .. }
            | RoomWhat::OwnerSilent { .. }
            | RoomWhat::OwnerDied { .. }
            | RoomWhat::Buried { .. } => {}
        }
    }

    fn moved(&mut self, moved: &Moved, at: Time) {
        let key = (moved.from, moved.to);
        if self.pairs.len() >= PAIRS
            && !self.pairs.contains_key(&key)
            && let Some(oldest) = self
                .pairs
                .iter()
                .min_by_key(|(_, pair)| pair.last)
                .map(|(key, _)| *key)
        {
            self.pairs.remove(&oldest);
        }
        let pair = self.pairs.entry(key).or_insert_with(|| Pair {
            bytes: 0,
            descriptors: 0,
            pulls: 0,
            transport: Text::clone(&moved.transport),
            last: at,
        });
        pair.bytes = pair.bytes.saturating_add(moved.bytes);
        pair.descriptors = pair.descriptors.saturating_add(moved.descriptors.into());
        pair.pulls += 1;
        pair.transport = Text::clone(&moved.transport);
        pair.last = at;
    }
}

impl Listener for Pulse {
    fn told(&self, told: &Told<'_>) {
        match told {
            Told::Room {
                event, facts, gap, ..
            } => self.parts().happened(event, facts, *gap),
            Told::Stay { .. } | Told::Node(_) => {}
        }
    }
}

impl Pulse {
    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last minute's figures; the second that is not over does not count.
    pub(crate) fn last_minute(&self, now: Time) -> LastMinute {
        let mut parts = self.parts();
        parts.roll(now);
        let window = WINDOW_S.min(parts.past.len());
        let mut sum = LastMinute {
            seconds: window as u64,
            ..LastMinute::default()
        };
        let (mut first, mut between) = (Histogram::default(), Histogram::default());
        let (mut tokens, mut bytes) = (0_u64, 0_u64);
        for second in parts.past.iter().rev().take(window) {
            sum.opened += u64::from(second.opened);
            sum.completed += u64::from(second.completed);
            sum.aborted += u64::from(second.aborted);
            sum.failed += u64::from(second.failed);
            sum.expired += u64::from(second.expired);
            tokens += u64::from(second.tokens);
            bytes = bytes.saturating_add(second.bytes);
            first.merge(&second.first_token);
            between.merge(&second.between);
        }
        let per_second = |count: u64| count as f64 / window.max(1) as f64;
        sum.tokens_per_s = per_second(tokens);
        sum.opened_per_s = per_second(sum.opened);
        sum.kv_bytes_per_s = per_second(bytes);
        sum.first_token = first.quantiles();
        sum.between_tokens = between.quantiles();
        sum
    }

    /// The whole seconds from `from_s` on, as far as they are remembered.
    pub(crate) fn series(&self, now: Time, from_s: u64) -> Series {
        let mut parts = self.parts();
        parts.roll(now);
        let oldest = parts.second - parts.past.len() as u64;
        let from_s = from_s.clamp(oldest, parts.second);
        let mut series = Series {
            from_s,
            ..Series::default()
        };
        for second in parts
            .past
            .iter()
            .skip(usize::try_from(from_s - oldest).unwrap_or(usize::MAX))
        {
            series.opened.push(second.opened);
            series.completed.push(second.completed);
            series.wrong.push(second.failed + second.expired);
            series.tokens.push(second.tokens);
            series.open.push(second.open);
            let (first, between) = (second.first_token.quantiles(), second.between.quantiles());
            series.first_p50_ms.push(first.p50_ms);
            series.first_p99_ms.push(first.p99_ms);
            series.between_p50_ms.push(between.p50_ms);
            series.between_p99_ms.push(between.p99_ms);
        }
        series
    }

    /// Who pulled how much KV from whom.
    pub(crate) fn moves(&self) -> Vec<Moves> {
        let parts = self.parts();
        let moves = parts.pairs.iter().map(|((from, to), pair)| Moves {
            from: *from,
            to: *to,
            bytes: pair.bytes,
            descriptors: pair.descriptors,
            pulls: pair.pulls,
            transport: Text::clone(&pair.transport),
            last: pair.last,
        });
        moves.collect()
    }
}

#[cfg(test)]
mod tests;
