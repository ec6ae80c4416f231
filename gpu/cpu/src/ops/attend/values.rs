//! Weighted sums of the values of a block.

use crate::simd::{LANES, Simd};

/// Vectors of a head that are summed together, in registers.
const TOGETHER: usize = 4;

/// `sums += Σ weights[t] * values[t]`, token after token.
#[inline(always)]
pub(super) fn accumulate<S: Simd>(simd: S, weights: &[f32], values: &[f32], sums: &mut [f32]) {
    let dim = sums.len();
    let mut at = 0;
    while at + TOGETHER * LANES <= dim {
        vectors::<S, TOGETHER>(simd, weights, values, sums, at);
        at += TOGETHER * LANES;
    }
    while at + LANES <= dim {
        vectors::<S, 1>(simd, weights, values, sums, at);
        at += LANES;
    }
    if at < dim {
        for (weight, value) in weights.iter().zip(values.chunks_exact(dim)) {
            for (sum, value) in sums[at..].iter_mut().zip(&value[at..]) {
                *sum = weight.mul_add(*value, *sum);
            }
        }
    }
}

/// `N` vectors of every row, from number `at` of it on.
#[inline(always)]
fn vectors<S: Simd, const N: usize>(simd: S, weights: &[f32], values: &[f32], sums: &mut [f32], at: usize) {
    let dim = sums.len();
    let (lanes, _) = sums[at..].as_chunks_mut::<LANES>();
    let mut acc = [simd.zero(); N];
    for c in 0..N {
        acc[c] = simd.load(&lanes[c]);
    }
    for (weight, value) in weights.iter().zip(values.chunks_exact(dim)) {
        let weight = simd.splat(*weight);
        let (value, _) = value[at..at + N * LANES].as_chunks::<LANES>();
        for c in 0..N {
            acc[c] = simd.fma(weight, simd.load(&value[c]), acc[c]);
        }
    }
    for c in 0..N {
        simd.store(acc[c], &mut lanes[c]);
    }
}
