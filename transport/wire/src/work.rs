//! What an attempt is about: its name, its tokens, the wishes of its client, and where its KV is.

use rkyv::{Archive, Deserialize, Serialize};

use crate::check::{Check, at_most, number, some_at_most};
use crate::error::Invalid;
use crate::limits::{MAX_ADDRESS_BYTES, MAX_TOKENS, MAX_TOP_LOGPROBS};

/// One attempt at one room of the gateway at the other end, or at this end, of the link. The gateway's incarnation is
/// that of the link, and never said.
#[derive(Archive, Serialize, Deserialize, Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct RoomKey {
    /// The room: unique within the gateway's incarnation, ascending.
    pub seq: u64,
    /// Which try at it.
    pub generation: u32,
}

/// An attempt that its gateway wants kept.
#[derive(Archive, Serialize, Deserialize, Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct Kept {
    /// Which.
    pub key: RoomKey,
    /// Place in the whole answer of the first token that may not be sampled yet, because its reader is too far behind.
    pub until: u32,
}

/// What is to be computed.
#[derive(Archive, Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Work {
    /// The prompt, then what the client already has of the answer. At least one token.
    pub tokens: Vec<u32>,
    /// How many of `tokens` are the prompt.
    pub prompt_tokens: u32,
    /// Tokens that may still be generated, at least 1.
    pub max_new: u32,
    /// Never end at the model's end token.
    pub ignore_eos: bool,
    /// The higher goes first.
    pub priority: u8,
    /// How to choose tokens.
    pub sampling: Sampling,
    /// Prefix blocks are shared only among equal salts.
    pub salt: u64,
    /// The trace that the room belongs to.
    pub trace: Option<TraceContext>,
}

/// How to choose the next token. The meaning of each field is OpenAI's, or where it has none, vLLM's.
#[derive(Archive, Serialize, Deserialize, Copy, Clone, PartialEq, Debug)]
pub struct Sampling {
    /// 0 takes the most likely token.
    pub temperature: f32,
    /// Keep the smallest set of tokens whose probabilities sum to this; 1 keeps all.
    pub top_p: f32,
    /// Keep the `k` most likely tokens; 0 keeps all.
    pub top_k: u32,
    /// Drop tokens less likely than this times the most likely one; 0 keeps all.
    pub min_p: f32,
    /// Random numbers are a function of this and the position.
    pub seed: u64,
    /// Subtracted from the logit of every token generated so far.
    pub presence_penalty: f32,
    /// Subtracted once for each time the token was generated so far.
    pub frequency_penalty: f32,
    /// Report the log-probability of each token, and of this many alternatives.
    pub logprobs: Option<u8>,
}

/// A W3C trace context.
#[derive(Archive, Serialize, Deserialize, Copy, Clone, Eq, PartialEq, Debug)]
pub struct TraceContext {
    /// The trace.
    pub trace_id: u128,
    /// The span that caused this.
    pub span_id: u64,
    /// The W3C flags; bit 0 is "sampled".
    pub flags: u8,
}

/// The right to read published KV, and what there is to read.
#[derive(Archive, Serialize, Deserialize, Clone, Eq, PartialEq, Debug)]
pub struct Ticket {
    /// A random number that the source asks for.
    pub capability: [u8; 16],
    /// Where the source can be asked; opaque here.
    pub source: Vec<u8>,
    /// Published blocks, from the first of the sequence.
    pub blocks: u32,
    /// Positions that have KV in them.
    pub positions: u32,
}

impl Check for Work {
    fn check(&self) -> Result<(), Invalid> {
        some_at_most("work.tokens", self.tokens.len(), MAX_TOKENS)?;
        let prompt = self.prompt_tokens;
        let fits = prompt > 0 && prompt as usize <= self.tokens.len();
        number("work.prompt_tokens", prompt, fits, "1 to the number of tokens")?;
        let max_new = self.max_new;
        number(
            "work.max_new",
            max_new,
            max_new > 0 && max_new as usize <= MAX_TOKENS,
            "1 to 262144",
        )?;
        self.sampling.check()
    }
}

impl Check for Sampling {
    fn check(&self) -> Result<(), Invalid> {
        let temperature = self.temperature;
        number(
            "sampling.temperature",
            temperature,
            (0.0..=1e6).contains(&temperature),
            "0 to 1e6",
        )?;
        number(
            "sampling.top_p",
            self.top_p,
            (0.0..=1.0).contains(&self.top_p),
            "0 to 1",
        )?;
        number(
            "sampling.min_p",
            self.min_p,
            (0.0..=1.0).contains(&self.min_p),
            "0 to 1",
        )?;
        let penalty = |field, value: f32| number(field, value, value.abs() <= 1e6, "a number of at most 1e6");
        penalty("sampling.presence_penalty", self.presence_penalty)?;
        penalty("sampling.frequency_penalty", self.frequency_penalty)?;
        let alternatives = self.logprobs.unwrap_or_default();
        at_most("sampling.logprobs", usize::from(alternatives), MAX_TOP_LOGPROBS)
    }
}

impl Check for Ticket {
    fn check(&self) -> Result<(), Invalid> {
        at_most("ticket.source", self.source.len(), MAX_ADDRESS_BYTES)?;
        at_most("ticket.blocks", self.blocks as usize, MAX_TOKENS)?;
        at_most("ticket.positions", self.positions as usize, MAX_TOKENS)
    }
}
