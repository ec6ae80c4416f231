//! GGML's K formats: 256 numbers a block, in groups with quantised scales of their own.

use super::write;
use crate::simd::{LANES, Simd};

/// d · scale · q − dmin · min: eight groups of 32, their 6-bit scales and minima packed into 12 bytes. Every 32 bytes of nibbles
/// hold one group low and the next one high.
#[inline(always)]
pub(super) fn q4_k<S: Simd>(simd: S, block: &[u8; 144], out: &mut [f32; 256]) {
    let d = simd.half([block[0], block[1]]);
    let d_min = simd.half([block[2], block[3]]);
    let (nibbles, _) = block[16..].as_chunks();
    let (out, _) = out.as_chunks_mut();
    for pair in 0..4 {
        let (s0, m0) = scale_and_min(&block[4..16], 2 * pair);
        let (s1, m1) = scale_and_min(&block[4..16], 2 * pair + 1);
        for part in 0..2 {
            let [low, high] = simd.nibbles(&nibbles[pair * 2 + part]);
            write(simd, low, d * s0, -d_min * m0, &mut out[pair * 4 + part]);
            write(simd, high, d * s1, -d_min * m1, &mut out[pair * 4 + 2 + part]);
        }
    }
}

/// The scale and the minimum of a group: 6 bits each, those of the last four groups split between low nibbles and spare bits.
#[inline(always)]
fn scale_and_min(packed: &[u8], group: usize) -> (f32, f32) {
    let (scale, min) = if group < 4 {
        (packed[group] & 63, packed[group + 4] & 63)
    } else {
        (
            packed[group + 4] & 15 | packed[group - 4] >> 6 << 4,
            packed[group + 4] >> 4 | packed[group] >> 6 << 4,
        )
    };
    (f32::from(scale), f32::from(min))
}

/// d · scale · (q − 32): sixteen groups of 16 with signed byte scales; of each number's 6 bits four are in the first 128 bytes, two
/// in the next 64.
#[inline(always)]
pub(super) fn q6_k<S: Simd>(simd: S, block: &[u8; 210], out: &mut [f32; 256]) {
    let d = simd.half([block[208], block[209]]);
    for (group, out) in out.as_chunks_mut().0.iter_mut().enumerate() {
        // Half of 128 numbers, quarter of 32 in it, half of that again.
        let (half, quarter, part) = (group / 8, group / 2 % 4, group % 2);
        let low = &block[half * 64 + quarter % 2 * 32 + part * LANES..][..LANES];
        let high = &block[128 + half * 32 + part * LANES..][..LANES];
        let mut q = [0; LANES];
        for i in 0..LANES {
            q[i] = low[i] >> (quarter / 2 * 4) & 15 | (high[i] >> (quarter * 2) & 3) << 4;
        }
        let scale = d * f32::from(block[192 + group].cast_signed());
        write(simd, simd.unsigned(&q), scale, -32.0 * scale, out);
    }
}
