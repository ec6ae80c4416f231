//! Products of a query with the keys of a block.

use crate::simd::{LANES, Simd};

/// `scores[t] = q · keys[t] * scale`
#[inline(always)]
pub(super) fn scores<S: Simd>(simd: S, q: &[f32], keys: &[f32], scale: f32, scores: &mut [f32]) {
    match (S::WIDE, q.len() / LANES) {
        (true, 4) => groups::<S, 16, 4>(simd, q, keys, scale, scores),
        (true, 8) => groups::<S, 16, 8>(simd, q, keys, scale, scores),
        (true, _) => groups::<S, 16, 1>(simd, q, keys, scale, scores),
        (false, 4) => groups::<S, 4, 4>(simd, q, keys, scale, scores),
        (false, _) => groups::<S, 4, 1>(simd, q, keys, scale, scores),
    }
}

/// `G` keys at a time, `N` vectors of each in an unrolled loop. In the last group the missing keys repeat the last one, and their
/// scores are thrown away.
#[inline(always)]
fn groups<S: Simd, const G: usize, const N: usize>(
    simd: S,
    q: &[f32],
    keys: &[f32],
    scale: f32,
    scores: &mut [f32],
) {
    let dim = q.len();
    let (queries, rest) = q.as_chunks::<LANES>();
    let (queries, singles) = queries.as_chunks::<N>();
    for start in (0..scores.len()).step_by(G) {
        let mut acc = [simd.zero(); G];
        for (i, acc) in acc.iter_mut().enumerate() {
            let token = (start + i).min(scores.len() - 1);
            let key = &keys[token * dim..][..dim];
            let (key, key_rest) = key.as_chunks::<LANES>();
            let (key, key_singles) = key.as_chunks::<N>();
            for (q, key) in queries.iter().zip(key) {
                for c in 0..N {
                    *acc = simd.fma(simd.load(&q[c]), simd.load(&key[c]), *acc);
                }
            }
            for (q, key) in singles.iter().zip(key_singles) {
                *acc = simd.fma(simd.load(q), simd.load(key), *acc);
            }
            if !rest.is_empty() {
                *acc = simd.fma(simd.load_partial(rest), simd.load_partial(key_rest), *acc);
            }
        }
        let products = simd.sums(acc);
        for (score, product) in scores[start..].iter_mut().zip(products) {
            *score = product * scale;
        }
    }
}
