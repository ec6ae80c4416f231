//! Plain Rust: the definition of the results, and the level of every machine without one of its own.

use super::{Bytes, LANES, Lane, Simd, tree_sum};

#[derive(Copy, Clone)]
pub(crate) struct Portable;

impl Simd for Portable {
    type V = Lane;
    type I = [i32; LANES];
    type B = Bytes;
    type H = Self::I;
    const WIDE: bool = false;
    const BIAS: i32 = 0;

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

    /// Without branches, so that loops over it are vectorised.
    #[inline(always)]
    fn half(self, from: [u8; 2]) -> f32 {
        /// Corrects the exponent, whose bias is 15 in a half and 127 in a float; exact, for subnormal halves too.
        const REBIAS: f32 = f32::from_bits((127 + 127 - 15) << 23);
        let bits = u32::from(u16::from_le_bytes(from));
        let magnitude = (bits & 0x7FFF) << 13;
        let finite = (f32::from_bits(magnitude) * REBIAS).to_bits();
        let special = magnitude | 0x7F80_0000;
        let value = if bits & 0x7C00 == 0x7C00 { special } else { finite };
        f32::from_bits(value | (bits & 0x8000) << 16)
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
    fn mul(self, mut a: Lane, b: Lane) -> Lane {
        for l in 0..a.len() {
            a[l] *= b[l];
        }
        a
    }

    #[inline(always)]
    fn sum(self, v: Lane) -> f32 {
        tree_sum(&v)
    }

    #[inline(always)]
    fn halves(self, from: &[u8; 2 * LANES]) -> Lane {
        let mut v = [0.0; LANES];
        for (v, half) in v.iter_mut().zip(from.as_chunks().0) {
            *v = self.half(*half);
        }
        v
    }

    #[inline(always)]
    fn ints(self, x: i32) -> [i32; LANES] {
        [x; LANES]
    }

    #[inline(always)]
    #[allow(clippy::cast_precision_loss, reason = "rounding is meant")]
    fn floats(self, x: [i32; LANES]) -> Lane {
        x.map(|x| x as f32)
    }

    #[inline(always)]
    fn bytes(self, from: &Bytes) -> Bytes {
        *from
    }

    #[inline(always)]
    fn split(self, bytes: Bytes) -> [Bytes; 2] {
        [bytes.map(|b| b & 15), bytes.map(|b| b >> 4)]
    }

    #[inline(always)]
    fn dot(self, mut acc: [i32; LANES], bytes: Bytes, x: [i8; 4]) -> [i32; LANES] {
        for (acc, bytes) in acc.iter_mut().zip(bytes.as_chunks::<4>().0) {
            for (b, x) in bytes.iter().zip(x) {
                *acc += i32::from(*b) * i32::from(x);
            }
        }
        acc
    }

    #[inline(always)]
    fn open_halves(self, acc: Self::I) -> Self::H {
        acc
    }

    #[inline(always)]
    fn dot_halves(self, sums: Self::H, bytes: Self::B, x: [i8; 4]) -> Self::H {
        self.dot(sums, bytes, x)
    }

    #[inline(always)]
    fn close_halves(self, sums: Self::H, _: Self::I) -> Self::I {
        sums
    }

    #[inline(always)]
    fn dot_bytes(self, acc: [i32; LANES], bytes: Bytes, x: [i8; 4]) -> [i32; LANES] {
        self.dot(acc, bytes, x)
    }
}
