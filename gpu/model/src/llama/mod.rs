//! Decoders of the Llama family on any [`Device`]: Llama, SmolLM, Mistral (perhaps with a window), Qwen2 (biases), Qwen3 (norms of
//! query and key heads), Gemma 3 (norms behind blocks too, a window in five of six layers, scaled embeddings, another gate).
//!
//! A step gathers the tokens of all its slices into one matrix, runs the layers over it (attention looks at each sequence's own
//! blocks), and computes logits for the sampled rows alone.

mod load;
mod step;

use std::sync::Arc;

use engine::{
    Attention, Backend, BackendError, Device, Gate, Interrupt, KvPool, ModelSpec, Rope, Sampled, Slice,
};

use crate::folder::FolderError;
use crate::gguf::GgufError;
use crate::sampler::Sampler;

/// Why a model could not be put on a device.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A tensor is missing, damaged or of the wrong shape.
    #[error(transparent)]
    File(#[from] GgufError),
    /// The same, of a folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The device refused a weight or the pool.
    #[error(transparent)]
    Device(#[from] BackendError),
}

/// How large a KV pool to allocate.
#[derive(Copy, Clone, Debug)]
pub struct PoolOptions {
    /// Blocks.
    pub blocks: u32,
    /// Tokens a block.
    pub block_tokens: usize,
}

/// A model on a device: the [`Backend`] of a worker.
pub struct Llama<D: Device> {
    device: D,
    spec: ModelSpec,
    pool: Arc<KvPool>,
    weights: Weights<D::Weight>,
    shape: Shape,
    scratch: Scratch<D::Buffer>,
    sampler: Sampler,
    /// Looked at between layers.
    interrupt: Interrupt,
}

impl<D: Device> std::fmt::Debug for Llama<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Llama")
            .field("spec", &self.spec)
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

/// What the steps need of the model's shape.
#[derive(Debug)]
struct Shape {
    /// Of layers that look back all the way, and of those that do not.
    far: Reach,
    near: Option<Reach>,
    embedding_scale: f32,
    gate: Gate,
    epsilon: f32,
    vocabulary: usize,
}

/// How far a layer looks back.
#[derive(Clone, Debug)]
struct Reach {
    /// `layer` is set anew for every layer.
    attention: Attention,
    rope: Rope,
}

struct Weights<W> {
    embedding: W,
    layers: Vec<Layer<W>>,
    norm: W,
    /// `None`: the embedding is used (tied weights).
    head: Option<W>,
}

struct Layer<W> {
    /// Looks back a limited way.
    near: bool,
    attention_norm: W,
    q: Linear<W>,
    k: Linear<W>,
    v: Linear<W>,
    q_norm: Option<W>,
    k_norm: Option<W>,
    output: Linear<W>,
    /// Of what attention gives, where the model norms that.
    attended_norm: Option<W>,
    ffn_norm: W,
    gate: W,
    up: W,
    down: W,
    /// Of what the feed-forward block gives, where the model norms that.
    fed_norm: Option<W>,
}

/// A matrix and its bias.
struct Linear<W> {
    weight: W,
    bias: Option<W>,
}

/// Activations, reused between steps.
#[derive(Default)]
struct Scratch<B> {
    /// The residual stream.
    x: B,
    /// Normed input of a block, then its output.
    h: B,
    q: B,
    k: B,
    v: B,
    /// Output of attention; a normed query or key before that, a normed output of a block behind it.
    a: B,
    gate: B,
    up: B,
    logits: B,
}

impl<D: Device> Backend for Llama<D> {
    fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    fn pool(&self) -> Arc<KvPool> {
        Arc::clone(&self.pool)
    }

    fn interrupt(&self) -> Option<Interrupt> {
        Some(self.interrupt.clone())
    }

    fn step(&mut self, batch: &[Slice<'_>], out: &mut Vec<Sampled>) -> Result<(), BackendError> {
        self.run(batch, out)
    }
}
