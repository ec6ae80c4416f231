//! What a step shall compute.

use super::running::Order;
use crate::sequence::SequenceKey;

/// A step, as planned. Made by [`Scheduler::next_step`], given back to [`Scheduler::complete`].
///
/// [`Scheduler::next_step`]: super::Scheduler::next_step
/// [`Scheduler::complete`]: super::Scheduler::complete
#[derive(Clone, PartialEq, Debug)]
pub struct StepPlan {
    pub(super) parts: Vec<Part>,
}

/// One sequence's part of a planned step.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Part {
    /// The sequence.
    pub key: SequenceKey,
    /// How many of its tokens are computed.
    pub tokens: u32,
    /// Whether its next token is sampled.
    pub samples: bool,
    /// Its last step was abandoned for others' sake: this one must not be.
    pub owed: bool,
    pub(super) order: Order,
}

impl StepPlan {
    /// Its parts, in the order of the batch.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Tokens computed.
    #[must_use]
    pub fn tokens(&self) -> u32 {
        self.parts.iter().map(|part| part.tokens).sum()
    }
}

#[cfg(test)]
impl StepPlan {
    /// A plan made by hand.
    pub(crate) fn of(parts: Vec<Part>) -> Self {
        Self { parts }
    }
}

#[cfg(test)]
impl Part {
    /// A part made by hand, which samples nothing.
    pub(crate) fn of(key: SequenceKey, tokens: u32) -> Self {
        Self {
            key,
            tokens,
            samples: false,
            owed: false,
            order: (0, key.0),
        }
    }
}
