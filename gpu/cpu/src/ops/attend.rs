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
            group: heads / kv_heads,
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
    /// Query heads that share the key-value head.
    group: usize,
    /// In the activations.
    first_row: usize,
    rows: usize,
    /// Of the first row, in its sequence.
    position: usize,
    q: &'a Matrix,
    output: &'a Output<'a, f32>,
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
    /// The query of a row and of a head of the group.
    #[inline(always)]
    fn query(&self, row: usize, head: usize) -> Query {
        let end = self.position + row + 1;
        let head = self.pages.kv_head * self.group + head;
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
        (0..self.rows)
            .map(|row| self.query(row, 0))
            .map(|q| (q.end - q.first).next_multiple_of(LANES))
            .max()
            .unwrap_or(0)
    }

    /// Scores, sums of values and a factor of every query.
    fn scratch_len(&self) -> usize {
        let sums = self.attention.head_dim.next_multiple_of(LANES);
        self.rows * self.group * (self.score_stride() + sums + 1)
    }

    /// The blocks that any of the queries looks at.
    fn blocks(&self) -> Range<usize> {
        let tokens = self.pages.pool.shape().block_tokens;
        self.query(0, 0).first / tokens..(self.position + self.rows).div_ceil(tokens)
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
        let queries = item.rows * item.group;
        let (scores, rest) = scratch.split_at_mut(queries * item.score_stride());
        let (sums, factors) = rest.split_at_mut(queries * item.attention.head_dim.next_multiple_of(LANES));
        let mut work = Work {
            item: &item,
            scores,
            sums,
            factors,
        };
        work.score(simd);
        work.weigh(simd);
        work.sum(simd);
        work.write();
    }
}

/// An item and its scratch: of every query, row by row, its scores, sums of values and factor.
struct Work<'a> {
    item: &'a Item<'a>,
    scores: &'a mut [f32],
    sums: &'a mut [f32],
    factors: &'a mut [f32],
}

/// Loops and not closures: a closure is not reliably inlined, and would not have the level's instructions.
impl Work<'_> {
    #[inline(always)]
    fn score<S: Simd>(&mut self, simd: S) {
        let item = self.item;
        let (dim, tokens) = (item.attention.head_dim, item.pages.pool.shape().block_tokens);
        let stride = item.score_stride();
        for block in item.blocks() {
            let keys = item.pages.block(block, Half::Keys);
            for row in 0..item.rows {
                for head in 0..item.group {
                    let query = item.query(row, head);
                    let part = query.part(block * tokens, tokens);
                    if part.is_empty() {
                        continue;
                    }
                    let q = &item.q.numbers()[query.at..][..dim];
                    let at = (row * item.group + head) * stride + block * tokens + part.start - query.first;
                    let scores = &mut self.scores[at..at + part.len()];
                    let keys = &keys[part.start * dim..part.end * dim];
                    scores::scores(simd, q, keys, item.attention.scale, scores);
                }
            }
        }
    }

    #[inline(always)]
    fn weigh<S: Simd>(&mut self, simd: S) {
        let stride = self.item.score_stride();
        for row in 0..self.item.rows {
            for head in 0..self.item.group {
                let query = self.item.query(row, head);
                let i = row * self.item.group + head;
                let scores = &mut self.scores[i * stride..][..stride];
                self.factors[i] = softmax(simd, scores, query.end - query.first);
            }
        }
    }

    #[inline(always)]
    fn sum<S: Simd>(&mut self, simd: S) {
        let item = self.item;
        let (dim, tokens) = (item.attention.head_dim, item.pages.pool.shape().block_tokens);
        let stride = item.score_stride();
        self.sums.fill(0.0);
        for block in item.blocks() {
            let values = item.pages.block(block, Half::Values);
            for row in 0..item.rows {
                for head in 0..item.group {
                    let query = item.query(row, head);
                    let part = query.part(block * tokens, tokens);
                    if part.is_empty() {
                        continue;
                    }
                    let i = row * item.group + head;
                    let at = i * stride + block * tokens + part.start - query.first;
                    let weights = &self.scores[at..at + part.len()];
                    let values = &values[part.start * dim..part.end * dim];
                    let sums = &mut self.sums[i * dim.next_multiple_of(LANES)..][..dim];
                    values::accumulate(simd, weights, values, sums);
                }
            }
        }
    }

    #[inline(always)]
    fn write(&self) {
        let dim = self.item.attention.head_dim;
        let sums = self.sums.chunks_exact(dim.next_multiple_of(LANES));
        for (i, (sums, factor)) in sums.zip(self.factors.iter()).enumerate() {
            let query = self.item.query(i / self.item.group, i % self.item.group);
            // SAFETY: queries of different items, and of one item, have different places in the output.
            let out = unsafe { self.item.output.part(query.at, dim) };
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = sum * factor;
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
