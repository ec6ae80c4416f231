//! Plain Rust: the definition of the results, and the level of every machine without one of its own.

use super::{Lane, Simd, tree_sum};

#[derive(Copy, Clone)]
pub(crate) struct Portable;

impl Simd for Portable {
    type V = Lane;
    const WIDE: bool = false;

    #[inline(always)]
    fn zero(self) -> Lane {
        [0.0; 16]
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Lane {
        [x; 16]
    }

    #[inline(always)]
    fn load(self, from: &Lane) -> Lane {
        *from
    }

    #[inline(always)]
    fn store(self, v: Lane, to: &mut Lane) {
        *to = v;
    }

    #[inline(always)]
    fn unsigned(self, from: &[u8; 16]) -> Lane {
        from.map(f32::from)
    }

    #[inline(always)]
    fn signed(self, from: &[u8; 16]) -> Lane {
        from.map(|b| f32::from(b.cast_signed()))
    }

    #[inline(always)]
    fn nibbles(self, from: &[u8; 16]) -> [Lane; 2] {
        [from.map(|b| f32::from(b & 15)), from.map(|b| f32::from(b >> 4))]
    }

    #[inline(always)]
    fn fma(self, a: Lane, b: Lane, mut c: Lane) -> Lane {
        for l in 0..c.len() {
            c[l] = a[l].mul_add(b[l], c[l]);
        }
        c
    }

    #[inline(always)]
    fn sum(self, v: Lane) -> f32 {
        tree_sum(&v)
    }
}
