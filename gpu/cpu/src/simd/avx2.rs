//! AVX2, FMA and F16C: sixteen lanes are two registers.
//!
//! The methods carry no `#[target_feature]` (a trait's cannot); they are inlined into functions that do.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m128i, __m256, __m256i, _mm_add_ps, _mm_add_ss, _mm_and_si128, _mm_cvtph_ps, _mm_cvtsi32_si128,
    _mm_cvtss_f32, _mm_loadu_si128, _mm_movehdup_ps, _mm_movehl_ps, _mm_set1_epi8, _mm_srli_epi16,
    _mm_srli_si128, _mm256_abs_epi8, _mm256_add_epi16, _mm256_add_epi32, _mm256_add_ps, _mm256_and_si256,
    _mm256_castps256_ps128, _mm256_cvtepi8_epi32, _mm256_cvtepi32_ps, _mm256_cvtepu8_epi32, _mm256_cvtph_ps,
    _mm256_extractf128_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_madd_epi16,
    _mm256_maddubs_epi16, _mm256_mul_ps, _mm256_set1_epi8, _mm256_set1_epi16, _mm256_set1_epi32,
    _mm256_set1_ps, _mm256_setzero_ps, _mm256_sign_epi8, _mm256_srli_epi16, _mm256_storeu_ps,
    _mm256_xor_si256,
};

use super::{Bytes, LANES, Lane, Simd};

/// Proof of AVX2, FMA and F16C.
#[derive(Copy, Clone)]
pub(super) struct Avx2(());

impl Avx2 {
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) fn new() -> Self {
        Self(())
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn unsigned(bytes: __m128i) -> [__m256; 2] {
    let upper = _mm_srli_si128::<8>(bytes);
    [
        _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)),
        _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(upper)),
    ]
}

impl Simd for Avx2 {
    type V = [__m256; 2];
    type I = [__m256i; 2];
    type B = [__m256i; 2];
    type H = [__m256i; 2];
    const WIDE: bool = false;
    /// Bytes without a sign could overflow the sums of two products in 16 bits.
    const BIAS: i32 = 128;

    #[inline(always)]
    fn zero(self) -> Self::V {
        // SAFETY: `self` proves AVX2.
        unsafe { [_mm256_setzero_ps(); 2] }
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Self::V {
        // SAFETY: `self` proves AVX2.
        unsafe { [_mm256_set1_ps(x); 2] }
    }

    #[inline(always)]
    fn load(self, from: &Lane) -> Self::V {
        let from = from.as_ptr();
        // SAFETY: `self` proves AVX2; sixteen numbers are readable at `from`, and the loads need no alignment.
        unsafe { [_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))] }
    }

    #[inline(always)]
    fn store(self, v: Self::V, to: &mut Lane) {
        let to = to.as_mut_ptr();
        // SAFETY: `self` proves AVX2; sixteen numbers are writable at `to`, and the stores need no alignment.
        unsafe {
            _mm256_storeu_ps(to, v[0]);
            _mm256_storeu_ps(to.add(8), v[1]);
        }
    }

    #[inline(always)]
    fn half(self, from: [u8; 2]) -> f32 {
        let bits = i32::from(u16::from_le_bytes(from));
        // SAFETY: `self` proves F16C.
        unsafe { _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits))) }
    }

    #[inline(always)]
    fn unsigned(self, from: &[u8; 16]) -> Self::V {
        // SAFETY: `self` proves AVX2; sixteen bytes are readable at `from`.
        unsafe { unsigned(_mm_loadu_si128(from.as_ptr().cast())) }
    }

    #[inline(always)]
    fn signed(self, from: &[u8; 16]) -> Self::V {
        // SAFETY: `self` proves AVX2; sixteen bytes are readable at `from`.
        unsafe {
            let bytes = _mm_loadu_si128(from.as_ptr().cast());
            let upper = _mm_srli_si128::<8>(bytes);
            [
                _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
                _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(upper)),
            ]
        }
    }

    #[inline(always)]
    fn nibbles(self, from: &[u8; 16]) -> [Self::V; 2] {
        // SAFETY: `self` proves AVX2; sixteen bytes are readable at `from`.
        unsafe {
            let bytes = _mm_loadu_si128(from.as_ptr().cast());
            let low = _mm_and_si128(bytes, _mm_set1_epi8(15));
            let high = _mm_and_si128(_mm_srli_epi16::<4>(bytes), _mm_set1_epi8(15));
            [unsigned(low), unsigned(high)]
        }
    }

    #[inline(always)]
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // SAFETY: `self` proves FMA.
        unsafe {
            [
                _mm256_fmadd_ps(a[0], b[0], c[0]),
                _mm256_fmadd_ps(a[1], b[1], c[1]),
            ]
        }
    }

    #[inline(always)]
    fn sum(self, v: Self::V) -> f32 {
        // SAFETY: `self` proves AVX2.
        unsafe {
            let s8 = _mm256_add_ps(v[0], v[1]);
            let s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps::<1>(s8));
            let s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
            _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)))
        }
    }

    #[inline(always)]
    fn mul(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: `self` proves AVX2.
        unsafe { [_mm256_mul_ps(a[0], b[0]), _mm256_mul_ps(a[1], b[1])] }
    }

    #[inline(always)]
    fn halves(self, from: &[u8; 2 * LANES]) -> Self::V {
        let from = from.as_ptr().cast::<__m128i>();
        // SAFETY: `self` proves F16C; 32 bytes are readable at `from`, and the loads need no alignment.
        unsafe {
            [
                _mm256_cvtph_ps(_mm_loadu_si128(from)),
                _mm256_cvtph_ps(_mm_loadu_si128(from.add(1))),
            ]
        }
    }

    #[inline(always)]
    fn ints(self, x: i32) -> Self::I {
        // SAFETY: `self` proves AVX2.
        unsafe { [_mm256_set1_epi32(x); 2] }
    }

    #[inline(always)]
    fn floats(self, x: Self::I) -> Self::V {
        // SAFETY: `self` proves AVX2.
        unsafe { [_mm256_cvtepi32_ps(x[0]), _mm256_cvtepi32_ps(x[1])] }
    }

    #[inline(always)]
    fn bytes(self, from: &Bytes) -> Self::B {
        let from = from.as_ptr().cast::<__m256i>();
        // SAFETY: `self` proves AVX2; 64 bytes are readable at `from`, and the loads need no alignment.
        unsafe { [_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))] }
    }

    #[inline(always)]
    fn split(self, bytes: Self::B) -> [Self::B; 2] {
        // SAFETY: `self` proves AVX2.
        unsafe {
            let low = _mm256_set1_epi8(15);
            let mut split = [bytes; 2];
            for i in 0..2 {
                split[0][i] = _mm256_and_si256(bytes[i], low);
                split[1][i] = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes[i]), low);
            }
            split
        }
    }

    #[inline(always)]
    fn dot(self, mut acc: Self::I, bytes: Self::B, x: [i8; 4]) -> Self::I {
        // SAFETY: `self` proves AVX2. Two products of at most 127² fit into 16 bits.
        unsafe {
            let x = _mm256_set1_epi32(i32::from_le_bytes(x.map(i8::cast_unsigned)));
            for i in 0..2 {
                let pairs = _mm256_maddubs_epi16(bytes[i], x);
                acc[i] = _mm256_add_epi32(acc[i], _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
            }
            acc
        }
    }

    #[inline(always)]
    fn open_halves(self, _: Self::I) -> Self::H {
        self.ints(0)
    }

    #[inline(always)]
    fn dot_halves(self, mut sums: Self::H, bytes: Self::B, x: [i8; 4]) -> Self::H {
        // SAFETY: `self` proves AVX2. Sixteen products of at most 15 · 127 fit into 16 bits.
        unsafe {
            let x = _mm256_set1_epi32(i32::from_le_bytes(x.map(i8::cast_unsigned)));
            for i in 0..2 {
                sums[i] = _mm256_add_epi16(sums[i], _mm256_maddubs_epi16(bytes[i], x));
            }
            sums
        }
    }

    #[inline(always)]
    fn close_halves(self, sums: Self::H, mut acc: Self::I) -> Self::I {
        // SAFETY: `self` proves AVX2.
        unsafe {
            for i in 0..2 {
                acc[i] = _mm256_add_epi32(acc[i], _mm256_madd_epi16(sums[i], _mm256_set1_epi16(1)));
            }
            acc
        }
    }

    #[inline(always)]
    fn dot_bytes(self, mut acc: Self::I, bytes: Self::B, x: [i8; 4]) -> Self::I {
        // SAFETY: `self` proves AVX2. Two products of at most 128 · 127 fit into 16 bits.
        unsafe {
            let x = _mm256_set1_epi32(i32::from_le_bytes(x.map(i8::cast_unsigned)));
            for i in 0..2 {
                let signed = _mm256_xor_si256(bytes[i], _mm256_set1_epi8(-128));
                let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(signed), _mm256_sign_epi8(x, signed));
                acc[i] = _mm256_add_epi32(acc[i], _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
            }
            acc
        }
    }
}
