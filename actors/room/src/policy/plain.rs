//! The policies that are known everywhere, to compare with.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::id::NodeId;
use crate::input::Route;
use crate::policy::{Asked, Candidate, Choice, Policy, answering, computing, mixed, pair_or_mixed};
use crate::time::Time;

/// One worker of each role after the other, whatever it has to do.
#[derive(Clone, Debug, Default)]
pub struct RoundRobin {
    last_prefill: Option<NodeId>,
    last_decode: Option<NodeId>,
}

impl Policy for RoundRobin {
    fn choose(&self, _now: Time, _asked: &Asked<'_>, candidates: &[Candidate]) -> Choice {
        let prefill = after(computing(candidates), self.last_prefill);
        let decode = after(answering(candidates), self.last_decode);
        pair_or_mixed(prefill, decode, after(mixed(candidates), self.last_prefill)).into()
    }

    fn promised(&mut self, _now: Time, _asked: &Asked<'_>, route: Route, _block_tokens: u32) {
        self.last_prefill = Some(route.prefill);
        self.last_decode = Some(route.decode);
    }
}

/// The first in order after the last one taken, or the first of all.
fn after<'a>(candidates: impl Iterator<Item = &'a Candidate>, last: Option<NodeId>) -> Option<&'a Candidate> {
    candidates.min_by_key(|c| (Some(c.node) <= last, c.node))
}

/// Who has most of the prompt already; among equals the least loaded. What everybody asks with is at whoever was asked first.
#[derive(Clone, Debug, Default)]
pub struct LongestPrefix;

impl Policy for LongestPrefix {
    fn choose(&self, _now: Time, asked: &Asked<'_>, candidates: &[Candidate]) -> Choice {
        let overlaps = asked.overlaps();
        let prefill = longest(computing(candidates), &overlaps, |c| c.prefills);
        let decode = longest(answering(candidates), &overlaps, |c| c.slots);
        let both = longest(mixed(candidates), &overlaps, |c| c.slots);
        pair_or_mixed(prefill, decode, both).into()
    }

    fn promised(&mut self, _now: Time, _asked: &Asked<'_>, _route: Route, _block_tokens: u32) {}
}

fn longest<'a>(
    candidates: impl Iterator<Item = &'a Candidate>,
    overlaps: &BTreeMap<NodeId, u32>,
    free: impl Fn(&Candidate) -> u32,
) -> Option<&'a Candidate> {
    candidates.max_by_key(|c| {
        let overlap = overlaps.get(&c.node).copied().unwrap_or(0);
        (overlap, free(c), c.blocks, Reverse(c.node))
    })
}
