//! Policies: which of the workers with credit takes a room.
//!
//! Without one the desk takes the least loaded (`placement`), which needs to know nothing but credit. A [`Policy`] may
//! also look at where a prompt's prefix is ([`PrefixIndex`]), at how fast each worker is ([`Pace`]), and at when the first
//! token must be there. It chooses among what fits and is not avoided: credit is not its business.

mod pace;
mod plain;
mod time;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::command::Credit;
use crate::credit::Role;
use crate::id::{Attempt, BlockHash, NodeId};
use crate::index::PrefixIndex;
use crate::input::Route;
use crate::time::Time;

pub use pace::Pace;
pub use plain::{LongestPrefix, RoundRobin};
pub use time::{ByTime, Weights};

/// What the one who asks for credit knows beyond counts. Without it a room is placed all the same.
#[derive(Clone, Eq, PartialEq, Debug, Default)]
pub struct Hints {
    /// Names of the prompt's full blocks, in order.
    pub hashes: Arc<[BlockHash]>,
    /// When the first token is of no use any more.
    pub first_token_by: Option<Time>,
}

/// A waiting attempt, as a policy sees it.
#[derive(Copy, Clone, Debug)]
pub struct Asked<'a> {
    /// Which.
    pub attempt: Attempt,
    /// Positions to compute.
    pub positions: u32,
    /// Positions at most, the answer included.
    pub max_positions: u32,
    /// What else is known of it.
    pub hints: &'a Hints,
    /// Who has which prefix.
    pub index: &'a PrefixIndex,
}

impl Asked<'_> {
    /// How many leading blocks of the prompt each worker has; only those that have one.
    #[must_use]
    pub fn overlaps(&self) -> BTreeMap<NodeId, u32> {
        self.index.overlaps(&self.hints.hashes)
    }
}

/// A worker that has credit for a part of what is asked.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct Candidate {
    /// Which.
    pub node: NodeId,
    /// What it is for.
    pub role: Role,
    /// Positions a block holds.
    pub block_tokens: u32,
    /// It can compute the prompt.
    pub computes: bool,
    /// It can give the answer.
    pub answers: bool,
    /// Prefills that may still be started there.
    pub prefills: u32,
    /// Slots that are free.
    pub slots: u32,
    /// Blocks that may still be promised.
    pub blocks: u32,
}

/// What a policy says of a waiting attempt.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Choice {
    /// It goes there.
    Take(Route),
    /// It waits.
    Wait,
    /// It cannot be served in time, whatever becomes free: it is told so at once.
    Refuse,
}

impl From<Option<Route>> for Choice {
    fn from(route: Option<Route>) -> Self {
        route.map_or(Self::Wait, Self::Take)
    }
}

/// A way to choose. Told of everything that is promised and given back; what it keeps of it is its own.
pub trait Policy: fmt::Debug + Send {
    /// What becomes of an attempt, given all that has credit for some part of it, in order of nodes.
    fn choose(&self, now: Time, asked: &Asked<'_>, candidates: &[Candidate]) -> Choice;

    /// Time has come this far. Before every search, and so right after what changed.
    fn look(&mut self, _now: Time) {}

    /// The attempt was promised what it needs along the route, whose prefill worker has blocks of so many positions.
    fn promised(&mut self, now: Time, asked: &Asked<'_>, route: Route, block_tokens: u32);

    /// Credit came back.
    fn given_back(&mut self, _attempt: Attempt, _node: NodeId, _credit: Credit) {}

    /// A worker says how fast it is.
    fn paced(&mut self, _node: NodeId, _pace: Pace) {}

    /// A worker's link is over.
    fn worker_down(&mut self, _node: NodeId) {}
}

/// The candidates that compute prompts for others.
fn computing(candidates: &[Candidate]) -> impl Iterator<Item = &Candidate> {
    candidates
        .iter()
        .filter(|c| c.role == Role::Prefill && c.computes)
}

/// The candidates that give answers.
fn answering(candidates: &[Candidate]) -> impl Iterator<Item = &Candidate> {
    candidates.iter().filter(|c| c.role == Role::Decode && c.answers)
}

/// The candidates that do both under one lease, because that is what they are for.
fn mixed(candidates: &[Candidate]) -> impl Iterator<Item = &Candidate> {
    let both = |c: &&Candidate| c.computes && c.answers;
    candidates.iter().filter(|c| c.role == Role::Mixed).filter(both)
}

/// A pair where there is one, else one that does both.
fn pair_or_mixed(
    prefill: Option<&Candidate>,
    decode: Option<&Candidate>,
    mixed: Option<&Candidate>,
) -> Option<Route> {
    let (prefill, decode) = prefill.zip(decode).or(mixed.zip(mixed))?;
    Some(Route {
        prefill: prefill.node,
        decode: decode.node,
    })
}
