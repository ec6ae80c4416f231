//! Tokens of answers on their way to the client.

use rkyv::{Archive, Deserialize, Serialize};

use crate::check::{Check, at_most, number};
use crate::error::Invalid;
use crate::limits::{MAX_TOKENS, MAX_TOP_LOGPROBS};
use crate::work::RoomKey;

/// One token of an answer.
#[derive(Archive, Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct TokenOut {
    /// Its number in the vocabulary.
    pub token: u32,
    /// Log-probabilities, where they were asked for.
    pub logprobs: Option<Logprobs>,
}

/// Natural logarithms of probabilities at one position. Negative infinity is a probability of 0.
#[derive(Archive, Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Logprobs {
    /// Of the token that was taken.
    pub sampled: f32,
    /// The most likely tokens, descending.
    pub top: Vec<(u32, f32)>,
}

/// Tokens of one room in a batch.
#[derive(Archive, Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct RoomTokens {
    /// Which attempt.
    pub key: RoomKey,
    /// The place of the first of them in the whole answer, counted from 0 over all attempts. Without tokens: how many
    /// tokens the answer has.
    pub from: u32,
    /// The tokens.
    pub tokens: Vec<TokenOut>,
    /// Set if the answer is whole with these.
    pub finish: Option<Finish>,
}

/// Why a whole answer is whole.
#[derive(Archive, Serialize, Deserialize, Copy, Clone, Eq, PartialEq, Debug)]
pub enum Finish {
    /// The model ended it.
    Stop,
    /// It reached the allowed number of tokens.
    Length,
}

impl Check for TokenOut {
    fn check(&self) -> Result<(), Invalid> {
        self.logprobs.check()
    }
}

impl Check for Logprobs {
    fn check(&self) -> Result<(), Invalid> {
        at_most("logprobs.top", self.top.len(), MAX_TOP_LOGPROBS)?;
        let want = "a number, or negative infinity";
        let all = std::iter::once(self.sampled).chain(self.top.iter().map(|(_, logprob)| *logprob));
        all.into_iter()
            .try_for_each(|value| number("logprobs", value, value < f32::INFINITY, want))
    }
}

impl Check for RoomTokens {
    fn check(&self) -> Result<(), Invalid> {
        let end = (self.from as usize).saturating_add(self.tokens.len());
        at_most("room_tokens", end, MAX_TOKENS)?;
        self.tokens.check()
    }
}
