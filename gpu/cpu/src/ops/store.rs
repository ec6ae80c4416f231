//! Keys and values into the pool.
#![allow(unsafe_code)]

use engine::{Attention, Half, KvPool, Span};

use crate::matrix::Matrix;

/// Writes the keys and values of every row into its sequence's blocks.
pub(crate) fn store(pool: &KvPool, attention: &Attention, spans: &[Span<'_>], k: &Matrix, v: &Matrix) {
    let shape = pool.shape();
    let (heads, dim, tokens) = (attention.kv_heads, attention.head_dim, shape.block_tokens);
    assert_eq!(
        (shape.kv_heads, shape.head_dim),
        (heads, dim),
        "the pool's heads are the layer's"
    );
    assert_eq!(
        (k.width(), v.width()),
        (heads * dim, heads * dim),
        "a key and a value for every head"
    );
    for span in spans {
        for i in 0..span.rows {
            let position = span.start as usize + i;
            let (block, token) = (span.blocks[position / tokens], position % tokens);
            for (half, from) in [(Half::Keys, k), (Half::Values, v)] {
                for (head, from) in from.row(span.row + i).chunks_exact(dim).enumerate() {
                    let rows = pool.ptr(block, attention.layer, half, head);
                    // SAFETY: `rows` points to `tokens` rows of `dim` numbers, and token < tokens. The sequence of the
                    // span holds the lease of the block, so nobody else writes or reads it now.
                    let to = unsafe { std::slice::from_raw_parts_mut(rows.add(token * dim), dim) };
                    to.copy_from_slice(from);
                }
            }
        }
    }
}
