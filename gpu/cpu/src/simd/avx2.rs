//! AVX2, FMA and F16C: sixteen lanes are two registers.
//!
//! The methods carry no `#[target_feature]` (a trait's cannot); they are inlined into functions that do.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m128i, __m256, _mm_add_ps, _mm_add_ss, _mm_and_si128, _mm_cvtph_ps, _mm_cvtsi32_si128, _mm_cvtss_f32,
    _mm_loadu_si128, _mm_movehdup_ps, _mm_movehl_ps, _mm_set1_epi8, _mm_srli_epi16, _mm_srli_si128,
    _mm256_add_ps, _mm256_castps256_ps128, _mm256_cvtepi8_epi32, _mm256_cvtepi32_ps, _mm256_cvtepu8_epi32,
    _mm256_extractf128_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_setzero_ps,
    _mm256_storeu_ps,
};

use super::{Lane, Simd};

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
    const WIDE: bool = false;

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
}
