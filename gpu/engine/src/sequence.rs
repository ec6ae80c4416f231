//! What the engine is told of a sequence, and what it may say to that.

use crate::backend::{BlockIndex, Token};
use crate::sampling::Sampling;

/// Names one stay of a sequence in an engine. Minted by whoever starts it, never used twice.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct SequenceKey(pub u64);

/// When a sequence leaves the engine, other than by its answer's end.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Goal {
    /// After one sampled token: a prefill worker's part.
    FirstToken,
    /// When the answer ends: a decode or a mixed worker's part.
    Answer,
}

/// A sequence to run.
#[derive(Clone, PartialEq, Debug)]
pub struct SequenceSpec {
    /// Its name.
    pub key: SequenceKey,
    /// The prompt and what has been generated of the answer. Not empty.
    pub tokens: Vec<Token>,
    /// How many of `tokens` are prompt; the rest was generated, and counts for penalties.
    pub prompt_tokens: usize,
    /// Positions whose keys and values are already in `blocks`. At least the last of `tokens` is computed in any case, since its
    /// logits give the next token; so the block it lies in, and all later ones, must be this sequence's alone.
    pub computed: u32,
    /// The block table: block `i` holds positions `i * block_tokens ..`. May be too short for the sequence: it asks for more.
    pub blocks: Vec<BlockIndex>,
    /// Tokens that may still be generated, at least one. Cut to what the model's context leaves.
    pub max_new: u32,
    /// Position of the first token that may not be sampled yet: the sequence waits there, and keeps its blocks, until
    /// [`Command::Allow`](crate::Command::Allow) says more. `u32::MAX` never waits.
    pub until: u32,
    /// How to sample.
    pub sampling: Sampling,
    /// Never sample an end token.
    pub ignore_eos: bool,
    /// When to stop.
    pub goal: Goal,
    /// Lower is served first; within a priority, first come first served.
    pub priority: u8,
}

/// Why a sequence was not taken, or could not go on.
#[derive(Copy, Clone, Eq, PartialEq, Debug, thiserror::Error)]
pub enum Refusal {
    /// There is no room in the batch.
    #[error("{max} sequences are running, which is the limit")]
    Full {
        /// The limit.
        max: u32,
    },
    /// The key was used twice. Neither sequence is in the engine now: a refusal is proof of that, whichever of the two it is about.
    #[error("a sequence with this key was running already; both are out")]
    DuplicateKey,
    /// There is nothing to compute.
    #[error("a sequence needs at least one token")]
    NoTokens,
    /// More prompt than tokens.
    #[error("{prompt_tokens} of {tokens} tokens cannot be prompt")]
    PromptLongerThanTokens {
        /// As given.
        prompt_tokens: usize,
        /// As given.
        tokens: usize,
    },
    /// No token may be generated.
    #[error("max_new must be at least 1")]
    NothingToGenerate,
    /// The context leaves no place for a generated token.
    #[error("{tokens} tokens leave no room for an answer in a context of {context}")]
    TooLong {
        /// As given.
        tokens: usize,
        /// The model's limit.
        context: u32,
    },
    /// Not a token of the vocabulary.
    #[error("token {token} is outside a vocabulary of {vocabulary}")]
    UnknownToken {
        /// The token.
        token: Token,
        /// Size of the vocabulary.
        vocabulary: u32,
    },
    /// Not a block of the pool.
    #[error("block {block} is outside a pool of {blocks}")]
    UnknownBlock {
        /// The block.
        block: BlockIndex,
        /// Blocks of the pool.
        blocks: u32,
    },
    /// More was said to be computed than there is, or than the blocks hold.
    #[error("{computed} computed positions do not fit {tokens} tokens in {blocks} blocks")]
    ComputedTooMuch {
        /// As given.
        computed: u32,
        /// Tokens given.
        tokens: usize,
        /// Blocks given.
        blocks: usize,
    },
}
