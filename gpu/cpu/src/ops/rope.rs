//! Rotary position embedding.

use engine::{Rope, Span};

use super::Exec;
use crate::matrix::Matrix;
use crate::split::{cheap, for_chunks};

/// Positions a table grows by.
const GROWTH: usize = 256;

/// Sines and cosines, computed once in double precision and kept.
#[derive(Default)]
pub(crate) struct RopeTables(Vec<Table>);

/// (cos, sin) of every pair at every position so far.
struct Table {
    base: f32,
    dims: usize,
    factors: Option<Vec<f32>>,
    turns: Vec<(f32, f32)>,
}

impl RopeTables {
    /// The table of `rope`, for at least so many positions.
    fn get(&mut self, rope: &Rope, positions: usize) -> &Table {
        let same = |t: &Table| t.base == rope.base && t.dims == rope.dims && t.factors == rope.factors;
        let index = self.0.iter().position(same).unwrap_or_else(|| {
            self.0.push(Table {
                base: rope.base,
                dims: rope.dims,
                factors: rope.factors.clone(),
                turns: Vec::new(),
            });
            self.0.len() - 1
        });
        let table = &mut self.0[index];
        table.grow(positions);
        table
    }
}

impl Table {
    fn pairs(&self) -> usize {
        self.dims / 2
    }

    fn grow(&mut self, positions: usize) {
        let known = self.turns.len().checked_div(self.pairs()).unwrap_or(positions);
        if known >= positions {
            return;
        }
        let frequencies: Vec<f64> = (0..self.pairs())
            .map(|pair| {
                let exponent = -2.0 * pair as f64 / self.dims as f64;
                let factor = self
                    .factors
                    .as_ref()
                    .and_then(|f| f.get(pair))
                    .copied()
                    .unwrap_or(1.0);
                libm::pow(f64::from(self.base), exponent) / f64::from(factor)
            })
            .collect();
        for position in known..positions.next_multiple_of(GROWTH) {
            // The C library's sine would differ between machines.
            self.turns.extend(frequencies.iter().map(|f| {
                let (sin, cos) = libm::sincos(position as f64 * f);
                #[allow(
                    clippy::cast_possible_truncation,
                    reason = "rounding to single precision is meant"
                )]
                (cos as f32, sin as f32)
            }));
        }
    }
}

/// Rotates the heads of every row.
pub(crate) fn rope(
    exec: &mut Exec,
    tables: &mut RopeTables,
    x: &mut Matrix,
    head_dim: usize,
    spans: &[Span<'_>],
    rope: &Rope,
) {
    assert!(
        rope.dims <= head_dim,
        "{} dimensions of a head of {head_dim}",
        rope.dims
    );
    let end = spans.iter().map(|s| s.start as usize + s.rows).max().unwrap_or(0);
    let table = tables.get(rope, end);
    let (width, pairs) = (x.width(), table.pairs());
    for span in spans {
        let rows = &mut x.numbers_mut()[span.row * width..][..span.rows * width];
        for_chunks(&mut exec.team, rows, width, cheap(width), |i, row| {
            let turns = &table.turns[(span.start as usize + i) * pairs..][..pairs];
            for head in row.chunks_exact_mut(head_dim) {
                if rope.interleaved {
                    interleaved(head, turns);
                } else {
                    halves(head, turns);
                }
            }
        });
    }
}

fn interleaved(head: &mut [f32], turns: &[(f32, f32)]) {
    for (pair, turn) in head.as_chunks_mut::<2>().0.iter_mut().zip(turns) {
        *pair = rotate(*pair, *turn);
    }
}

fn halves(head: &mut [f32], turns: &[(f32, f32)]) {
    let (first, rest) = head.split_at_mut(turns.len());
    for ((a, b), turn) in first.iter_mut().zip(rest).zip(turns) {
        [*a, *b] = rotate([*a, *b], *turn);
    }
}

#[inline(always)]
fn rotate([a, b]: [f32; 2], (cos, sin): (f32, f32)) -> [f32; 2] {
    [a * cos - b * sin, a * sin + b * cos]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{check_levels, close, matrix, numbers, same_bits};

    #[track_caller]
    fn check(interleaved: bool, dims: usize, factors: Option<&[f32]>) {
        let (heads, head_dim) = (3, 16);
        let rope_of = Rope {
            base: 1e5,
            dims,
            interleaved,
            factors: factors.map(<[f32]>::to_vec),
        };
        let spans = [
            Span {
                row: 0,
                rows: 2,
                start: 600,
                blocks: &[],
            },
            Span {
                row: 2,
                rows: 40,
                start: 0,
                blocks: &[],
            },
        ];
        let x = numbers(8, 42 * heads * head_dim);
        let mut expected: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
        for (r, row) in expected.chunks_mut(heads * head_dim).enumerate() {
            let position = if r < 2 { 600 + r } else { r - 2 } as f64;
            for head in row.chunks_mut(head_dim) {
                for i in 0..dims / 2 {
                    let (a, b) = if interleaved {
                        (2 * i, 2 * i + 1)
                    } else {
                        (i, i + dims / 2)
                    };
                    let factor = factors.map_or(1.0, |f| f64::from(f[i]));
                    let angle = position * 1e5_f64.powf(-2.0 * i as f64 / dims as f64) / factor;
                    (head[a], head[b]) = (
                        head[a] * angle.cos() - head[b] * angle.sin(),
                        head[a] * angle.sin() + head[b] * angle.cos(),
                    );
                }
            }
        }
        check_levels(|exec| {
            let mut tables = RopeTables::default();
            let mut y = matrix(heads * head_dim, &x);
            rope(exec, &mut tables, &mut y, head_dim, &spans, &rope_of);
            close(y.numbers(), &expected, 2e-7, "rotated");
            // One row alone, with a table that grew in another order.
            let mut tables = RopeTables::default();
            for row in [20, 1] {
                let mut alone = matrix(heads * head_dim, &x[row * 48..][..48]);
                let start = if row < 2 { 600 + 1 } else { 18 };
                let span = [Span {
                    row: 0,
                    rows: 1,
                    start,
                    blocks: &[],
                }];
                rope(exec, &mut tables, &mut alone, head_dim, &span, &rope_of);
                same_bits(alone.numbers(), y.row(row), "alone");
            }
            y.numbers().to_vec()
        });
    }

    #[test]
    fn heads_are_rotated() {
        check(true, 16, None);
        check(false, 16, None);
        check(true, 8, None);
        check(false, 8, Some(&[1.0, 2.0, 4.0, 8.0]));
    }
}
