//! Products of rounded rows with tiles.
#![allow(unsafe_code)]

use std::ops::Range;

use super::BLOCK;
use super::acts::{Acts, Panel};
use super::form::{Form, OUTPUTS, with_form};
use super::tiles::{Tile, Tiles};
use crate::matrix::Matrix;
use crate::ops::Exec;
use crate::simd::{Bytes, Kernel, LANES, MOST_HALVES, Simd};
use crate::split::Output;

/// Pieces that a thread takes, on average: few enough that neighbours stay together, enough to even out.
const PIECES: usize = 4;

/// `out = x · weightᵀ + bias`
pub(crate) fn linear(exec: &mut Exec, x: &Acts, tiles: &Tiles, bias: Option<&[f32]>, out: &mut Matrix) {
    assert_eq!(
        x.columns(),
        tiles.columns(),
        "rows and weights have the same columns"
    );
    let output = Output::new(out.reshape(x.rows(), tiles.rows()));
    let pieces = (exec.team.threads() * PIECES).min(tiles.count());
    let level = exec.level;
    exec.team.run(pieces, 1, &|i| {
        level.run(Multiply {
            x,
            tiles,
            range: i * tiles.count() / pieces..(i + 1) * tiles.count() / pieces,
            bias,
            output: &output,
        });
    });
}

/// All rows by some tiles.
struct Multiply<'a> {
    x: &'a Acts,
    tiles: &'a Tiles,
    range: Range<usize>,
    bias: Option<&'a [f32]>,
    output: &'a Output<'a, f32>,
}

impl Kernel for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        with_form!(self.tiles.dtype, F => self.multiply::<S, F>(simd), none => ());
    }
}

impl Multiply<'_> {
    #[inline(always)]
    fn multiply<S: Simd, F: Form>(&self, simd: S) {
        for index in self.range.clone() {
            let tile = self.tiles.tile::<F>(index);
            for panel in self.x.panels() {
                match panel.rows {
                    1 => self.write(simd, index, panel.start, products::<S, F, 1>(simd, tile, panel)),
                    2 => self.write(simd, index, panel.start, products::<S, F, 2>(simd, tile, panel)),
                    4 => self.write(simd, index, panel.start, products::<S, F, 4>(simd, tile, panel)),
                    _ => self.write(simd, index, panel.start, products::<S, F, 8>(simd, tile, panel)),
                }
            }
        }
    }

    /// Writes the products of the rows from `start` on with a tile.
    #[inline(always)]
    fn write<S: Simd, const R: usize>(&self, simd: S, tile: usize, start: usize, products: [S::V; R]) {
        let (first, outputs) = (tile * OUTPUTS, self.tiles.rows());
        let count = OUTPUTS.min(outputs - first);
        for (r, products) in products.into_iter().enumerate() {
            let mut lane = [0.0; LANES];
            simd.store(products, &mut lane);
            if let Some(bias) = self.bias {
                for (product, bias) in lane.iter_mut().zip(&bias[first..]) {
                    *product += bias;
                }
            }
            // SAFETY: only one item writes these outputs, and this is the only part of them that is alive.
            let to = unsafe { self.output.part((start + r) * outputs + first, count) };
            to.copy_from_slice(&lane[..count]);
        }
    }
}

/// The products of the `R` rows of a panel with a tile.
#[inline(always)]
fn products<S: Simd, F: Form, const R: usize>(simd: S, tile: Tile<'_>, panel: Panel<'_>) -> [S::V; R] {
    let x = panel.q.as_chunks::<BLOCK>().0.as_chunks::<R>().0;
    let d = &panel.d.as_chunks::<R>().0[..x.len()];
    let weighted = &panel.weighted.as_chunks::<R>().0[..x.len()];
    let sums = &panel.sums.as_chunks::<R>().0[..x.len()];
    let mut acc = [simd.zero(); R];
    for (block, x) in x.iter().enumerate() {
        let (lines, _) = tile.codes[block * F::LINES * 64..][..F::LINES * 64].as_chunks();
        let scales = tile.scales::<S, F>(simd, block);
        let parts = if F::HALVES { 2 } else { 1 };
        for part in 0..parts {
            let mut whole = [simd.ints(0); R];
            let taken = if F::WIDE { S::BIAS } else { 0 } - F::OFFSET;
            if taken != 0 {
                for r in 0..R {
                    let [first, second] = sums[block][r];
                    let sum = match (F::HALVES, part) {
                        (false, _) => first + second,
                        (true, 0) => first,
                        (true, _) => second,
                    };
                    whole[r] = simd.ints(taken * sum);
                }
            }
            let lines = &lines[part * F::LINES / parts..(part + 1) * F::LINES / parts];
            let whole = integers::<S, F, R>(simd, whole, lines, x, part * BLOCK / parts);
            for r in 0..R {
                let product = simd.mul(simd.floats(whole[r]), simd.splat(d[block][r]));
                acc[r] = simd.fma(product, scales[part], acc[r]);
            }
        }
        if F::MINIMA {
            for r in 0..R {
                acc[r] = simd.fma(simd.splat(weighted[block][r]), scales[1], acc[r]);
            }
        }
    }
    acc
}

/// Adds the products of codes with the columns from `first` on.
#[inline(always)]
fn integers<S: Simd, F: Form, const R: usize>(
    simd: S,
    mut acc: [S::I; R],
    lines: &[Bytes],
    x: &[[i8; BLOCK]; R],
    first: usize,
) -> [S::I; R] {
    if F::NIBBLES {
        return nibbles(simd, acc, lines, x);
    }
    for (j, line) in lines.iter().enumerate() {
        let codes = simd.bytes(line);
        let at = first + 4 * j;
        for r in 0..R {
            acc[r] = if F::WIDE {
                simd.dot_bytes(acc[r], codes, four(&x[r], at))
            } else {
                simd.dot(acc[r], codes, four(&x[r], at))
            };
        }
    }
    acc
}

/// The same of a block of half bytes.
#[inline(always)]
fn nibbles<S: Simd, const R: usize>(
    simd: S,
    acc: [S::I; R],
    lines: &[Bytes],
    x: &[[i8; BLOCK]; R],
) -> [S::I; R] {
    debug_assert_eq!(2 * lines.len(), MOST_HALVES);
    let mut sums = acc.map(|acc| simd.open_halves(acc));
    for (j, line) in lines.iter().enumerate() {
        let [low, high] = simd.split(simd.bytes(line));
        for r in 0..R {
            sums[r] = simd.dot_halves(sums[r], low, four(&x[r], 4 * j));
        }
        for r in 0..R {
            sums[r] = simd.dot_halves(sums[r], high, four(&x[r], BLOCK / 2 + 4 * j));
        }
    }
    std::array::from_fn(|r| simd.close_halves(sums[r], acc[r]))
}

#[inline(always)]
fn four(x: &[i8; BLOCK], at: usize) -> [i8; 4] {
    [x[at], x[at + 1], x[at + 2], x[at + 3]]
}
