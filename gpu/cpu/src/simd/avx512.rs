//! AVX-512: sixteen lanes are one register. With VNNI, four products of bytes are one instruction; without, three.
//!
//! The methods carry no `#[target_feature]` (a trait's cannot); they are inlined into functions that do.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, __m512, __m512i, _mm_add_ps, _mm_add_ss, _mm_and_si128, _mm_cvtph_ps, _mm_cvtsi32_si128,
    _mm_cvtss_f32, _mm_loadu_si128, _mm_movehdup_ps, _mm_movehl_ps, _mm_set1_epi8, _mm_srli_epi16,
    _mm256_add_ps, _mm256_castpd_ps, _mm256_castps256_ps128, _mm256_extractf128_ps, _mm256_loadu_si256,
    _mm512_abs_epi8, _mm512_add_epi16, _mm512_add_epi32, _mm512_add_ps, _mm512_and_si512, _mm512_castpd_ps,
    _mm512_castps_pd, _mm512_castps512_ps256, _mm512_cvtepi8_epi32, _mm512_cvtepi32_ps, _mm512_cvtepu8_epi32,
    _mm512_cvtph_ps, _mm512_dpbusd_epi32, _mm512_extractf64x4_pd, _mm512_fmadd_ps, _mm512_loadu_ps,
    _mm512_loadu_si512, _mm512_madd_epi16, _mm512_maddubs_epi16, _mm512_mask_sub_epi8, _mm512_movepi8_mask,
    _mm512_mul_ps, _mm512_permutexvar_ps, _mm512_set1_epi8, _mm512_set1_epi16, _mm512_set1_epi32,
    _mm512_set1_ps, _mm512_setzero_ps, _mm512_setzero_si512, _mm512_shuffle_f32x4, _mm512_shuffle_ps,
    _mm512_srli_epi16, _mm512_storeu_ps, _mm512_unpackhi_pd, _mm512_unpacklo_pd, _mm512_xor_si512,
};

use super::{Bytes, LANES, Lane, Simd};

/// Where transposing in four steps leaves the sum of each vector: quarters 0, 2, 1, 3, and in them numbers 0, 2, 1, 3.
const WHERE: [i32; LANES] = [0, 2, 1, 3, 8, 10, 9, 11, 4, 6, 5, 7, 12, 14, 13, 15];

/// Proof of AVX-512 F, BW, DQ and VL, of F16C, and perhaps of VNNI.
#[derive(Copy, Clone)]
pub(super) struct Avx512<const VNNI: bool>(());

impl Avx512<false> {
    #[inline]
    #[target_feature(enable = "f16c,avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) fn new() -> Self {
        Self(())
    }
}

impl Avx512<true> {
    #[inline]
    #[target_feature(enable = "f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    pub(super) fn with_vnni() -> Self {
        Self(())
    }
}

impl<const VNNI: bool> Avx512<VNNI> {
    /// The sums of sixteen vectors at once: the tree of [`Simd::sum`], with the vectors transposed step by step.
    #[inline(always)]
    fn sum_16(self, v: &[__m512; 16]) -> Lane {
        // Loops and not `array::from_fn`: a closure passed through the standard library might not be inlined.
        // SAFETY: `self` proves AVX-512 F.
        let sums = unsafe {
            // 8+8: the low half is vector i, the high half vector i + 8.
            let mut s8 = [v[0]; 8];
            for i in 0..8 {
                let (a, b) = (v[i], v[i + 8]);
                let (low, high) = (
                    _mm512_shuffle_f32x4::<0x44>(a, b),
                    _mm512_shuffle_f32x4::<0xEE>(a, b),
                );
                s8[i] = _mm512_add_ps(low, high);
            }
            // 4+4: quarters are the vectors i, i + 8, i + 4, i + 12.
            let mut s4 = [v[0]; 4];
            for i in 0..4 {
                let (a, b) = (s8[i], s8[i + 4]);
                let (low, high) = (
                    _mm512_shuffle_f32x4::<0x88>(a, b),
                    _mm512_shuffle_f32x4::<0xDD>(a, b),
                );
                s4[i] = _mm512_add_ps(low, high);
            }
            // 2+2: in every quarter two lanes of vector i, then two of i + 2.
            let mut s2 = [v[0]; 2];
            for i in 0..2 {
                let (a, b) = (_mm512_castps_pd(s4[i]), _mm512_castps_pd(s4[i + 2]));
                let (low, high) = (_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b));
                s2[i] = _mm512_add_ps(_mm512_castpd_ps(low), _mm512_castpd_ps(high));
            }
            // 1+1: in every quarter the vectors 0, 2, 1, 3.
            let (low, high) = (
                _mm512_shuffle_ps::<0x88>(s2[0], s2[1]),
                _mm512_shuffle_ps::<0xDD>(s2[0], s2[1]),
            );
            let mixed = _mm512_add_ps(low, high);
            _mm512_permutexvar_ps(_mm512_loadu_si512(WHERE.as_ptr().cast()), mixed)
        };
        let mut memory = [0.0; LANES];
        self.store(sums, &mut memory);
        memory
    }
}

impl<const VNNI: bool> Simd for Avx512<VNNI> {
    type V = __m512;
    type I = __m512i;
    type B = __m512i;
    type H = __m512i;
    const WIDE: bool = true;
    /// Without VNNI, bytes without a sign could overflow the sums of two products in 16 bits.
    const BIAS: i32 = if VNNI { 0 } else { 128 };

    #[inline(always)]
    fn zero(self) -> __m512 {
        // SAFETY: `self` proves AVX-512 F.
        unsafe { _mm512_setzero_ps() }
    }

    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        // SAFETY: `self` proves AVX-512 F.
        unsafe { _mm512_set1_ps(x) }
    }

    #[inline(always)]
    fn load(self, from: &Lane) -> __m512 {
        // SAFETY: `self` proves AVX-512 F; sixteen numbers are readable at `from`, and the load needs no alignment.
        unsafe { _mm512_loadu_ps(from.as_ptr()) }
    }

    #[inline(always)]
    fn store(self, v: __m512, to: &mut Lane) {
        // SAFETY: `self` proves AVX-512 F; sixteen numbers are writable at `to`, and the store needs no alignment.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), v) }
    }

    #[inline(always)]
    fn half(self, from: [u8; 2]) -> f32 {
        let bits = i32::from(u16::from_le_bytes(from));
        // SAFETY: `self` proves F16C.
        unsafe { _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits))) }
    }

    #[inline(always)]
    fn unsigned(self, from: &[u8; 16]) -> __m512 {
        // SAFETY: `self` proves AVX-512 F; sixteen bytes are readable at `from`.
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(from.as_ptr().cast()))) }
    }

    #[inline(always)]
    fn signed(self, from: &[u8; 16]) -> __m512 {
        // SAFETY: `self` proves AVX-512 F; sixteen bytes are readable at `from`.
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(from.as_ptr().cast()))) }
    }

    #[inline(always)]
    fn nibbles(self, from: &[u8; 16]) -> [__m512; 2] {
        // SAFETY: `self` proves AVX-512 F; sixteen bytes are readable at `from`.
        unsafe {
            let bytes = _mm_loadu_si128(from.as_ptr().cast());
            let low = _mm_and_si128(bytes, _mm_set1_epi8(15));
            let high = _mm_and_si128(_mm_srli_epi16::<4>(bytes), _mm_set1_epi8(15));
            [
                _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(low)),
                _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(high)),
            ]
        }
    }

    #[inline(always)]
    fn fma(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: `self` proves AVX-512 F.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn sum(self, v: __m512) -> f32 {
        // SAFETY: `self` proves AVX-512 F, and with it AVX2.
        unsafe {
            let high = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(v)));
            let s8 = _mm256_add_ps(_mm512_castps512_ps256(v), high);
            let s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps::<1>(s8));
            let s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
            _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)))
        }
    }

    #[inline(always)]
    fn sums<const N: usize>(self, v: [__m512; N]) -> [f32; N] {
        match <&[__m512; 16]>::try_from(v.as_slice()) {
            Ok(sixteen) => {
                let mut sums = [0.0; N];
                sums.copy_from_slice(&self.sum_16(sixteen));
                sums
            }
            Err(_) => {
                let mut sums = [0.0; N];
                for i in 0..N {
                    sums[i] = self.sum(v[i]);
                }
                sums
            }
        }
    }

    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: `self` proves AVX-512 F.
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    fn halves(self, from: &[u8; 2 * LANES]) -> __m512 {
        let from = from.as_ptr().cast::<__m256i>();
        // SAFETY: `self` proves AVX-512 F; 32 bytes are readable at `from`, and the load needs no alignment.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from)) }
    }

    #[inline(always)]
    fn ints(self, x: i32) -> __m512i {
        // SAFETY: `self` proves AVX-512 F.
        unsafe { _mm512_set1_epi32(x) }
    }

    #[inline(always)]
    fn floats(self, x: __m512i) -> __m512 {
        // SAFETY: `self` proves AVX-512 F.
        unsafe { _mm512_cvtepi32_ps(x) }
    }

    #[inline(always)]
    fn bytes(self, from: &Bytes) -> __m512i {
        // SAFETY: `self` proves AVX-512 F; 64 bytes are readable at `from`, and the load needs no alignment.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }

    #[inline(always)]
    fn split(self, bytes: __m512i) -> [__m512i; 2] {
        // SAFETY: `self` proves AVX-512 F and BW.
        unsafe {
            let low = _mm512_set1_epi8(15);
            [
                _mm512_and_si512(bytes, low),
                _mm512_and_si512(_mm512_srli_epi16::<4>(bytes), low),
            ]
        }
    }

    #[inline(always)]
    fn dot(self, acc: __m512i, bytes: __m512i, x: [i8; 4]) -> __m512i {
        // SAFETY: `self` proves AVX-512 BW, and VNNI where it is used. Two products of at most 127² fit into 16 bits.
        unsafe {
            let x = _mm512_set1_epi32(i32::from_le_bytes(x.map(i8::cast_unsigned)));
            if VNNI {
                _mm512_dpbusd_epi32(acc, bytes, x)
            } else {
                let pairs = _mm512_maddubs_epi16(bytes, x);
                _mm512_add_epi32(acc, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))
            }
        }
    }

    #[inline(always)]
    fn open_halves(self, acc: __m512i) -> __m512i {
        if VNNI { acc } else { self.ints(0) }
    }

    #[inline(always)]
    fn dot_halves(self, sums: __m512i, bytes: __m512i, x: [i8; 4]) -> __m512i {
        if VNNI {
            return self.dot(sums, bytes, x);
        }
        // SAFETY: `self` proves AVX-512 BW. Sixteen products of at most 15 · 127 fit into 16 bits.
        unsafe {
            let x = _mm512_set1_epi32(i32::from_le_bytes(x.map(i8::cast_unsigned)));
            _mm512_add_epi16(sums, _mm512_maddubs_epi16(bytes, x))
        }
    }

    #[inline(always)]
    fn close_halves(self, sums: __m512i, acc: __m512i) -> __m512i {
        if VNNI {
            return sums;
        }
        // SAFETY: `self` proves AVX-512 BW.
        unsafe { _mm512_add_epi32(acc, _mm512_madd_epi16(sums, _mm512_set1_epi16(1))) }
    }

    #[inline(always)]
    fn dot_bytes(self, acc: __m512i, bytes: __m512i, x: [i8; 4]) -> __m512i {
        if VNNI {
            return self.dot(acc, bytes, x);
        }
        // SAFETY: `self` proves AVX-512 BW. Two products of at most 128 · 127 fit into 16 bits.
        unsafe {
            let x = _mm512_set1_epi32(i32::from_le_bytes(x.map(i8::cast_unsigned)));
            let signed = _mm512_xor_si512(bytes, _mm512_set1_epi8(-128));
            let negative = _mm512_movepi8_mask(signed);
            let x = _mm512_mask_sub_epi8(x, negative, _mm512_setzero_si512(), x);
            let pairs = _mm512_maddubs_epi16(_mm512_abs_epi8(signed), x);
            _mm512_add_epi32(acc, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))
        }
    }
}
