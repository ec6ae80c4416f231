//! Activations as small integers.
#![allow(unsafe_code)]

use super::BLOCK;
use crate::matrix::Matrix;
use crate::ops::Exec;
use crate::simd::{Kernel, Simd};
use crate::split::Output;

/// Smaller magnitudes than this count as 0: their scale would not be a normal number.
const TINY: f32 = 1e-30;
/// Adding it leaves the nearest integer (of two, the even one) in the low bits of the mantissa.
const ROUND: f32 = 12_582_912.0;
/// More rows than this are worth handing to other threads.
const FEW_ROWS: usize = 8;

/// Rounded rows. They lie in panels of rows that are multiplied together; within one, block after block, row after row.
#[derive(Default)]
pub(crate) struct Acts {
    rows: usize,
    columns: usize,
    /// Most rows of a panel.
    most: usize,
    /// 32 integers of every row and block, at least −127.
    q: Vec<i8>,
    /// The scale of every row and block.
    d: Vec<f32>,
    /// The scale times the sum of the integers.
    weighted: Vec<f32>,
    /// The sums of the first and the second sixteen integers.
    sums: Vec<[i32; 2]>,
}

/// Rows that are multiplied together: `rows` of them from `start` on, and what there is of them.
#[derive(Copy, Clone)]
pub(super) struct Panel<'a> {
    pub(super) start: usize,
    pub(super) rows: usize,
    pub(super) q: &'a [i8],
    pub(super) d: &'a [f32],
    pub(super) weighted: &'a [f32],
    pub(super) sums: &'a [[i32; 2]],
}

impl Acts {
    /// Takes the rows of `x`, whose width is whole blocks.
    pub(crate) fn quantise(&mut self, exec: &mut Exec, x: &Matrix) {
        let (rows, columns) = (x.rows(), x.width());
        let blocks = columns / BLOCK;
        (self.rows, self.columns, self.most) = (rows, columns, exec.level.rows_together());
        self.q.resize(rows * columns, 0);
        self.d.resize(rows * blocks, 0.0);
        self.weighted.resize(rows * blocks, 0.0);
        self.sums.resize(rows * blocks, [0; 2]);
        let panels: Vec<(usize, usize)> = panels(rows, self.most).collect();
        let (q, d) = (Output::new(&mut self.q), Output::new(&mut self.d));
        let (weighted, sums) = (Output::new(&mut self.weighted), Output::new(&mut self.sums));
        let level = exec.level;
        let grain = if rows > FEW_ROWS { 1 } else { panels.len() };
        exec.team.run(panels.len(), grain, &|i| {
            let (start, rows) = panels[i];
            // SAFETY: the parts of different panels do not overlap, and every panel is run once.
            let work = unsafe {
                Quantise {
                    x: &x.numbers()[start * columns..][..rows * columns],
                    rows,
                    q: q.part(start * columns, rows * columns),
                    d: d.part(start * blocks, rows * blocks),
                    weighted: weighted.part(start * blocks, rows * blocks),
                    sums: sums.part(start * blocks, rows * blocks),
                }
            };
            level.run(work);
        });
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// All rows, panel by panel.
    #[inline(always)]
    pub(super) fn panels(&self) -> impl Iterator<Item = Panel<'_>> {
        let blocks = self.columns / BLOCK;
        panels(self.rows, self.most).map(move |(start, rows)| Panel {
            start,
            rows,
            q: &self.q[start * self.columns..][..rows * self.columns],
            d: &self.d[start * blocks..][..rows * blocks],
            weighted: &self.weighted[start * blocks..][..rows * blocks],
            sums: &self.sums[start * blocks..][..rows * blocks],
        })
    }

    /// What became of the rows, as numbers.
    #[cfg(test)]
    pub(super) fn numbers(&self) -> Vec<f32> {
        let blocks = self.columns / BLOCK;
        let mut out = vec![0.0; self.rows * self.columns];
        for panel in self.panels() {
            for (i, q) in panel.q.iter().enumerate() {
                let (block, row, column) = (i / BLOCK / panel.rows, i / BLOCK % panel.rows, i % BLOCK);
                assert!(block < blocks);
                out[(panel.start + row) * self.columns + block * BLOCK + column] =
                    f32::from(*q) * panel.d[block * panel.rows + row];
            }
        }
        out
    }
}

/// The first row and the number of rows of every panel: as many as go together, and powers of two at the end.
fn panels(rows: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let left = rows - start;
        let together = most.min(1 << left.checked_ilog2()?);
        start += together;
        Some((start - together, together))
    })
}

/// Rounds the rows of a panel.
struct Quantise<'a> {
    x: &'a [f32],
    rows: usize,
    q: &'a mut [i8],
    d: &'a mut [f32],
    weighted: &'a mut [f32],
    sums: &'a mut [[i32; 2]],
}

impl Kernel for Quantise<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let (q, _) = self.q.as_chunks_mut::<BLOCK>();
        let blocks = q.len() / self.rows;
        let (x, _) = self.x.as_chunks::<BLOCK>();
        for row in 0..self.rows {
            for block in 0..blocks {
                let to = block * self.rows + row;
                let (d, sums) = round(&x[row * blocks + block], &mut q[to]);
                self.d[to] = d;
                self.weighted[to] = d * as_number(sums[0] + sums[1]);
                self.sums[to] = sums;
            }
        }
    }
}

/// Rounds a block; gives its scale and the sums of its halves. A block with something in it that is no finite number gets a scale
/// that is none either, and so do all products with it.
#[inline(always)]
fn round(x: &[f32; BLOCK], q: &mut [i8; BLOCK]) -> (f32, [i32; 2]) {
    // Magnitudes are ordered like their bits, with infinity and what is no number above all others.
    let mut largest = 0;
    for x in x {
        largest = largest.max(x.to_bits() & 0x7FFF_FFFF);
    }
    let largest = f32::from_bits(largest);
    let (scale, inverse) = if largest < TINY {
        (0.0, 0.0)
    } else {
        (largest / 127.0, 127.0 / largest)
    };
    for (q, x) in q.iter_mut().zip(x) {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the integer is in the lowest byte"
        )]
        let rounded = (x * inverse + ROUND).to_bits() as u8;
        *q = rounded.cast_signed();
    }
    let mut sums = [0; 2];
    for (sum, q) in sums.iter_mut().zip(q.as_chunks::<{ BLOCK / 2 }>().0) {
        for q in q {
            *sum += i32::from(*q);
        }
    }
    (scale, sums)
}

#[inline(always)]
#[allow(clippy::cast_precision_loss, reason = "a sum of 32 bytes is exact")]
fn as_number(sum: i32) -> f32 {
    sum as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_are_powers_of_two() {
        let all = |rows, most| panels(rows, most).collect::<Vec<_>>();
        assert_eq!(all(0, 8), []);
        assert_eq!(all(23, 8), [(0, 8), (8, 8), (16, 4), (20, 2), (22, 1)]);
        assert_eq!(all(3, 2), [(0, 2), (2, 1)]);
    }

    #[test]
    fn a_block_is_rounded() {
        let mut q = [9; BLOCK];
        let mut x = [0.0; BLOCK];
        assert_eq!(round(&x, &mut q), (0.0, [0, 0]));
        assert_eq!(q, [0; BLOCK]);

        // Halves go to the even neighbour.
        (x[0], x[1], x[2], x[3], x[16]) = (-127.0, 0.5, 1.5, -2.5, 126.5);
        assert_eq!(round(&x, &mut q), (1.0, [-127 + 2 - 2, 126]));
        assert_eq!(q[..5], [-127, 0, 2, -2, 0]);

        x = [1e-40; BLOCK];
        assert_eq!(round(&x, &mut q), (0.0, [0, 0]));
        x = [3e38; BLOCK];
        assert_eq!(round(&x, &mut q), (3e38 / 127.0, [16 * 127; 2]));
        x[7] = f32::NEG_INFINITY;
        assert_eq!(round(&x, &mut q).0, f32::INFINITY);
        x[9] = f32::NAN;
        assert!(round(&x, &mut q).0.is_nan());
    }
}
