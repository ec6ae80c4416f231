//! GGML's formats of 32 numbers a block: a scale, perhaps a minimum, perhaps fifth bits, and nibbles or bytes.
//! Byte `i` of the nibbles holds number `i` (low) and number `i + 16` (high).

use super::write;
use crate::simd::{LANES, Simd};

/// d · (q − 8)
#[inline(always)]
pub(super) fn q4_0<S: Simd>(simd: S, block: &[u8; 18], out: &mut [f32; 32]) {
    let d = simd.half([block[0], block[1]]);
    write_nibbles(simd, &block[2..], d, -8.0 * d, out);
}

/// d · q + m
#[inline(always)]
pub(super) fn q4_1<S: Simd>(simd: S, block: &[u8; 20], out: &mut [f32; 32]) {
    let (d, m) = (simd.half([block[0], block[1]]), simd.half([block[2], block[3]]));
    write_nibbles(simd, &block[4..], d, m, out);
}

/// d · (q − 16), the fifth bit of number `i` in bit `i` of a word of its own
#[inline(always)]
pub(super) fn q5_0<S: Simd>(simd: S, block: &[u8; 22], out: &mut [f32; 32]) {
    let d = simd.half([block[0], block[1]]);
    write_five_bits(simd, &block[2..], d, -16.0 * d, out);
}

/// d · q + m, with fifth bits
#[inline(always)]
pub(super) fn q5_1<S: Simd>(simd: S, block: &[u8; 24], out: &mut [f32; 32]) {
    let (d, m) = (simd.half([block[0], block[1]]), simd.half([block[2], block[3]]));
    write_five_bits(simd, &block[4..], d, m, out);
}

/// d · q, q a signed byte
#[inline(always)]
pub(super) fn q8_0<S: Simd>(simd: S, block: &[u8; 34], out: &mut [f32; 32]) {
    let d = simd.half([block[0], block[1]]);
    for (q, out) in block[2..].as_chunks().0.iter().zip(out.as_chunks_mut().0) {
        write(simd, simd.signed(q), d, 0.0, out);
    }
}

#[inline(always)]
fn write_nibbles<S: Simd>(simd: S, q: &[u8], d: f32, m: f32, out: &mut [f32; 32]) {
    for q in q.as_chunks().0 {
        let [low, high] = simd.nibbles(q);
        let (out, _) = out.as_chunks_mut();
        write(simd, low, d, m, &mut out[0]);
        write(simd, high, d, m, &mut out[1]);
    }
}

/// A word of fifth bits, then nibbles.
#[inline(always)]
fn write_five_bits<S: Simd>(simd: S, q: &[u8], d: f32, m: f32, out: &mut [f32; 32]) {
    let (mut low, mut high) = ([0; LANES], [0; LANES]);
    for i in 0..LANES {
        let fifth = |i: usize| (q[i / 8] >> (i % 8) & 1) << 4;
        low[i] = q[4 + i] & 15 | fifth(i);
        high[i] = q[4 + i] >> 4 | fifth(i + LANES);
    }
    let (out, _) = out.as_chunks_mut();
    write(simd, simd.unsigned(&low), d, m, &mut out[0]);
    write(simd, simd.unsigned(&high), d, m, &mut out[1]);
}
