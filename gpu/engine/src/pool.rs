//! The paged KV pool: one region of equal blocks, allocated once, registered with the transfer once.
//!
//! Layout: `[block][layer][k|v][kv head][token][dim]`, `f32`. Block-major, so that a block (and a run of neighbouring blocks) is
//! one contiguous piece: a transfer pays for descriptors more than for bytes.

/// Shape of a pool.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct PoolShape {
    /// Number of blocks.
    pub blocks: u32,
    /// Tokens a block.
    pub block_tokens: usize,
    /// Layers.
    pub layers: usize,
    /// Key and value heads a layer.
    pub kv_heads: usize,
    /// Numbers a head.
    pub head_dim: usize,
}

impl PoolShape {
    /// Numbers (`f32`) in one block.
    #[must_use]
    pub fn block_len(&self) -> usize {
        self.layers * 2 * self.kv_heads * self.block_tokens * self.head_dim
    }
}

/// The pool. Who may touch which block is decided by the worker's ledger; the pool only checks bounds.
#[derive(Debug)]
pub struct KvPool {
    shape: PoolShape,
}

impl KvPool {
    /// Its shape.
    #[must_use]
    pub fn shape(&self) -> PoolShape {
        self.shape
    }
}
