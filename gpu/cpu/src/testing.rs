//! What the tests of this crate share.

use std::num::NonZeroUsize;

use engine::DType;

use crate::formats::Expand;
use crate::matrix::Matrix;
use crate::ops::Exec;
use crate::simd::Level;
use crate::team::Team;

/// Runs `op` at every level of this machine with one thread and with three, and asserts that its results agree bit for bit.
#[track_caller]
pub(crate) fn check_levels(op: impl Fn(&mut Exec) -> Vec<f32>) {
    let exec = |level, threads| {
        let team = Team::new(NonZeroUsize::new(threads).unwrap()).unwrap();
        Exec { team, level }
    };
    let expected = op(&mut exec(Level::Portable, 1));
    for level in Level::available() {
        for threads in [1, 3] {
            let actual = op(&mut exec(level, threads));
            same_bits(&actual, &expected, &format!("{level:?} with {threads} threads"));
        }
    }
}

/// So many numbers of whole stored blocks, by the definition of their format.
pub(crate) fn expanded(dtype: DType, from: &[u8], numbers: usize) -> Vec<f32> {
    let mut expanded = vec![0.0; numbers];
    let to = &mut expanded[..];
    Level::Portable.run(Expand { dtype, from, to });
    expanded
}

/// A matrix of the given numbers.
pub(crate) fn matrix(width: usize, numbers: &[f32]) -> Matrix {
    let mut m = Matrix::default();
    m.set(width, numbers);
    m
}

/// `n` numbers in [-1, 1), the same for the same seed.
pub(crate) fn numbers(seed: u64, n: usize) -> Vec<f32> {
    bits(seed)
        .take(n)
        .map(|b| (b >> 40) as f32 / (1_u64 << 23) as f32 - 1.0)
        .collect()
}

/// `n` bytes, the same for the same seed.
pub(crate) fn bytes(seed: u64, n: usize) -> Vec<u8> {
    bits(seed).take(n).map(|b| b.to_le_bytes()[7]).collect()
}

/// Endless random bits (splitmix64).
fn bits(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed.wrapping_mul(0x2545_F491_4F6C_DD1D);
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    })
}

/// Asserts that two results are the same bit for bit.
#[track_caller]
pub(crate) fn same_bits(a: &[f32], b: &[f32], what: &str) {
    assert_eq!(a.len(), b.len(), "{what}: length");
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert_eq!(a.to_bits(), b.to_bits(), "{what}: number {i}: {a} and {b}");
    }
}

/// Asserts that every number is within `tolerance` of the expected one, relative to the largest expected.
#[track_caller]
pub(crate) fn close(actual: &[f32], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(actual.len(), expected.len(), "{what}: length");
    let largest = expected.iter().fold(1e-30_f64, |m, e| m.max(e.abs()));
    for (i, (a, e)) in actual.iter().zip(expected).enumerate() {
        let error = (f64::from(*a) - e).abs() / largest;
        assert!(
            error <= tolerance,
            "{what}: number {i} is {a}, expected {e} (error {error:e})"
        );
    }
}
