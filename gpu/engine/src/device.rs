//! What an architecture's forward pass needs of a device. Implemented by `cpu` (and later `cuda`); used by `model`.
//!
//! Activations are row-major `f32` matrices of `rows × width`, one row a token. Each output element is accumulated in one fixed
//! order that depends on nothing but the element's own inputs (batch invariance).

use std::sync::Arc;

use crate::backend::{BackendError, BlockIndex, Token};
use crate::pool::{KvPool, PoolShape};

/// How the numbers of a weight tensor are stored. GGML block formats keep GGML's byte layout.
#[derive(Copy, Clone, Eq, PartialEq, Hash, Debug)]
#[allow(missing_docs, reason = "the names are the formats' own")]
pub enum DType {
    F32,
    F16,
    Bf16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q4K,
    Q6K,
}

impl DType {
    /// Numbers and bytes of one block; where the format has no blocks, of one number.
    #[must_use]
    pub const fn block(self) -> (usize, usize) {
        match self {
            Self::F32 => (1, 4),
            Self::F16 | Self::Bf16 => (1, 2),
            Self::Q4_0 => (32, 18),
            Self::Q4_1 => (32, 20),
            Self::Q5_0 => (32, 22),
            Self::Q5_1 => (32, 24),
            Self::Q8_0 => (32, 34),
            Self::Q4K => (256, 144),
            Self::Q6K => (256, 210),
        }
    }
}

/// A weight tensor in host memory: `rows` rows (outputs) of `columns` numbers (inputs) each.
#[derive(Clone)]
pub struct TensorView<'a> {
    /// Its name in the model file, for errors.
    pub name: &'a str,
    /// Storage format.
    pub dtype: DType,
    /// Outputs.
    pub rows: usize,
    /// Inputs; a multiple of the format's block size.
    pub columns: usize,
    /// `rows` × bytes of a row, tightly packed.
    pub bytes: &'a [u8],
}

/// Rotary position embedding.
#[derive(Clone, Debug)]
pub struct Rope {
    /// Base of the frequencies.
    pub base: f32,
    /// Rotated dimensions of each head.
    pub dims: usize,
    /// Pairs are (2i, 2i+1) if true (GGUF llama), (i, i + dims/2) if false (NeoX, Qwen, Gemma).
    pub interleaved: bool,
    /// Per-pair divisors of the frequencies (Llama 3 scaling), if any.
    pub factors: Option<Vec<f32>>,
}

/// The rows of one sequence in a step, for attention.
#[derive(Clone, Debug)]
pub struct Span<'a> {
    /// First row of the activations that belongs to this sequence.
    pub row: usize,
    /// Number of rows.
    pub rows: usize,
    /// Position of the first row in its sequence.
    pub start: u32,
    /// The sequence's block table.
    pub blocks: &'a [BlockIndex],
}

/// Shape of attention in one layer.
#[derive(Clone, Debug)]
pub struct Attention {
    /// Index of the layer.
    pub layer: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Numbers a head.
    pub head_dim: usize,
    /// Factor applied to the scores before the softmax.
    pub scale: f32,
    /// Look back at most this many positions (sliding window), if any.
    pub window: Option<u32>,
}

/// The gate of a feed-forward block.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Gate {
    /// x · sigmoid(x).
    Silu,
    /// The tanh approximation of GELU.
    Gelu,
}

/// A device that runs a decoder's operations. Calls run in order; a call may be asynchronous until [`Device::read`].
pub trait Device: Send + 'static {
    /// A weight on the device.
    type Weight: Send;
    /// An activation matrix on the device. Grows as needed and is reused between steps.
    type Buffer: Send + Default;

    /// Names the numerics: devices whose results agree bit for bit share it. Part of the layout hash.
    fn numerics(&self) -> &'static str;

    /// Allocates the KV pool in memory this device can use.
    ///
    /// # Errors
    /// When there is not that much memory.
    fn allocate_pool(&mut self, shape: PoolShape) -> Result<Arc<KvPool>, BackendError>;

    /// Takes a weight matrix (or a vector, as one row), repacking as it likes.
    ///
    /// # Errors
    /// For a format this device has no kernel for, or a size that does not fit the shape.
    fn load(&mut self, tensor: TensorView<'_>) -> Result<Self::Weight, BackendError>;

    /// Sets `out` to one row a token: the token's row of `table`, times `scale`.
    fn embed(&mut self, table: &Self::Weight, tokens: &[Token], scale: f32, out: &mut Self::Buffer);

    /// `out[r] = x[r] / rms(x[r]) * weight`, over groups of `weight`'s length (so it also norms heads one by one).
    fn rms_norm(&mut self, x: &Self::Buffer, weight: &Self::Weight, epsilon: f32, out: &mut Self::Buffer);

    /// `out = x · weightᵀ + bias`.
    fn linear(
        &mut self,
        x: &Self::Buffer,
        weight: &Self::Weight,
        bias: Option<&Self::Weight>,
        out: &mut Self::Buffer,
    );

    /// Rotates the heads of `head_dim` numbers in every row of `x`; row `i` of a span is at position `start + i`.
    fn rope(&mut self, x: &mut Self::Buffer, head_dim: usize, spans: &[Span<'_>], rope: &Rope);

    /// Writes keys and values of every row into the pool.
    fn store(
        &mut self,
        pool: &KvPool,
        attention: &Attention,
        spans: &[Span<'_>],
        k: &Self::Buffer,
        v: &Self::Buffer,
    );

    /// Causal attention of every row over its own sequence in the pool, rows of this step included.
    fn attend(
        &mut self,
        pool: &KvPool,
        attention: &Attention,
        spans: &[Span<'_>],
        q: &Self::Buffer,
        out: &mut Self::Buffer,
    );

    /// `gate = act(gate) * up`, element by element.
    fn gate(&mut self, gate: &mut Self::Buffer, up: &Self::Buffer, act: Gate);

    /// `x += y`.
    fn add(&mut self, x: &mut Self::Buffer, y: &Self::Buffer);

    /// Sets `out` to the given rows of `x`, in the given order.
    fn select(&mut self, x: &Self::Buffer, rows: &[usize], out: &mut Self::Buffer);

    /// Waits for everything queued and gives the numbers of `x`, row after row.
    ///
    /// # Errors
    /// When the device failed since the last call.
    fn read<'a>(&mut self, x: &'a mut Self::Buffer) -> Result<&'a [f32], BackendError>;
}
