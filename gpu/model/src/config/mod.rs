//! A model's shape, from its files.

mod folder;
mod gguf;
mod scaling;

use engine::{Gate, Rope};

use crate::folder::FolderError;
use crate::gguf::GgufError;

/// Why a model cannot be run here.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file does not say what is needed.
    #[error(transparent)]
    File(#[from] GgufError),
    /// `config.json` does not say what is needed.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// It says something that this program has no code for.
    #[error("{0}")]
    Unsupported(String),
}

fn unsupported<T>(what: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError::Unsupported(what.into()))
}

/// The shape of a decoder of the Llama family.
#[derive(Clone, Debug)]
pub struct Config {
    /// The architecture's name, as GGUF has it: `llama` (Mistral too), `qwen2`, `qwen3`, `gemma3`.
    pub architecture: String,
    /// Decoder layers.
    pub layers: usize,
    /// Numbers in the residual stream.
    pub width: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Numbers a head.
    pub head_dim: usize,
    /// Numbers inside the feed-forward block.
    pub ffn_width: usize,
    /// Tokens in the vocabulary.
    pub vocabulary: usize,
    /// Longest sequence in tokens.
    pub context_tokens: u32,
    /// Added to the mean square in norms.
    pub rms_epsilon: f32,
    /// Position embedding; where `factors` are a tensor, they are still empty.
    pub rope: Rope,
    /// Layers that look back a limited way, if there are any.
    pub window: Option<Window>,
    /// Factor of the scores before the softmax.
    pub attention_scale: f32,
    /// Factor of the embeddings.
    pub embedding_scale: f32,
    /// The gate of the feed-forward blocks.
    pub gate: Gate,
    /// What the architecture norms besides the inputs of its blocks.
    pub norms: Norms,
    /// Whether the output weights are the embedding; if not said, they are where there are no others.
    pub tied: Option<bool>,
}

/// Layers that look back a limited way.
#[derive(Clone, Debug)]
pub struct Window {
    /// Positions that a token sees, its own included.
    pub tokens: u32,
    /// Position embedding in these layers.
    pub rope: Rope,
    /// Of every layer, whether it is one.
    pub layers: Vec<bool>,
}

/// What an architecture norms besides the inputs of its blocks.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Norms {
    /// Query and key heads. Without, they are where the files have weights for it.
    pub heads: bool,
    /// The outputs of blocks, before they are added to the residual stream.
    pub outputs: bool,
    /// Folders hold the weights of norms less one.
    pub less_one: bool,
}

/// Most numbers in a vector and tokens in a context.
const LIMIT: u64 = 1 << 24;
/// Most layers, heads and numbers a head: the size of a KV block, a product of all three, cannot overflow.
const FEW: usize = 1 << 12;

impl Config {
    fn consistent(&self) -> Result<(), ConfigError> {
        let wrong = |what: &str| unsupported(format!("impossible shape: {what}"));
        let ropes = || std::iter::once(&self.rope).chain(self.window.iter().map(|w| &w.rope));
        match self {
            c if c.heads % c.kv_heads != 0 => wrong("query heads are not a multiple of key heads"),
            c if c.layers.max(c.heads).max(c.head_dim) > FEW => {
                wrong("more than 4096 layers, heads or numbers a head")
            }
            c if c.head_dim == 0 || c.vocabulary == 0 => wrong("a head or the vocabulary is empty"),
            c if ropes().any(|r| r.dims % 2 != 0 || r.dims > c.head_dim) => wrong("rotated dimensions"),
            c if !(c.rms_epsilon > 0.0 && c.rms_epsilon < 1.0) => wrong("epsilon of the norms"),
            _ if !ropes().all(|r| r.base >= 1.0 && r.base.is_finite()) => {
                wrong("base of the rotary embedding")
            }
            c if !(c.attention_scale > 0.0 && c.attention_scale.is_finite()) => wrong("scale of the scores"),
            _ => Ok(()),
        }
    }
}

/// A size that must be positive and sane.
fn extent(key: &str, n: u64) -> Result<usize, ConfigError> {
    match usize::try_from(n) {
        Ok(size) if n > 0 && n <= LIMIT => Ok(size),
        _ => unsupported(format!("`{key}` is {n}, which is not between 1 and {LIMIT}")),
    }
}

/// One over the root of the numbers that a score is summed over.
#[allow(clippy::cast_precision_loss, reason = "a head has few numbers")]
fn attention_scale(numbers: usize) -> f32 {
    1.0 / (numbers as f32).sqrt()
}

/// Gemma's factor of the embeddings.
#[allow(clippy::cast_precision_loss, reason = "at most 2^24")]
fn embedding_scale(width: usize) -> f32 {
    (width as f32).sqrt()
}

/// Gemma 3's layers: every sixth looks back all the way.
fn every_sixth_looks_far(layers: usize, pattern: usize) -> Vec<bool> {
    (1..=layers).map(|layer| layer % pattern != 0).collect()
}

/// Base of the rotary embedding in Gemma 3's layers that look back a limited way.
const GEMMA_LOCAL_BASE: f32 = 10_000.0;
