//! Matrix products with stored weights, in `f32`. (Those of rounded activations are in `quant`.)
//!
//! An item is a tile of weight rows: expanded once into scratch that stays in the cache, then multiplied with all rows of the
//! batch, in register blocks of up to 4 rows × 4 outputs. Each output element has one accumulator of sixteen lanes, fed in
//! the order of the columns and summed by the tree, whatever the block it is computed in.
#![allow(unsafe_code)]

use std::ops::Range;

use super::Exec;
use crate::matrix::{Aligned, Matrix, with_scratch};
use crate::quant::{self, Acts};
use crate::simd::{Kernel, LANES, Lane, Simd};
use crate::split::Output;
use crate::weight::Weight;

/// Outputs of a tile when there are few rows: small enough to be shared out evenly.
const FEW: usize = 16;
/// Outputs of a tile when there are many rows: enough to make expanding cheap, few enough to stay in the cache.
const MANY: usize = 32;
/// More rows than this are many.
const FEW_ROWS: usize = 8;
/// Rows and outputs of a register block.
const BLOCK: usize = 4;

/// What the products keep between calls.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Inputs that are not whole vectors.
    padded: Aligned,
    /// Rounded inputs.
    acts: Acts,
}

/// `out = x · weightᵀ + bias`
pub(crate) fn linear(
    exec: &mut Exec,
    x: &Matrix,
    weight: &Weight,
    bias: Option<&[f32]>,
    scratch: &mut Scratch,
    out: &mut Matrix,
) {
    assert_eq!(
        x.width(),
        weight.columns,
        "the input's width is the weight's number of columns"
    );
    if let Some(bias) = bias {
        assert_eq!(bias.len(), weight.rows, "one bias an output");
    }
    if let Some(tiles) = weight.tiles() {
        scratch.acts.quantise(exec, x);
        return quant::linear(exec, &scratch.acts, tiles, bias, out);
    }
    let (rows, outputs) = (x.rows(), weight.rows);
    let x = pad(x, weight.stride(), &mut scratch.padded);
    let output = Output::new(out.reshape(rows, outputs));
    let product = Product {
        x,
        rows,
        weight,
        bias,
        output: &output,
    };
    let tile = if rows > FEW_ROWS { MANY } else { FEW };
    let level = exec.level;
    exec.team.run(outputs.div_ceil(tile), 1, &|i| {
        let outputs = i * tile..outputs.min((i + 1) * tile);
        with_scratch(weight.scratch_len(tile), |scratch| {
            let tile = Tile {
                product,
                outputs,
                scratch,
            };
            level.run(tile);
        });
    });
}

/// The rows of `x`, `stride` numbers apart.
fn pad<'a>(x: &'a Matrix, stride: usize, padded: &'a mut Aligned) -> &'a [f32] {
    if x.width() == stride {
        return x.numbers();
    }
    let to = padded.take(x.rows() * stride);
    for (to, from) in to
        .chunks_exact_mut(stride)
        .zip(x.numbers().chunks_exact(x.width()))
    {
        to[..from.len()].copy_from_slice(from);
        to[from.len()..].fill(0.0);
    }
    to
}

/// What all items share.
#[derive(Copy, Clone)]
struct Product<'a> {
    x: &'a [f32],
    rows: usize,
    weight: &'a Weight,
    bias: Option<&'a [f32]>,
    output: &'a Output<'a, f32>,
}

/// Some outputs of all rows.
struct Tile<'a> {
    product: Product<'a>,
    outputs: Range<usize>,
    scratch: &'a mut [f32],
}

impl Kernel for Tile<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self {
            product,
            outputs,
            scratch,
        } = self;
        // With few rows the expanded weights are used at once and never leave the first-level cache.
        let together = if product.rows > FEW_ROWS { MANY } else { BLOCK };
        for start in outputs.clone().step_by(together) {
            let part = start..outputs.end.min(start + together);
            let w = product.weight.expand(simd, part.clone(), scratch);
            product.multiply(simd, w, part);
        }
    }
}

impl Product<'_> {
    /// All rows by the weights `w` of some outputs.
    #[inline(always)]
    fn multiply<S: Simd>(&self, simd: S, w: &[f32], outputs: Range<usize>) {
        let stride = self.weight.stride();
        let whole = if S::WIDE { BLOCK } else { BLOCK / 2 };
        for row in (0..self.rows).step_by(whole) {
            let x = &self.x[row * stride..];
            for first in outputs.clone().step_by(BLOCK) {
                let count = BLOCK.min(outputs.end - first);
                let w = &w[(first - outputs.start) * stride..];
                match whole.min(self.rows - row) {
                    1 => self.write(row, first, count, block::<S, 1>(simd, x, w, stride, count)),
                    2 => self.write(row, first, count, block::<S, 2>(simd, x, w, stride, count)),
                    3 => self.write(row, first, count, block::<S, 3>(simd, x, w, stride, count)),
                    _ => self.write(row, first, count, block::<S, 4>(simd, x, w, stride, count)),
                }
            }
        }
    }

    /// Writes the first `count` sums of every row to the outputs from `first` on.
    #[inline(always)]
    fn write<const R: usize>(&self, row: usize, first: usize, count: usize, sums: [[f32; BLOCK]; R]) {
        for (i, sums) in sums.iter().enumerate() {
            // SAFETY: only one item writes these outputs, and this is the only part of them that is alive.
            let to = unsafe { self.output.part((row + i) * self.weight.rows + first, count) };
            for (to, sum) in to.iter_mut().zip(sums) {
                *to = *sum;
            }
            if let Some(bias) = self.bias {
                for (to, bias) in to.iter_mut().zip(&bias[first..]) {
                    *to += bias;
                }
            }
        }
    }
}

/// The products of the first `R` rows of `x` with the first `count` rows of `w`. The register block is always `R` × 4: missing
/// outputs repeat the last one, and their sums are thrown away.
#[inline(always)]
fn block<S: Simd, const R: usize>(
    simd: S,
    x: &[f32],
    w: &[f32],
    stride: usize,
    count: usize,
) -> [[f32; BLOCK]; R] {
    let vectors = stride / LANES;
    let mut xs: [&[Lane]; R] = [&[]; R];
    for (i, row) in xs.iter_mut().enumerate() {
        *row = &x[i * stride..][..stride].as_chunks().0[..vectors];
    }
    let mut ws: [&[Lane]; BLOCK] = [&[]; BLOCK];
    for (j, row) in ws.iter_mut().enumerate() {
        *row = &w[j.min(count - 1) * stride..][..stride].as_chunks().0[..vectors];
    }
    let mut acc = [[simd.zero(); BLOCK]; R];
    for c in 0..vectors {
        let mut w = [simd.zero(); BLOCK];
        for j in 0..BLOCK {
            w[j] = simd.load(&ws[j][c]);
        }
        for i in 0..R {
            let x = simd.load(&xs[i][c]);
            for j in 0..BLOCK {
                acc[i][j] = simd.fma(x, w[j], acc[i][j]);
            }
        }
    }
    sum_block(simd, &acc)
}

/// The sums of all accumulators; sixteen of them together, which is faster where the level has a way.
#[inline(always)]
fn sum_block<S: Simd, const R: usize>(simd: S, acc: &[[S::V; BLOCK]; R]) -> [[f32; BLOCK]; R] {
    let mut sums = [[0.0; BLOCK]; R];
    if R == BLOCK {
        let mut all = [simd.zero(); BLOCK * BLOCK];
        for i in 0..R {
            for j in 0..BLOCK {
                all[i * BLOCK + j] = acc[i][j];
            }
        }
        let all = simd.sums(all);
        for i in 0..R {
            sums[i].copy_from_slice(&all[i * BLOCK..][..BLOCK]);
        }
    } else {
        for i in 0..R {
            sums[i] = simd.sums(acc[i]);
        }
    }
    sums
}

#[cfg(test)]
#[path = "linear_tests.rs"]
mod tests;
