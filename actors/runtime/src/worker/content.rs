//! What the protocol does not look at: the tokens, wishes and tickets of each attempt that is here.

use std::collections::BTreeMap;

use engine::{Goal, SequenceKey, SequenceSpec};
use room::{Attempt, BlockId};
use wire::{RoomTokens, Ticket, TokenOut, Work};

use crate::convert;

/// One attempt's content.
#[derive(Debug)]
pub(crate) struct Content {
    /// The sequence's name in the engine.
    pub(crate) key: SequenceKey,
    /// What the owner sent with `Reserve` or `Prefill`.
    pub(crate) work: Work,
    /// Tokens sampled elsewhere and told with `Pull`: in the sequence, their KV is not.
    pub(crate) sampled_elsewhere: Vec<TokenOut>,
    /// Where to pull from (on decode), or what was published (on prefill).
    pub(crate) ticket: Option<Ticket>,
    /// Sampled here and not yet told.
    pub(crate) untold: Vec<TokenOut>,
    /// Figures of the pull, for its report.
    pub(crate) pull: Option<kv::ReadStats>,
    /// When the pull began.
    pub(crate) pull_began: Option<room::Time>,
    /// Whether a token was sampled here, or elsewhere before: the prompt is computed.
    pub(crate) has_sampled: bool,
    /// When its request ends, on this worker's clock.
    pub(crate) deadline: room::Time,
    /// What last went wrong with it, in words: its owner hears so if it fails.
    pub(crate) trouble: Option<String>,
}

/// All attempts' content.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    by_attempt: BTreeMap<Attempt, Content>,
    by_key: BTreeMap<SequenceKey, Attempt>,
    next_key: u64,
}

impl Contents {
    /// Keeps what came with the frame that opens a stay. Content that is there already stays: the frame is a repetition.
    pub(crate) fn open(&mut self, attempt: Attempt, work: Work, deadline: room::Time) {
        if self.by_attempt.contains_key(&attempt) {
            return;
        }
        let key = SequenceKey(self.next_key);
        self.next_key += 1;
        self.by_key.insert(key, attempt);
        let content = Content {
            key,
            work,
            sampled_elsewhere: Vec::new(),
            ticket: None,
            untold: Vec::new(),
            pull: None,
            pull_began: None,
            has_sampled: false,
            deadline,
            trouble: None,
        };
        self.by_attempt.insert(attempt, content);
    }

    pub(crate) fn get(&self, attempt: Attempt) -> Option<&Content> {
        self.by_attempt.get(&attempt)
    }

    pub(crate) fn get_mut(&mut self, attempt: Attempt) -> Option<&mut Content> {
        self.by_attempt.get_mut(&attempt)
    }

    /// Whose sequence it is; none if the stay is gone.
    pub(crate) fn attempt(&self, key: SequenceKey) -> Option<Attempt> {
        self.by_key.get(&key).copied()
    }

    /// Something went wrong with this attempt.
    pub(crate) fn trouble(&mut self, attempt: Attempt, why: String) {
        if let Some(content) = self.by_attempt.get_mut(&attempt) {
            content.trouble = Some(why);
        }
    }

    /// Something went wrong with all of them.
    pub(crate) fn trouble_all(&mut self, why: &str) {
        for content in self.by_attempt.values_mut() {
            content.trouble = Some(why.to_owned());
        }
    }

    /// Attempts with content.
    pub(crate) fn len(&self) -> usize {
        self.by_attempt.len()
    }

    /// Forgets an attempt.
    pub(crate) fn forget(&mut self, attempt: Attempt) {
        if let Some(content) = self.by_attempt.remove(&attempt) {
            self.by_key.remove(&content.key);
        }
    }

    /// Forgets every attempt that `is_here` says is gone.
    pub(crate) fn retain(&mut self, is_here: impl Fn(Attempt) -> bool) {
        self.by_attempt.retain(|attempt, _| is_here(*attempt));
        self.by_key.retain(|_, attempt| is_here(*attempt));
    }
}

impl Content {
    /// What the engine is told when it starts on the prompt.
    pub(crate) fn prefill(&self, blocks: &[BlockId], computed: u32, whole: bool, until: u32) -> SequenceSpec {
        let goal = if whole { Goal::Answer } else { Goal::FirstToken };
        self.sequence(
            self.work.tokens.clone(),
            self.work.max_new,
            blocks,
            computed,
            until,
            goal,
        )
    }

    /// What the engine is told when it goes on after a pull.
    pub(crate) fn decode(&self, blocks: &[BlockId], computed: u32, until: u32) -> SequenceSpec {
        let mut tokens = self.work.tokens.clone();
        tokens.extend(self.sampled_elsewhere.iter().map(|out| out.token));
        let sampled = u32::try_from(self.sampled_elsewhere.len()).unwrap_or(u32::MAX);
        self.sequence(
            tokens,
            self.work.max_new.saturating_sub(sampled),
            blocks,
            computed,
            until,
            Goal::Answer,
        )
    }

    /// Where the answer's token at this place is in the whole sequence.
    pub(crate) fn position(&self, place: u32) -> u32 {
        self.work.prompt_tokens.saturating_add(place)
    }

    fn sequence(
        &self,
        tokens: Vec<u32>,
        max_new: u32,
        blocks: &[BlockId],
        computed: u32,
        until: u32,
        goal: Goal,
    ) -> SequenceSpec {
        SequenceSpec {
            key: self.key,
            tokens,
            prompt_tokens: if planted!(DeliveredBecomesPrompt) {
                self.work.tokens.len()
            } else {
                self.work.prompt_tokens as usize
            },
            computed,
            blocks: blocks.iter().map(|block| block.0).collect(),
            max_new,
            until: self.position(until),
            sampling: convert::sampling_to_engine(&self.work.sampling),
            ignore_eos: self.work.ignore_eos,
            goal,
            // The wire's higher value goes first, the engine's lower one.
            priority: u8::MAX - self.work.priority,
        }
    }

    /// The next `count` untold tokens, as the gateway is told of them.
    pub(crate) fn tell(&mut self, attempt: Attempt, from: u32, count: u32) -> RoomTokens {
        let count = (count as usize).min(self.untold.len());
        let tokens = self.untold.drain(..count).collect();
        RoomTokens {
            key: convert::room_key(attempt),
            from,
            tokens,
            finish: None,
        }
    }
}
