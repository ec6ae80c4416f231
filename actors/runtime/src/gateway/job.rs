//! What a client wants generated: the content that the room itself does not look at.

use std::time::Duration;

use engine::{Sampling, Token};
use room::Share;
use wire::TraceContext;

/// One request: one prompt, `n` answers to it.
#[derive(Clone, Debug)]
pub struct Job {
    /// The client's or the door's name for it, for logs and views; not unique.
    pub request_id: String,
    /// The prompt; not empty.
    pub prompt: Vec<Token>,
    /// Answers wanted, each with a room of its own; at least 1.
    pub n: u32,
    /// Most tokens of each answer; at least 1.
    pub max_new: u32,
    /// How to sample. Answer `i` uses the seed plus `i`.
    pub sampling: Sampling,
    /// Never sample an end token.
    pub ignore_eos: bool,
    /// Higher goes first.
    pub priority: u8,
    /// Whose it is: jobs of one priority take turns when they have to wait.
    pub share: Share,
    /// Separates prefix caches: only requests with the same salt share blocks.
    pub salt: u64,
    /// Time the whole request may take.
    pub timeout: Duration,
    /// The trace it belongs to, and the span that caused it (0: none). Without one the request gets a trace of its own.
    pub trace: Option<TraceContext>,
    /// What came before its submission.
    pub prepared: Preparation,
}

/// How long the door has had a request before it was submitted.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub struct Preparation {
    /// In all, from its first look at it.
    pub in_all: Duration,
    /// Of that: making the prompt of the conversation.
    pub render: Duration,
    /// Of that, after it: making tokens of the prompt.
    pub tokenise: Duration,
}

impl Job {
    /// What a worker is told for answer `index`, of which `answer` was delivered.
    pub(crate) fn work(&self, index: usize, answer: &[Token]) -> wire::Work {
        let mut tokens = Vec::with_capacity(self.prompt.len() + answer.len());
        tokens.extend_from_slice(&self.prompt);
        tokens.extend_from_slice(answer);
        let mut sampling = crate::convert::sampling_to_wire(&self.sampling);
        sampling.seed = sampling.seed.wrapping_add(index as u64);
        wire::Work {
            tokens,
            prompt_tokens: crate::convert::count(self.prompt.len()),
            max_new: self.max_new.saturating_sub(crate::convert::count(answer.len())),
            ignore_eos: self.ignore_eos,
            priority: self.priority,
            sampling,
            salt: self.salt,
            trace: self.trace,
        }
    }
}
