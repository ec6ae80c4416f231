//! What the protocol does not look at: how far each sequence is.

use std::collections::BTreeMap;

use engine::{Goal, Sampling, SequenceKey, SequenceSpec};
use room::{Attempt, BlockId, Host, Job, NodeId};

/// One attempt's sequence.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub(super) key: SequenceKey,
    /// Positions known when the attempt began.
    pub(super) positions: u32,
    /// Positions at most.
    max_positions: u32,
    /// Of those beyond `positions`, tokens that came with the pull.
    sampled_elsewhere: u32,
    /// Where to pull from.
    pub(super) source: Option<NodeId>,
    /// Positions with KV here.
    pub(super) computed: u32,
    /// The prompt is computed.
    pub(super) has_sampled: bool,
}

impl Content {
    /// What the engine is told. Tokens are not looked at: all are zero.
    pub(super) fn sequence(&self, blocks: &[BlockId], goal: Goal) -> SequenceSpec {
        let known = self.positions + self.sampled_elsewhere;
        SequenceSpec {
            key: self.key,
            tokens: vec![0; known as usize],
            prompt_tokens: known as usize,
            computed: self.computed,
            blocks: blocks.iter().map(|block| block.0).collect(),
            max_new: self.max_positions.saturating_sub(known),
            until: u32::MAX,
            sampling: Sampling::default(),
            ignore_eos: true,
            goal,
            priority: 0,
        }
    }
}

/// All attempts' sequences.
#[derive(Debug, Default)]
pub(super) struct Contents {
    by_attempt: BTreeMap<Attempt, Content>,
    by_key: BTreeMap<SequenceKey, Attempt>,
    next_key: u64,
}

impl Contents {
    pub(super) fn open(&mut self, attempt: Attempt, job: &Job) {
        if self.by_attempt.contains_key(&attempt) {
            return;
        }
        let key = SequenceKey(self.next_key);
        self.next_key += 1;
        self.by_key.insert(key, attempt);
        let content = Content {
            key,
            positions: job.positions,
            max_positions: job.max_positions,
            sampled_elsewhere: 0,
            source: None,
            computed: 0,
            has_sampled: false,
        };
        self.by_attempt.insert(attempt, content);
    }

    pub(super) fn sampled_elsewhere(&mut self, attempt: Attempt, sampled: u32, source: Option<NodeId>) {
        if let Some(content) = self.by_attempt.get_mut(&attempt) {
            content.sampled_elsewhere = sampled;
            content.source = source;
        }
    }

    pub(super) fn get(&self, attempt: Attempt) -> Option<&Content> {
        self.by_attempt.get(&attempt)
    }

    pub(super) fn get_mut(&mut self, attempt: Attempt) -> Option<&mut Content> {
        self.by_attempt.get_mut(&attempt)
    }

    pub(super) fn attempt(&self, key: SequenceKey) -> Option<Attempt> {
        self.by_key.get(&key).copied()
    }

    pub(super) fn of(&self, key: SequenceKey) -> Option<&Content> {
        self.by_attempt.get(self.by_key.get(&key)?)
    }

    /// Its KV has come so far; whether that is of the prompt, which is told of.
    pub(super) fn computed(&mut self, key: SequenceKey, positions: u32) -> bool {
        let attempt = self.attempt(key);
        let Some(content) = attempt.and_then(|attempt| self.by_attempt.get_mut(&attempt)) else {
            return false;
        };
        content.computed = positions;
        !content.has_sampled
    }

    pub(super) fn has_sampled(&mut self, key: SequenceKey) {
        let attempt = self.attempt(key);
        if let Some(content) = attempt.and_then(|attempt| self.by_attempt.get_mut(&attempt)) {
            content.has_sampled = true;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_attempt.is_empty()
    }

    /// Forgets what has no stay.
    pub(super) fn forget_gone(&mut self, host: &Host) {
        if self.by_attempt.len() > host.stays().count() {
            self.by_attempt.retain(|attempt, _| host.stay(*attempt).is_some());
            self.by_key
                .retain(|_, attempt| self.by_attempt.contains_key(attempt));
        }
    }
}
