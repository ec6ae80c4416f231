//! One sequence in the scheduler.

use crate::backend::{BlockIndex, SampleRequest, Slice, Token};
use crate::event::FinishReason;
use crate::sequence::{Goal, SequenceKey, SequenceSpec};

/// Place in the order of service: priority, then arrival. Unique, and stable for the sequence's whole stay.
pub(super) type Order = (u8, u64);

/// A sequence that is in the engine. Always has at least one token to compute.
pub(super) struct Running {
    pub(super) order: Order,
    spec: SequenceSpec,
    computed: usize,
    /// Length of the block table once every want reported so far is answered.
    asked: usize,
    /// Its last step was abandoned.
    pub(super) owed: bool,
}

impl Running {
    /// `spec` has been checked; `max_new` already fits the context.
    pub(super) fn new(spec: SequenceSpec, arrival: u64) -> Self {
        let last = spec.tokens.len() - 1;
        Self {
            order: (spec.priority, arrival),
            computed: (spec.computed as usize).min(last),
            asked: spec.blocks.len(),
            owed: false,
            spec,
        }
    }

    pub(super) fn key(&self) -> SequenceKey {
        self.spec.key
    }

    /// Positions whose keys and values are in the blocks.
    pub(super) fn computed(&self) -> u32 {
        position(self.computed)
    }

    /// Tokens known but not computed; at least one.
    pub(super) fn pending(&self) -> usize {
        self.spec.tokens.len() - self.computed
    }

    /// Only the last token is missing: each step gives a new one.
    pub(super) fn is_decoding(&self) -> bool {
        self.pending() == 1
    }

    /// How many of the pending tokens can be computed now: as far as the block table has room, and without the last one, which gives
    /// the next token, if that may not be sampled yet.
    pub(super) fn runnable(&self, block_tokens: usize) -> usize {
        let room = (self.spec.blocks.len() * block_tokens).saturating_sub(self.computed);
        let may_sample = position(self.spec.tokens.len()) < self.spec.until;
        (self.pending() - usize::from(!may_sample)).min(room)
    }

    pub(super) fn allow(&mut self, until: u32) {
        self.spec.until = self.spec.until.max(until);
    }

    pub(super) fn grow(&mut self, blocks: &[BlockIndex]) {
        self.spec.blocks.extend_from_slice(blocks);
        self.asked = self.asked.max(self.spec.blocks.len());
    }

    /// Blocks to ask for now, so that `ahead` more positions than known have a place (as far as the sequence may get that far).
    /// What has been asked for before is not asked for again.
    pub(super) fn ask(&mut self, block_tokens: usize, ahead: usize) -> u32 {
        let samples = match self.spec.goal {
            Goal::FirstToken => 1,
            Goal::Answer => self.spec.max_new as usize,
        };
        // The last sampled token is never computed.
        let known = self.spec.tokens.len();
        let final_positions = known + samples - 1;
        let target = final_positions.min(known + ahead).div_ceil(block_tokens);
        let more = target.saturating_sub(self.asked);
        self.asked += more;
        position(more)
    }

    /// The part of a step that computes the next `tokens` tokens; it samples if those are all.
    pub(super) fn slice(&self, tokens: usize) -> Slice<'_> {
        let end = self.computed + tokens;
        let sample = (end == self.spec.tokens.len()).then_some(SampleRequest {
            sampling: &self.spec.sampling,
            history: &self.spec.tokens,
            prompt_tokens: self.spec.prompt_tokens,
            forbid_end: self.spec.ignore_eos,
        });
        Slice {
            tokens: &self.spec.tokens[self.computed..end],
            start: position(self.computed),
            blocks: &self.spec.blocks,
            sample,
        }
    }

    /// `tokens` more tokens have been computed.
    pub(super) fn advance(&mut self, tokens: usize) {
        self.computed += tokens;
        self.owed = false;
        debug_assert!(self.computed <= self.spec.tokens.len());
    }

    /// Appends a sampled token: its position, whether it ends the answer, and whether the sequence leaves.
    pub(super) fn push(&mut self, token: Token, end_tokens: &[Token]) -> (u32, Option<FinishReason>, bool) {
        let at = position(self.spec.tokens.len());
        self.spec.tokens.push(token);
        self.spec.max_new -= 1;
        let finish = if !self.spec.ignore_eos && end_tokens.contains(&token) {
            Some(FinishReason::Stop)
        } else if self.spec.max_new == 0 {
            Some(FinishReason::Length)
        } else {
            None
        };
        (at, finish, finish.is_some() || self.spec.goal == Goal::FirstToken)
    }
}

/// Positions are bounded by the model's context, which is a `u32`.
fn position(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
