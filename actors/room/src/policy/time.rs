//! The policy that weighs everything in one unit: the time that a choice costs.
//!
//! ```text
//!   at prefill    what is queued there + what is left to compute          until the first token
//!                 + what is left to compute, again                        others come after it
//!   at decode     reading the KV that is not there
//!                 + answer × what each position adds to a step × (context there + own × answers there)
//!                                                                         its own steps, and what it does to others'
//!   both at one   as at prefill, nothing to read, and each answer there stands still while the prompt is computed
//! ```
//!
//! A prefix that is somewhere is worth what it saves, and no more: as soon as its worker has more queued than that, another
//! one is faster. Short prompts are computed where they are answered, when moving their KV costs more than the answers
//! there lose. Whoever cannot have its first token in time is refused at once, so that nothing is computed for nobody.
//!
//! What is queued is known from what was promised here; what other gateways have promised is not.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

use crate::command::Credit;
use crate::credit::Role;
use crate::id::{Attempt, NodeId};
use crate::input::Route;
use crate::policy::{Asked, Candidate, Choice, Pace, Policy, answering, computing};
use crate::time::{Span, Time};

/// What the policy cannot measure.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Weights {
    /// Tokens that an answer is taken to have, if it may have so many.
    pub answer_tokens: u32,
    /// What a microsecond of a prefill worker's time is worth, in microseconds of whoever comes after.
    pub others: f64,
    /// How much the work that a worker was given of late counts among choices that are else alike.
    pub lately: f64,
    /// Over which time that is forgotten by half.
    pub lately_half: Span,
    /// Whether decode workers take prompts too.
    pub decode_computes: bool,
}

impl Default for Weights {
    fn default() -> Self {
        Self {
            answer_tokens: 256,
            others: 1.0,
            lately: 0.005,
            lately_half: Span::from_millis(60_000),
            decode_computes: true,
        }
    }
}

/// Chooses what costs the least time.
#[derive(Clone, Debug, Default)]
pub struct ByTime {
    weights: Weights,
    workers: BTreeMap<NodeId, Load>,
}

/// What a worker has to do, as far as it was given it here.
#[derive(Clone, Debug, Default)]
struct Load {
    pace: Pace,
    /// Prompts in order, and what each is expected to take, in microseconds.
    prompts: VecDeque<(Attempt, f64)>,
    /// Since when the first of them is computed; none until the next look after the one before it left.
    since: Option<Time>,
    /// Answers, and the positions of each.
    answers: BTreeMap<Attempt, u32>,
    context: u64,
    /// Work given of late, in microseconds, as of then.
    lately: (f64, Time),
}

/// A way to serve it.
#[derive(Copy, Clone, Debug)]
struct Way {
    route: Route,
    /// Microseconds from now to the first token.
    first: f64,
    cost: f64,
}

/// A part of a way.
#[derive(Copy, Clone, Debug)]
struct Part {
    node: NodeId,
    first: f64,
    cost: f64,
}

impl ByTime {
    /// With these weights, and nothing promised yet.
    #[must_use]
    pub fn new(weights: Weights) -> Self {
        Self {
            weights,
            workers: BTreeMap::new(),
        }
    }

    /// Everything that could be done.
    fn ways(&self, now: Time, asked: &Asked<'_>, candidates: &[Candidate]) -> Vec<Way> {
        let overlaps = asked.overlaps();
        let left = |c: &Candidate| left_of(asked, c.block_tokens, overlaps.get(&c.node).copied());
        let prefill = |c: &Candidate| self.prefill(now, c.node, left(c));
        let decode = |c: &Candidate| self.decode(asked, c.node, left(c));
        let both = |c: &&Candidate| {
            let takes = c.role == Role::Mixed || (c.role == Role::Decode && self.weights.decode_computes);
            takes && c.computes && c.answers
        };
        let mut ways: Vec<Way> = candidates
            .iter()
            .filter(both)
            .map(|c| self.both(now, asked, c.node, left(c)))
            .collect();
        if let Some(decode) = least(answering(candidates).map(decode)) {
            ways.extend(computing(candidates).map(prefill).map(|prefill| Way {
                route: Route {
                    prefill: prefill.node,
                    decode: decode.node,
                },
                first: prefill.first,
                cost: prefill.cost + decode.cost,
            }));
        }
        ways
    }

    fn prefill(&self, now: Time, node: NodeId, left: u32) -> Part {
        let work = self.work_us(node, left);
        let load = self.workers.get(&node);
        let first = load.map_or(0.0, |load| load.queued_us(now)) + work;
        let lately = load.map_or(0.0, |load| load.lately_us(now, self.weights.lately_half));
        let cost = first + self.weights.others * work + self.weights.lately * lately;
        Part { node, first, cost }
    }

    fn decode(&self, asked: &Asked<'_>, node: NodeId, left: u32) -> Part {
        let Some(load) = self.workers.get(&node) else {
            return Part {
                node,
                first: 0.0,
                cost: 0.0,
            };
        };
        let own = u64::from(asked.positions);
        let beside = load.answers.len() as u64;
        let answer = asked.max_positions.saturating_sub(asked.positions);
        let tokens = f64::from(answer.min(self.weights.answer_tokens));
        let others = load.pace.step_us_per_position() * real(own * beside);
        let step = load.pace.step_us(load.context + own) + others;
        Part {
            node,
            first: 0.0,
            cost: load.pace.pull_us(left) + tokens * step,
        }
    }

    fn both(&self, now: Time, asked: &Asked<'_>, node: NodeId, left: u32) -> Way {
        let prefill = self.prefill(now, node, left);
        let answers = self.workers.get(&node).map_or(0, |load| load.answers.len());
        let stalled = self.work_us(node, left) * real(answers as u64);
        let decode = self.decode(asked, node, 0);
        Way {
            route: Route {
                prefill: node,
                decode: node,
            },
            first: prefill.first,
            cost: prefill.cost + stalled + decode.cost,
        }
    }

    /// What so many positions of a prompt take there; as elsewhere, as long as it has computed none.
    fn work_us(&self, node: NodeId, left: u32) -> f64 {
        let own = self.workers.get(&node).map(|load| &load.pace);
        let own = own.filter(|pace| pace.has_computed());
        let others = || self.workers.values().map(|load| &load.pace);
        let pace = own.or_else(|| others().find(|pace| pace.has_computed()));
        pace.map_or(0.0, |pace| pace.prefill_us(left))
    }

    /// What it takes at least, at any worker, however free.
    fn least_us(&self, asked: &Asked<'_>, block_tokens: u32) -> f64 {
        let overlaps = asked.overlaps();
        let alone = |node: &NodeId| {
            let left = left_of(asked, block_tokens, overlaps.get(node).copied());
            self.work_us(*node, left)
        };
        self.workers.keys().map(alone).fold(f64::INFINITY, f64::min)
    }
}

impl Policy for ByTime {
    fn choose(&self, now: Time, asked: &Asked<'_>, candidates: &[Candidate]) -> Choice {
        let ways = self.ways(now, asked, candidates);
        let best = |ways: &mut dyn Iterator<Item = &Way>| {
            let best = ways.min_by(|a, b| order((a.cost, a.route), (b.cost, b.route)));
            best.map(|way| way.route)
        };
        let Some(by) = asked.hints.first_token_by else {
            return best(&mut ways.iter()).into();
        };
        let within = real((by - now).micros);
        if let Some(route) = best(&mut ways.iter().filter(|way| way.first <= within)) {
            return Choice::Take(route);
        }
        // Nobody is free, and even a worker that is would be too late; or those that are free are, and time only passes.
        let block_tokens = candidates.first().map_or(1, |c| c.block_tokens);
        let is_late = !ways.is_empty() || by <= now || self.least_us(asked, block_tokens) > within;
        if is_late && self.workers.values().any(|load| load.pace.has_computed()) {
            return Choice::Refuse;
        }
        Choice::Wait
    }

    fn look(&mut self, now: Time) {
        for load in self.workers.values_mut() {
            if load.since.is_none() && !load.prompts.is_empty() {
                load.since = Some(now);
            }
        }
    }

    fn promised(&mut self, now: Time, asked: &Asked<'_>, route: Route, block_tokens: u32) {
        let overlap = asked.overlaps().get(&route.prefill).copied();
        let work = self.work_us(route.prefill, left_of(asked, block_tokens, overlap));
        let half = self.weights.lately_half;
        let load = self.workers.entry(route.prefill).or_default();
        load.prompts.push_back((asked.attempt, work));
        load.since = load.since.or(Some(now));
        load.lately = (load.lately_us(now, half) + work, now);
        let load = self.workers.entry(route.decode).or_default();
        if load.answers.insert(asked.attempt, asked.positions).is_none() {
            load.context += u64::from(asked.positions);
        }
    }

    fn given_back(&mut self, attempt: Attempt, node: NodeId, credit: Credit) {
        let Some(load) = self.workers.get_mut(&node) else {
            return;
        };
        if let Some(at) = load.prompts.iter().position(|(whose, _)| *whose == attempt) {
            load.prompts.remove(at);
            if at == 0 {
                load.since = None;
            }
        }
        if credit == Credit::All
            && let Some(positions) = load.answers.remove(&attempt)
        {
            load.context -= u64::from(positions);
        }
    }

    fn paced(&mut self, node: NodeId, pace: Pace) {
        self.workers.entry(node).or_default().pace = pace;
    }

    fn worker_down(&mut self, node: NodeId) {
        self.workers.remove(&node);
    }
}

impl Load {
    /// What is left of the prompts here, if the first has been computed since then as expected.
    fn queued_us(&self, now: Time) -> f64 {
        let queued: f64 = self.prompts.iter().map(|(_, work)| work).sum();
        let first = self.prompts.front().map_or(0.0, |(_, work)| *work);
        let done = self.since.map_or(0.0, |since| real((now - since).micros));
        queued - first.min(done)
    }

    fn lately_us(&self, now: Time, half: Span) -> f64 {
        let (work, at) = self.lately;
        work * (-real((now - at).micros) / real(half.micros.max(1))).exp2()
    }
}

/// Positions of the prompt that are left to compute: the last one always is, since it gives the next token.
fn left_of(asked: &Asked<'_>, block_tokens: u32, overlap: Option<u32>) -> u32 {
    let here = overlap.unwrap_or(0).saturating_mul(block_tokens);
    asked.positions.saturating_sub(here).max(1)
}

fn least(parts: impl Iterator<Item = Part>) -> Option<Part> {
    parts.min_by(|a, b| order((a.cost, a.node), (b.cost, b.node)))
}

/// By cost; by name among what costs the same.
fn order<T: Ord + Copy>(a: (f64, T), b: (f64, T)) -> Ordering {
    a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1))
}

/// Counts here are far below 2^53.
#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn real(n: u64) -> f64 {
    n as f64
}
