//! The bytes a mock writes as KV: for every position, an expansion of the *chain*, a hash of the salt and of all tokens up to there.

use engine::{BlockIndex, Half, KvMemory, KvPool, OutOfRange, PoolShape, Token};

/// Hash of a sequence's beginning.
pub(crate) type Chain = u64;

/// Bytes of a chain. The first row of a position begins with it, so that a chunk can go on where the one before ended.
const CHAIN_BYTES: usize = size_of::<Chain>();

/// The chain of nothing.
pub(crate) fn root(salt: u64) -> Chain {
    mix(salt ^ 0x6d6f_636b_2d6b_7621)
}

/// The chain after one more token.
pub(crate) fn extend(chain: Chain, token: Token) -> Chain {
    mix(chain.rotate_left(23) ^ u64::from(token))
}

/// A well-spread function of 64 bits (the finalizer of SplitMix64). Not cryptographic.
pub(crate) fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// One position in a sequence's KV.
#[derive(Copy, Clone)]
pub(crate) struct Place {
    pub(crate) block: BlockIndex,
    /// Row within the block.
    token: usize,
}

impl Place {
    /// Where a position lies; `None` if the block table is too short.
    pub(crate) fn of(position: u32, blocks: &[BlockIndex], shape: &PoolShape) -> Option<Self> {
        let position = position as usize;
        let block = *blocks.get(position / shape.block_tokens)?;
        Some(Self {
            block,
            token: position % shape.block_tokens,
        })
    }

    /// Writes the pattern of `chain` into every layer and head.
    pub(crate) fn write(self, pool: &KvPool, chain: Chain) -> Result<(), OutOfRange> {
        let shape = pool.shape();
        let mut row = Vec::new();
        for (index, offset) in self.rows(&shape).enumerate() {
            fill(&mut row, &shape, chain, index);
            pool.write_from(self.block, offset, &row)?;
        }
        Ok(())
    }

    /// Whether every layer and head has the pattern of `chain`.
    pub(crate) fn holds(self, pool: &KvPool, chain: Chain) -> Result<bool, OutOfRange> {
        let shape = pool.shape();
        let mut wanted = Vec::new();
        let mut found = vec![0; shape.head_dim * size_of::<f32>()];
        for (index, offset) in self.rows(&shape).enumerate() {
            fill(&mut wanted, &shape, chain, index);
            pool.read_into(self.block, offset, &mut found)?;
            if wanted != found {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The chain the position says it has.
    pub(crate) fn chain(self, pool: &KvPool) -> Result<Chain, OutOfRange> {
        let mut bytes = [0; CHAIN_BYTES];
        let offset = self.offset(&pool.shape(), 0, Half::Keys, 0);
        pool.read_into(self.block, offset, &mut bytes)?;
        Ok(Chain::from_le_bytes(bytes))
    }

    /// Byte offsets, in the block, of the position's rows.
    fn rows(self, shape: &PoolShape) -> impl Iterator<Item = usize> {
        let shape = *shape;
        (0..shape.layers).flat_map(move |layer| {
            [Half::Keys, Half::Values].into_iter().flat_map(move |half| {
                (0..shape.kv_heads).map(move |head| self.offset(&shape, layer, half, head))
            })
        })
    }

    fn offset(self, shape: &PoolShape, layer: usize, half: Half, head: usize) -> usize {
        (shape.head_offset(layer, half, head) + self.token * shape.head_dim) * size_of::<f32>()
    }
}

/// Sets `row` to the pattern of row `index` of a position: the chain itself at the start of the first, hashes of it elsewhere.
fn fill(row: &mut Vec<u8>, shape: &PoolShape, chain: Chain, index: usize) {
    let bytes = shape.head_dim * size_of::<f32>();
    row.clear();
    let mut word = if index == 0 {
        chain
    } else {
        mix(chain ^ mix(index as u64))
    };
    while row.len() < bytes {
        row.extend_from_slice(&word.to_le_bytes());
        word = mix(word);
    }
    row.truncate(bytes);
}
