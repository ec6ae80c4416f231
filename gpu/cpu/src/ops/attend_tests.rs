//! Attention against its definition, and against itself in other company.

use std::sync::Arc;

use engine::{BlockIndex, PoolShape};

use super::*;
use crate::ops::store;
use crate::testing::{check_levels, close, matrix, numbers, same_bits};

/// A layer, and how its cache is cut into blocks.
#[derive(Clone, Copy)]
struct Case {
    heads: usize,
    kv_heads: usize,
    dim: usize,
    block_tokens: usize,
    window: Option<u32>,
}

const SMOL: Case = Case {
    heads: 9,
    kv_heads: 3,
    dim: 64,
    block_tokens: 16,
    window: None,
};

/// A sequence's queries, keys and values: one row a position.
struct Sequence {
    length: usize,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    blocks: Vec<BlockIndex>,
}

impl Case {
    fn attention(self) -> Attention {
        Attention {
            layer: 1,
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim: self.dim,
            scale: 0.3,
            window: self.window,
        }
    }

    fn pool(self, blocks: u32) -> Arc<KvPool> {
        KvPool::new(PoolShape {
            blocks,
            block_tokens: self.block_tokens,
            layers: 2,
            kv_heads: self.kv_heads,
            head_dim: self.dim,
        })
        .unwrap()
    }

    /// A sequence whose blocks are `first`, `first + 3`, ... in a pool of enough.
    fn sequence(self, seed: u64, length: usize, first: BlockIndex) -> Sequence {
        let blocks = length.div_ceil(self.block_tokens);
        Sequence {
            length,
            q: numbers(seed, length * self.heads * self.dim)
                .iter()
                .map(|q| q * 3.0)
                .collect(),
            k: numbers(seed + 1, length * self.kv_heads * self.dim),
            v: numbers(seed + 2, length * self.kv_heads * self.dim),
            blocks: (0..u32::try_from(blocks).unwrap())
                .map(|i| first + i * 3)
                .collect(),
        }
    }

    /// Attention of all rows by the definition, in double precision.
    fn exact(self, s: &Sequence) -> Vec<f64> {
        let (kv_width, group) = (self.kv_heads * self.dim, self.heads / self.kv_heads);
        let mut out = Vec::new();
        for position in 0..s.length {
            let first = self
                .window
                .map_or(0, |w| (position + 1).saturating_sub(w as usize));
            for head in 0..self.heads {
                let q = &s.q[(position * self.heads + head) * self.dim..][..self.dim];
                let row = |from: &[f32], p: usize| -> Vec<f64> {
                    let at = p * kv_width + head / group * self.dim;
                    from[at..at + self.dim].iter().map(|x| f64::from(*x)).collect()
                };
                let dot = |p| {
                    row(&s.k, p)
                        .iter()
                        .zip(q)
                        .map(|(k, q)| k * f64::from(*q))
                        .sum::<f64>()
                };
                let scores: Vec<f64> = (first..=position).map(|p| (0.3 * dot(p)).exp()).collect();
                let total: f64 = scores.iter().sum();
                let mut sum = vec![0.0; self.dim];
                for (p, score) in (first..=position).zip(&scores) {
                    sum.iter_mut()
                        .zip(row(&s.v, p))
                        .for_each(|(s, v)| *s += score / total * v);
                }
                out.extend(sum);
            }
        }
        out
    }
}

/// One step: rows `ranges[i]` of sequence `i`, in this order. Gives the rows of the result.
fn step(exec: &mut Exec, case: Case, pool: &KvPool, parts: &[(&Sequence, Range<usize>)]) -> Vec<f32> {
    let part = |from: fn(&Sequence) -> &[f32], width: usize| {
        let all: Vec<f32> = parts
            .iter()
            .flat_map(|(s, range)| from(s)[range.start * width..range.end * width].to_vec())
            .collect();
        matrix(width, &all)
    };
    let q = part(|s| &s.q, case.heads * case.dim);
    let k = part(|s| &s.k, case.kv_heads * case.dim);
    let v = part(|s| &s.v, case.kv_heads * case.dim);
    let mut row = 0;
    let spans: Vec<Span<'_>> = parts
        .iter()
        .map(|(s, range)| {
            row += range.len();
            let start = u32::try_from(range.start).unwrap();
            Span {
                row: row - range.len(),
                rows: range.len(),
                start,
                blocks: &s.blocks,
            }
        })
        .collect();
    let mut out = Matrix::default();
    store(pool, &case.attention(), &spans, &k, &v);
    attend(exec, pool, &case.attention(), &spans, &q, &mut out);
    out.numbers().to_vec()
}

/// Against the definition; then in chunks of several sizes, and in a step with three other sequences: the same bits.
#[track_caller]
fn check(case: Case, length: usize) {
    let blocks = u32::try_from(length.div_ceil(case.block_tokens)).unwrap() * 3 + 40;
    let s = case.sequence(11, length, 1);
    let expected = case.exact(&s);
    check_levels(|exec| {
        let whole = step(exec, case, &case.pool(blocks), &[(&s, 0..length)]);
        close(&whole, &expected, 2e-6, "attention");
        for chunk in [1, 7, 16] {
            let pool = case.pool(blocks);
            let mut rows = Vec::new();
            for start in (0..length).step_by(chunk) {
                rows.extend(step(exec, case, &pool, &[(&s, start..length.min(start + chunk))]));
            }
            same_bits(&rows, &whole, &format!("chunks of {chunk}"));
        }
        let pool = case.pool(blocks);
        let others = [
            case.sequence(20, 5, 2),
            case.sequence(30, 21, 3),
            case.sequence(40, 1, 12),
        ];
        let before = length - 1;
        step(exec, case, &pool, &[(&s, 0..before), (&others[1], 0..20)]);
        let parts = [
            (&others[0], 0..5),
            (&others[1], 20..21),
            (&s, before..length),
            (&others[2], 0..1),
        ];
        let width = case.heads * case.dim;
        let rows = step(exec, case, &pool, &parts);
        same_bits(
            &rows[6 * width..7 * width],
            &whole[before * width..],
            "in company",
        );
        whole
    });
}

#[test]
fn grouped_heads() {
    check(SMOL, 50);
    check(SMOL, 16);
    check(SMOL, 2);
}

#[test]
fn other_shapes() {
    check(
        Case {
            heads: 4,
            kv_heads: 4,
            dim: 24,
            block_tokens: 5,
            window: None,
        },
        23,
    );
    check(
        Case {
            heads: 2,
            kv_heads: 1,
            dim: 128,
            block_tokens: 32,
            window: None,
        },
        40,
    );
    check(
        Case {
            heads: 4,
            kv_heads: 2,
            dim: 8,
            block_tokens: 4,
            window: None,
        },
        19,
    );
}

#[test]
fn a_sliding_window() {
    check(
        Case {
            window: Some(7),
            ..SMOL
        },
        45,
    );
    check(
        Case {
            heads: 2,
            kv_heads: 1,
            dim: 80,
            block_tokens: 3,
            window: Some(1),
        },
        8,
    );
}
