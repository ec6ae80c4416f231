//! Operations on single numbers and rows.

use engine::{Gate, Token};

use super::Exec;
use crate::math::{gelu, silu};
use crate::matrix::Matrix;
use crate::simd::{Kernel, Simd};
use crate::split::{cheap, for_chunks};
use crate::weight::Weight;

/// One row a token: the token's row of `table`, times `scale`.
pub(crate) fn embed(exec: &mut Exec, table: &Weight, tokens: &[Token], scale: f32, out: &mut Matrix) {
    let width = table.columns;
    let level = exec.level;
    let out = out.reshape(tokens.len(), width);
    for_chunks(&mut exec.team, out, width, cheap(width), |i, out| {
        let token = tokens[i] as usize;
        assert!(
            token < table.rows,
            "token {token} of a vocabulary of {}",
            table.rows
        );
        level.run(Embed {
            table,
            token,
            scale,
            out,
        });
    });
}

struct Embed<'a> {
    table: &'a Weight,
    token: usize,
    scale: f32,
    out: &'a mut [f32],
}

impl Kernel for Embed<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        self.table.expand_row(simd, self.token, self.out);
        for out in self.out {
            *out *= self.scale;
        }
    }
}

/// `gate = act(gate) * up`
pub(crate) fn gate(exec: &mut Exec, gate: &mut Matrix, up: &Matrix, act: Gate) {
    zip(exec, gate, up, |gate, up, level| {
        level.run(Gated { gate, up, act });
    });
}

struct Gated<'a> {
    gate: &'a mut [f32],
    up: &'a [f32],
    act: Gate,
}

impl Kernel for Gated<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        // Loops inside the kernel, so that they are compiled for its instructions.
        match self.act {
            Gate::Silu => {
                for (g, u) in self.gate.iter_mut().zip(self.up) {
                    *g = silu(*g) * u;
                }
            }
            Gate::Gelu => {
                for (g, u) in self.gate.iter_mut().zip(self.up) {
                    *g = gelu(*g) * u;
                }
            }
        }
    }
}

/// `x += y`
pub(crate) fn add(exec: &mut Exec, x: &mut Matrix, y: &Matrix) {
    zip(exec, x, y, |x, y, level| level.run(Added(x, y)));
}

struct Added<'a>(&'a mut [f32], &'a [f32]);

impl Kernel for Added<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for (x, y) in self.0.iter_mut().zip(self.1) {
            *x += y;
        }
    }
}

/// Calls `work` with the rows of two matrices of the same shape.
fn zip(
    exec: &mut Exec,
    x: &mut Matrix,
    y: &Matrix,
    work: impl Fn(&mut [f32], &[f32], crate::simd::Level) + Sync,
) {
    assert_eq!(
        (x.rows(), x.width()),
        (y.rows(), y.width()),
        "matrices of one shape"
    );
    let (width, level) = (x.width(), exec.level);
    for_chunks(&mut exec.team, x.numbers_mut(), width, cheap(width), |i, x| {
        work(x, &y.numbers()[i * width..][..width], level);
    });
}

/// The given rows of `x`, in the given order.
pub(crate) fn select(x: &Matrix, rows: &[usize], out: &mut Matrix) {
    let width = x.width();
    if width > 0 {
        let to = out.reshape(rows.len(), width);
        for (to, &row) in to.chunks_exact_mut(width).zip(rows) {
            to.copy_from_slice(x.row(row));
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::{DType, TensorView};

    use super::*;
    use crate::device::Activations;
    use crate::memory::Arena;
    use crate::testing::{check_levels, close, matrix, numbers, same_bits};

    #[track_caller]
    fn check_gate(act: Gate, exact: fn(f64) -> f64) {
        for (rows, width) in [(1, 5), (3, 192), (40, 512)] {
            let x: Vec<f32> = numbers(3, rows * width).iter().map(|x| x * 8.0).collect();
            let up = numbers(4, rows * width);
            let expected: Vec<f64> = x
                .iter()
                .zip(&up)
                .map(|(x, u)| exact((*x).into()) * f64::from(*u))
                .collect();
            check_levels(|exec| {
                let mut x = matrix(width, &x);
                gate(exec, &mut x, &matrix(width, &up), act);
                close(x.numbers(), &expected, 1e-6, &format!("{act:?} {rows} × {width}"));
                x.numbers().to_vec()
            });
        }
    }

    #[test]
    fn gates() {
        check_gate(Gate::Silu, |x| x / (1.0 + (-x).exp()));
        check_gate(Gate::Gelu, |x| {
            0.5 * x * (1.0 + (0.797_884_560_802_865_4 * (x + 0.044_715 * x.powi(3))).tanh())
        });
    }

    #[test]
    fn add_adds_and_select_selects() {
        let (x, y) = (numbers(5, 30), numbers(6, 30));
        check_levels(|exec| {
            let mut sum = matrix(5, &x);
            add(exec, &mut sum, &matrix(5, &y));
            let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x + y).collect();
            same_bits(sum.numbers(), &expected, "sum");
            let mut rows = Matrix::default();
            select(&sum, &[4, 0, 4], &mut rows);
            same_bits(
                rows.numbers(),
                &[&expected[20..25], &expected[..5], &expected[20..25]].concat(),
                "rows",
            );
            select(&sum, &[], &mut rows);
            assert_eq!((rows.rows(), rows.width()), (0, 5));
            rows.numbers().to_vec()
        });
    }

    #[test]
    fn tokens_are_embedded() {
        let mut blocks = crate::testing::bytes(7, 6 * 20);
        for block in blocks.chunks_exact_mut(20) {
            block[..4].copy_from_slice(&[0, 0x34, 0, 0x38]); // 0.25 and 0.5
        }
        let view = TensorView {
            name: "t",
            dtype: DType::Q4_1,
            rows: 3,
            columns: 64,
            bytes: &blocks,
        };
        let weight = Weight::new(&view, Activations::F32, &mut Arena::default()).unwrap();
        let number = |token: usize, i: usize| {
            let q = blocks[token * 40 + i / 32 * 20 + 4 + i % 16];
            let q = if i % 32 < 16 { q % 16 } else { q / 16 };
            (f32::from(q) * 0.25 + 0.5) * 3.0
        };
        check_levels(|exec| {
            let mut out = Matrix::default();
            embed(exec, &weight, &[2, 0, 2, 1], 3.0, &mut out);
            let expected: Vec<f32> = [2, 0, 2, 1]
                .iter()
                .flat_map(|&t| (0..64).map(move |i| number(t, i)))
                .collect();
            same_bits(out.numbers(), &expected, "embedding");
            expected
        });
    }
}
