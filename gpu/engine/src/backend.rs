//! What runs a step: tokens in, sampled tokens out.

use std::sync::Arc;

use crate::interrupt::Interrupt;
use crate::pool::KvPool;
use crate::sampling::Sampling;

/// A token id of the model's vocabulary.
pub type Token = u32;

/// Index of a KV block in the worker's pool.
pub type BlockIndex = kv::BlockIndex;

/// What a backend's model is, as far as scheduling needs to know.
#[derive(Clone, Debug)]
pub struct ModelSpec {
    /// The name clients use.
    pub name: String,
    /// Size of the vocabulary.
    pub vocabulary: u32,
    /// Longest sequence in tokens, prompt and answer together.
    pub context_tokens: u32,
    /// Tokens that end an answer.
    pub end_tokens: Vec<Token>,
    /// Two workers may exchange KV blocks only if this agrees: weights, block shape, element type, numerics.
    pub layout_hash: u64,
}

/// One sequence's part of a step.
#[derive(Clone, Debug)]
pub struct Slice<'a> {
    /// The tokens to compute, at positions `start..start + tokens.len()`. Never empty.
    pub tokens: &'a [Token],
    /// Position of the first of them.
    pub start: u32,
    /// The sequence's block table: block `i` holds positions `i * block_tokens ..`. Covers all of `tokens`.
    pub blocks: &'a [BlockIndex],
    /// Whether and how to sample the token that follows the last one.
    pub sample: Option<SampleRequest<'a>>,
}

/// How to sample the next token of a sequence.
#[derive(Clone, Debug)]
pub struct SampleRequest<'a> {
    /// The client's wishes.
    pub sampling: &'a Sampling,
    /// Everything so far: prompt and generated tokens, up to and including the slice's last.
    pub history: &'a [Token],
    /// How many of `history` are prompt; the rest was generated and counts for penalties.
    pub prompt_tokens: usize,
    /// End tokens may not be sampled (`ignore_eos`).
    pub forbid_end: bool,
}

/// What a slice that asked for a token got.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// Index of the slice in the batch.
    pub slice: usize,
    /// The token, or why this sequence has none: that is the failure of the one slice, and ends its sequence.
    pub token: Result<Token, NoToken>,
    /// Its log-probability and the most likely alternatives, when asked for.
    pub logprobs: Option<TokenLogprobs>,
}

/// Log-probabilities of one position, natural logarithm, of the model's distribution before sampling filters.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenLogprobs {
    /// Of the sampled token.
    pub sampled: f32,
    /// The most likely tokens, descending; as many as asked for.
    pub top: Vec<(Token, f32)>,
}

/// A sequence whose next token cannot be told: its logits are no numbers, or rule everything out. The step is good otherwise. It is no
/// use to try the same again on the same device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no token: {0}")]
pub struct NoToken(pub String);

/// A step that could not be run. The engine is then of no use any more: its sequences fail, the worker starts it anew.
#[derive(Debug, thiserror::Error)]
#[error("backend: {0}")]
pub struct BackendError(pub String);

/// A device with a model on it.
///
/// Batch invariance is part of the contract: what is computed for a token depends on its own sequence alone, never on the other
/// slices or on how the prompt was cut into slices.
pub trait Backend: Send + 'static {
    /// What the model is.
    fn spec(&self) -> &ModelSpec;

    /// The KV pool this backend reads and writes.
    fn pool(&self) -> Arc<KvPool>;

    /// The flag this backend looks at during a step, if it does. When it is raised, the step may be abandoned: `Ok`, with nothing
    /// appended to `out` and no matter what is in the slices' own positions of the pool. They are computed again.
    fn interrupt(&self) -> Option<Interrupt> {
        None
    }

    /// Computes every slice, writes its keys and values into the pool, and appends one [`Sampled`] to `out` for every slice that
    /// asks for one, in order.
    ///
    /// # Errors
    /// When the device failed; nothing in `out` is then valid. What concerns one sequence only is a [`NoToken`] of its slice.
    fn step(&mut self, batch: &[Slice<'_>], out: &mut Vec<Sampled>) -> Result<(), BackendError>;
}
