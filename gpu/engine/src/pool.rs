//! The paged KV pool: one region of equal blocks, allocated once, registered with the transfer once.
//!
//! Layout: `[block][layer][k|v][kv head][token][dim]`, `f32`. Block-major, so that a block (and a run of neighbouring blocks) is
//! one contiguous piece: a transfer pays for descriptors more than for bytes.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::backend::{BackendError, BlockIndex};
use crate::region::Region;
use kv::{KvMemory, OutOfRange};

/// Changes whenever the meaning of the bytes in a block changes.
const LAYOUT_VERSION: u64 = 1;

/// Bytes of one number.
const NUMBER_BYTES: usize = size_of::<f32>();

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
        self.layers * 2 * self.kv_heads * self.head_len()
    }

    /// Bytes in one block.
    #[must_use]
    pub fn block_bytes(&self) -> usize {
        self.block_len() * NUMBER_BYTES
    }

    /// Numbers of one head in one block: `block_tokens` rows of `head_dim`.
    #[must_use]
    pub fn head_len(&self) -> usize {
        self.block_tokens * self.head_dim
    }

    /// Index, within a block, of the first number of a head.
    ///
    /// # Panics
    /// When the shape has no such layer or head.
    #[must_use]
    pub fn head_offset(&self, layer: usize, half: Half, kv_head: usize) -> usize {
        assert!(layer < self.layers, "layer {layer} of {}", self.layers);
        assert!(kv_head < self.kv_heads, "kv head {kv_head} of {}", self.kv_heads);
        ((layer * 2 + half as usize) * self.kv_heads + kv_head) * self.head_len()
    }

    /// Bytes of the whole pool, or `None` if that overflows or any extent is zero.
    fn checked_bytes(&self) -> Option<usize> {
        let extents = [
            self.block_tokens,
            self.layers,
            self.kv_heads,
            self.head_dim,
            2,
            NUMBER_BYTES,
        ];
        let blocks = usize::try_from(self.blocks).ok()?;
        let bytes = extents.into_iter().try_fold(blocks, usize::checked_mul)?;
        (bytes > 0).then_some(bytes)
    }
}

/// Keys or values.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Half {
    /// Keys.
    Keys = 0,
    /// Values.
    Values = 1,
}

/// The pool. Who may touch which block is decided by the worker's ledger; the pool only checks bounds.
pub struct KvPool {
    shape: PoolShape,
    region: Region,
}

impl KvPool {
    /// Allocates a pool of zeros. Pages are committed when they are first written.
    ///
    /// # Errors
    /// When the shape is empty, or there is not that much memory.
    pub fn new(shape: PoolShape) -> Result<Arc<Self>, BackendError> {
        let bytes = shape
            .checked_bytes()
            .ok_or_else(|| BackendError(format!("a KV pool of shape {shape:?} is empty or too large")))?;
        let region = Region::zeroed(bytes)
            .ok_or_else(|| BackendError(format!("no memory for a KV pool of {bytes} bytes")))?;
        Ok(Arc::new(Self { shape, region }))
    }

    /// Its shape.
    #[must_use]
    pub fn shape(&self) -> PoolShape {
        self.shape
    }

    /// Address of `block_tokens × head_dim` numbers: the rows of one head in one block. Valid as long as the pool lives; reading and
    /// writing through it is the caller's unsafe business, under the lease of the sequence that owns the block.
    ///
    /// # Panics
    /// When there is no such block, layer or head. (The engine checks every block table before a step sees it.)
    #[must_use]
    pub fn ptr(&self, block: BlockIndex, layer: usize, half: Half, kv_head: usize) -> *mut f32 {
        assert!(
            block < self.shape.blocks,
            "block {block} of {}",
            self.shape.blocks
        );
        let number = block as usize * self.shape.block_len() + self.shape.head_offset(layer, half, kv_head);
        self.region
            .at(number * NUMBER_BYTES, self.shape.head_len() * NUMBER_BYTES)
            .cast::<f32>()
    }

    fn offset_of(&self, block: BlockIndex, offset: usize, len: usize) -> Result<usize, OutOfRange> {
        let block_bytes = self.shape.block_bytes();
        let inside = offset.checked_add(len).is_some_and(|end| end <= block_bytes);
        if block < self.shape.blocks && inside {
            Ok(block as usize * block_bytes + offset)
        } else {
            Err(self.outside(block, offset, len))
        }
    }

    fn outside(&self, block: BlockIndex, offset: usize, len: usize) -> OutOfRange {
        OutOfRange {
            block,
            offset,
            len,
            blocks: self.shape.blocks,
            block_bytes: self.shape.block_bytes(),
        }
    }
}

/// The pool as a transfer sees it. The base is aligned to a page.
impl KvMemory for KvPool {
    fn block_bytes(&self) -> usize {
        self.shape.block_bytes()
    }

    fn blocks(&self) -> u32 {
        self.shape.blocks
    }

    fn base(&self) -> *mut u8 {
        self.region.base()
    }

    fn read_into(&self, block: BlockIndex, offset: usize, bytes: &mut [u8]) -> Result<(), OutOfRange> {
        let start = self.offset_of(block, offset, bytes.len())?;
        if self.region.copy_out(start, bytes) {
            Ok(())
        } else {
            Err(self.outside(block, offset, bytes.len()))
        }
    }

    fn write_from(&self, block: BlockIndex, offset: usize, bytes: &[u8]) -> Result<(), OutOfRange> {
        let start = self.offset_of(block, offset, bytes.len())?;
        if self.region.copy_in(start, bytes) {
            Ok(())
        } else {
            Err(self.outside(block, offset, bytes.len()))
        }
    }
}

impl fmt::Debug for KvPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KvPool")
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

/// What two workers must agree on before a block of one means anything to the other: the layout of a block (the number of blocks may
/// differ), the model's `fingerprint` (weights and their storage), and the device's numerics ([`Device::numerics`]).
///
/// [`Device::numerics`]: crate::Device::numerics
#[must_use]
pub fn layout_hash(shape: &PoolShape, fingerprint: &str, numerics: &str) -> u64 {
    let mut hash = Sha256::new();
    hash.update(LAYOUT_VERSION.to_le_bytes());
    for extent in [shape.block_tokens, shape.layers, shape.kv_heads, shape.head_dim] {
        hash.update((extent as u64).to_le_bytes());
    }
    for text in [fingerprint, numerics] {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    let mut first = [0_u8; 8];
    first.copy_from_slice(&hash.finalize()[..8]);
    u64::from_le_bytes(first)
}
