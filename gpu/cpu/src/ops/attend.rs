//! Paged attention, straight over the pool.
//!
//! An item is a few rows of one sequence and one key-value head. All scores of a query are computed first, then its softmax, then
//! the weighted sum of values, position by position in ascending order. Blocks are the outer loop, so a block of keys or
//! values is fetched once for all queries of the item. Each query's numbers are those it would have alone.
#![allow(unsafe_code)]

mod scores;
mod values;

use std::ops::Range;

use engine::{Attention, Half, KvPool, Span};

use super::Exec;
use crate::math::exp;
use crate::matrix::{Matrix, with_scratch};
use crate::simd::{Kernel, LANES, Simd};
use crate::split::Output;

/// Rows of an item.
const ROWS: usize = 4;

/// Causal attention of every row over its own sequence, rows of this step included.
pub(crate) fn attend(
    exec: &mut Exec,
    pool: &KvPool,
    attention: &Attention,
    spans: &[Span<'_>],
    q: &Matrix,
    out: &mut Matrix,
) {
    let shape = pool.shape();
    let &Attention {
        heads,
        kv_heads,
        head_dim,
        ..
    } = attention;
    assert_eq!(
        (shape.kv_heads, shape.head_dim),
        (kv_heads, head_dim),
        "the pool's heads are the layer's"
    );
    assert!(
        heads % kv_heads == 0 && q.width() == heads * head_dim,
        "{} query numbers a row",
        q.width()
    );
    let output = Output::new(out.reshape(q.rows(), q.width()));
    let items: Vec<(&Span<'_>, usize)> = spans
        .iter()
        .flat_map(|span| (0..span.rows).step_by(ROWS).map(move |row| (span, row)))
        .collect();
    let level = exec.level;
    exec.team.run(items.len() * kv_heads, 1, &|i| {
        // From the end: the last rows of a prompt have most to do.
        let (span, row) = items[items.len() - 1 - i / kv_heads];
        let pages = Pages {
            pool,
            blocks: span.blocks,
            layer: attention.layer,
            kv_head: i % kv_heads,
        };
        let rows = ROWS.min(span.rows - row);
        let item = Item {
            pages,
            attention,
            first_row: span.row + row,
            rows,
            position: span.start as usize + row,
            q,
            output: &output,
        };
        with_scratch(item.scratch_len(), |scratch| level.run(Attend { item, scratch }));
    });
}

/// One head of one layer of a sequence in the pool.
#[derive(Copy, Clone)]
struct Pages<'a> {
    pool: &'a KvPool,
    blocks: &'a [engine::BlockIndex],
    layer: usize,
    kv_head: usize,
}

impl<'a> Pages<'a> {
    /// The keys or values in the sequence's `i`th block: one row of `head_dim` numbers a token.
    #[inline(always)]
    fn block(self, i: usize, half: Half) -> &'a [f32] {
        let rows = self.pool.ptr(self.blocks[i], self.layer, half, self.kv_head);
        // SAFETY: `rows` points to so many numbers, which live as long as the pool. The sequence holds the lease of its blocks, so
        // nobody writes them during the call.
        unsafe { std::slice::from_raw_parts(rows, self.pool.shape().head_len()) }
    }
}

/// Some rows of a sequence, one key-value head.
struct Item<'a> {
    pages: Pages<'a>,
    attention: &'a Attention,
    /// In the activations.
    first_row: usize,
    rows: usize,
    /// Of the first row, in its sequence.
    position: usize,
    q: &'a Matrix,
    output: &'a Output<'a>,
}

/// One query of an item: it looks at the positions `first..end`.
#[derive(Copy, Clone)]
struct Query {
    first: usize,
    end: usize,
    /// Where its numbers start in the activations.
    at: usize,
}

impl Item<'_> {
    fn queries(&self) -> usize {
        self.rows * (self.attention.heads / self.attention.kv_heads)
    }

    fn query(&self, i: usize) -> Query {
        let group = self.attention.heads / self.attention.kv_heads;
        let (row, head) = (i / group, self.pages.kv_head * group + i % group);
        let end = self.position + row + 1;
        Query {
            first: self
                .attention
                .window
                .map_or(0, |window| end.saturating_sub(window.max(1) as usize)),
            end,
            at: (self.first_row + row) * self.q.width() + head * self.attention.head_dim,
        }
    }

    /// Numbers from the scores of one query to those of the next: whole vectors.
    fn score_stride(&self) -> usize {
        (0..self.queries())
            .map(|i| self.query(i))
            .map(|q| (q.end - q.first).next_multiple_of(LANES))
            .max()
            .unwrap_or(0)
    }

    /// Scores, sums of values and factors of all queries.
    fn scratch_len(&self) -> usize {
        self.queries() * (self.score_stride() + self.attention.head_dim.next_multiple_of(LANES) + LANES)
    }

    /// The blocks that any of the queries looks at.
    fn blocks(&self) -> Range<usize> {
        let tokens = self.pages.pool.shape().block_tokens;
        self.query(0).first / tokens..(self.position + self.rows).div_ceil(tokens)
    }
}

impl Query {
    /// What the query looks at of the block of positions `base..base + tokens`, counted from `base`.
    #[inline(always)]
    fn part(&self, base: usize, tokens: usize) -> Range<usize> {
        self.first.max(base) - base..self.end.clamp(base, base + tokens) - base
    }
}

struct Attend<'a> {
    item: Item<'a>,
    scratch: &'a mut [f32],
}

impl Kernel for Attend<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { item, scratch } = self;
        let dim = item.attention.head_dim;
        let tokens = item.pages.pool.shape().block_tokens;
        let (stride, sum_stride) = (item.score_stride(), dim.next_multiple_of(LANES));
        let (scores, rest) = scratch.split_at_mut(item.queries() * stride);
        let (sums, factors) = rest.split_at_mut(item.queries() * sum_stride);

        // Loops and not closures, here and below: a closure is not reliably inlined, and would not have the level's instructions.
        for block in item.blocks() {
            let keys = item.pages.block(block, Half::Keys);
            for i in 0..item.queries() {
                let query = item.query(i);
                let part = query.part(block * tokens, tokens);
                if part.is_empty() {
                    continue;
                }
                let q = &item.q.numbers()[query.at..][..dim];
                let at = i * stride + block * tokens + part.start - query.first;
                let scores = &mut scores[at..at + part.len()];
                let keys = &keys[part.start * dim..part.end * dim];
                scores::scores(simd, q, keys, item.attention.scale, scores);
            }
        }
        for i in 0..item.queries() {
            let query = item.query(i);
            let scores = &mut scores[i * stride..][..stride];
            factors[i] = softmax(simd, scores, query.end - query.first);
        }
        sums.fill(0.0);
        for block in item.blocks() {
            let values = item.pages.block(block, Half::Values);
            for i in 0..item.queries() {
                let query = item.query(i);
                let part = query.part(block * tokens, tokens);
                if part.is_empty() {
                    continue;
                }
                let at = i * stride + block * tokens + part.start - query.first;
                let weights = &scores[at..at + part.len()];
                let values = &values[part.start * dim..part.end * dim];
                values::accumulate(simd, weights, values, &mut sums[i * sum_stride..][..dim]);
            }
        }
        for i in 0..item.queries() {
            // SAFETY: queries of different items, and of one item, have different places in the output.
            let out = unsafe { item.output.part(item.query(i).at, dim) };
            for (out, sum) in out.iter_mut().zip(&sums[i * sum_stride..]) {
                *out = sum * factors[i];
            }
        }
    }
}

/// Turns the first `n` scores (of whole vectors) into exp(score − maximum) and gives one over their sum.
#[inline(always)]
fn softmax<S: Simd>(simd: S, scores: &mut [f32], n: usize) -> f32 {
    let used = n.next_multiple_of(LANES);
    let scores = &mut scores[..used];
    scores[n..].fill(f32::NEG_INFINITY);
    let (lanes, _) = scores.as_chunks_mut::<LANES>();
    let mut largest = [f32::NEG_INFINITY; LANES];
    for lane in lanes.iter() {
        for (largest, score) in largest.iter_mut().zip(lane) {
            *largest = if score > largest { *score } else { *largest };
        }
    }
    let mut max = f32::NEG_INFINITY;
    for largest in largest {
        max = if largest > max { largest } else { max };
    }
    for lane in lanes.iter_mut() {
        for score in lane {
            *score = exp(*score - max);
        }
    }
    // What is beyond the end came out as the smallest number, not as 0.
    scores[n..].fill(0.0);
    let ones = simd.splat(1.0);
    let mut sum = simd.zero();
    for lane in scores.as_chunks::<LANES>().0 {
        sum = simd.fma(simd.load(lane), ones, sum);
    }
    1.0 / simd.sum(sum)
}

#[cfg(test)]
#[path = "attend_tests.rs"]
mod tests;
