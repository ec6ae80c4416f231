//! Root-mean-square normalisation.

use super::Exec;
use crate::matrix::Matrix;
use crate::simd::{Kernel, LANES, Simd};
use crate::split::{cheap, for_chunks};

/// `out[r] = x[r] / rms(x[r]) * weight`, over groups of `weight`'s length.
pub(crate) fn rms_norm(exec: &mut Exec, x: &Matrix, weight: &[f32], epsilon: f32, out: &mut Matrix) {
    let group = weight.len();
    assert!(
        group > 0 && x.width().is_multiple_of(group),
        "rows of {} are no groups of {group}",
        x.width()
    );
    let level = exec.level;
    let from = x.numbers();
    let to = out.reshape(x.rows(), x.width());
    for_chunks(&mut exec.team, to, group, cheap(group), |i, out| {
        let x = &from[i * group..][..group];
        level.run(Norm {
            x,
            weight,
            epsilon,
            out,
        });
    });
}

struct Norm<'a> {
    x: &'a [f32],
    weight: &'a [f32],
    epsilon: f32,
    out: &'a mut [f32],
}

impl Kernel for Norm<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let (lanes, rest) = self.x.as_chunks::<LANES>();
        let mut squares = simd.zero();
        for lane in lanes {
            let x = simd.load(lane);
            squares = simd.fma(x, x, squares);
        }
        let x = simd.load_partial(rest);
        squares = simd.fma(x, x, squares);
        let mean = simd.sum(squares) / self.x.len() as f32;
        let scale = 1.0 / (mean + self.epsilon).sqrt();
        for ((out, x), w) in self.out.iter_mut().zip(self.x).zip(self.weight) {
            *out = x * scale * w;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{check_levels, close, matrix, numbers};

    #[track_caller]
    fn check(rows: usize, width: usize, group: usize) {
        let (x, weight) = (numbers(1, rows * width), numbers(2, group));
        let expected: Vec<f64> = x
            .chunks(group)
            .flat_map(|x| {
                let mean = x.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / group as f64;
                let scale = (mean + 1e-5).sqrt().recip();
                x.iter()
                    .zip(&weight)
                    .map(|(x, w)| f64::from(*x) * scale * f64::from(*w))
                    .collect::<Vec<_>>()
            })
            .collect();
        let x = matrix(width, &x);
        check_levels(|exec| {
            let mut out = Matrix::default();
            rms_norm(exec, &x, &weight, 1e-5, &mut out);
            close(
                out.numbers(),
                &expected,
                1e-6,
                &format!("{rows} × {width} by {group}"),
            );
            out.numbers().to_vec()
        });
    }

    #[test]
    fn rows_and_heads_are_normed() {
        check(1, 576, 576);
        check(40, 576, 576);
        check(3, 64, 16);
        check(5, 21, 7);
        check(2, 50, 50);
    }
}
