//! How the numbers of each format stand in a tile, and how they come there from GGML's blocks (`formats` has their definitions).

use super::BLOCK;
use crate::simd::{LANES, Simd};

/// Outputs of a tile: one a lane.
pub(super) const OUTPUTS: usize = LANES;

/// A format. A number is code · scale − [`Form::OFFSET`] · scale, or code · scale + minimum.
///
/// Codes of a tile's block of 32 columns stand in lines of 64 bytes, four for each of the 16 outputs. With nibbles, byte `i` of an
/// output in line `j` holds column `4j + i` low and column `16 + 4j + i` high; with bytes, column `4j + i`.
pub(super) trait Form {
    /// Two codes a byte.
    const NIBBLES: bool = false;
    /// Codes may be above 127.
    const WIDE: bool = false;
    /// What is taken from every code.
    const OFFSET: i32 = 0;
    /// There are minima.
    const MINIMA: bool = false;
    /// The second sixteen columns of a block have a scale of their own.
    const HALVES: bool = false;
    /// Columns and bytes of a block in the file.
    const FILE_BLOCK: (usize, usize);
    /// Bytes of the scales of sixteen such blocks, one of each output, in a tile.
    const SCALE_BYTES: usize;

    /// The codes of the `part`th 32 columns of a block of the file.
    fn codes(block: &[u8], part: usize, to: &mut [u8; BLOCK]);

    /// Puts the scales of a block of the file where [`Form::scales`] looks for those of this output.
    fn put_scales(block: &[u8], output: usize, to: &mut [u8]);

    /// The scales, and the minima or the scales of the second halves, of the `part`th 32 columns of sixteen blocks.
    fn scales<S: Simd>(simd: S, scales: &[u8], part: usize) -> [S::V; 2];

    /// Lines of a block.
    const LINES: usize = if Self::NIBBLES { 4 } else { 8 };
    /// Blocks of a tile that come from one block of the file.
    const PARTS: usize = Self::FILE_BLOCK.0 / BLOCK;
}

pub(super) struct Q4_0;
pub(super) struct Q4_1;
pub(super) struct Q5_0;
pub(super) struct Q5_1;
pub(super) struct Q8_0;
pub(super) struct Q4K;
pub(super) struct Q6K;

impl Form for Q4_0 {
    const NIBBLES: bool = true;
    const OFFSET: i32 = 8;
    const FILE_BLOCK: (usize, usize) = (32, 18);
    const SCALE_BYTES: usize = 32;

    #[inline(always)]
    fn codes(block: &[u8], _: usize, to: &mut [u8; BLOCK]) {
        nibbles(&block[2..], to);
    }

    #[inline(always)]
    fn put_scales(block: &[u8], output: usize, to: &mut [u8]) {
        put_halves(block, 1, output, to);
    }

    #[inline(always)]
    fn scales<S: Simd>(simd: S, scales: &[u8], _: usize) -> [S::V; 2] {
        [halves(simd, scales, 0), simd.zero()]
    }
}

impl Form for Q4_1 {
    const NIBBLES: bool = true;
    const MINIMA: bool = true;
    const FILE_BLOCK: (usize, usize) = (32, 20);
    const SCALE_BYTES: usize = 64;

    #[inline(always)]
    fn codes(block: &[u8], _: usize, to: &mut [u8; BLOCK]) {
        nibbles(&block[4..], to);
    }

    #[inline(always)]
    fn put_scales(block: &[u8], output: usize, to: &mut [u8]) {
        put_halves(block, 2, output, to);
    }

    #[inline(always)]
    fn scales<S: Simd>(simd: S, scales: &[u8], _: usize) -> [S::V; 2] {
        [halves(simd, scales, 0), halves(simd, scales, 1)]
    }
}

impl Form for Q5_0 {
    const OFFSET: i32 = 16;
    const FILE_BLOCK: (usize, usize) = (32, 22);
    const SCALE_BYTES: usize = 32;

    #[inline(always)]
    fn codes(block: &[u8], _: usize, to: &mut [u8; BLOCK]) {
        five_bits(&block[2..], to);
    }

    #[inline(always)]
    fn put_scales(block: &[u8], output: usize, to: &mut [u8]) {
        put_halves(block, 1, output, to);
    }

    #[inline(always)]
    fn scales<S: Simd>(simd: S, scales: &[u8], part: usize) -> [S::V; 2] {
        Q4_0::scales(simd, scales, part)
    }
}

impl Form for Q5_1 {
    const MINIMA: bool = true;
    const FILE_BLOCK: (usize, usize) = (32, 24);
    const SCALE_BYTES: usize = 64;

    #[inline(always)]
    fn codes(block: &[u8], _: usize, to: &mut [u8; BLOCK]) {
        five_bits(&block[4..], to);
    }

    #[inline(always)]
    fn put_scales(block: &[u8], output: usize, to: &mut [u8]) {
        put_halves(block, 2, output, to);
    }

    #[inline(always)]
    fn scales<S: Simd>(simd: S, scales: &[u8], part: usize) -> [S::V; 2] {
        Q4_1::scales(simd, scales, part)
    }
}

impl Form for Q8_0 {
    const WIDE: bool = true;
    const OFFSET: i32 = 128;
    const FILE_BLOCK: (usize, usize) = (32, 34);
    const SCALE_BYTES: usize = 32;

    #[inline(always)]
    fn codes(block: &[u8], _: usize, to: &mut [u8; BLOCK]) {
        for (to, q) in to.iter_mut().zip(&block[2..]) {
            // Two's complement plus 128.
            *to = q ^ 0x80;
        }
    }

    #[inline(always)]
    fn put_scales(block: &[u8], output: usize, to: &mut [u8]) {
        put_halves(block, 1, output, to);
    }

    #[inline(always)]
    fn scales<S: Simd>(simd: S, scales: &[u8], part: usize) -> [S::V; 2] {
        Q4_0::scales(simd, scales, part)
    }
}

/// Scales in a tile: the factors of scales and of minima; then for every 32 columns scales and minima as bytes.
impl Form for Q4K {
    const NIBBLES: bool = true;
    const MINIMA: bool = true;
    const FILE_BLOCK: (usize, usize) = (256, 144);
    const SCALE_BYTES: usize = 64 + 8 * 2 * OUTPUTS;

    #[inline(always)]
    fn codes(block: &[u8], part: usize, to: &mut [u8; BLOCK]) {
        let shift = part % 2 * 4;
        for (to, q) in to.iter_mut().zip(&block[16 + part / 2 * BLOCK..]) {
            *to = q >> shift & 15;
        }
    }

    #[inline(always)]
    fn put_scales(block: &[u8], output: usize, to: &mut [u8]) {
        put_halves(block, 2, output, to);
        for part in 0..8 {
            let [scale, minimum] = six_bits(&block[4..16], part);
            let to = &mut to[64 + part * 2 * OUTPUTS..];
            (to[output], to[OUTPUTS + output]) = (scale, minimum);
        }
    }

    #[inline(always)]
    fn scales<S: Simd>(simd: S, scales: &[u8], part: usize) -> [S::V; 2] {
        let (bytes, _) = scales[64 + part * 2 * OUTPUTS..][..2 * OUTPUTS].as_chunks();
        let minus = simd.splat(-1.0);
        [
            simd.mul(halves(simd, scales, 0), simd.unsigned(&bytes[0])),
            simd.mul(simd.mul(halves(simd, scales, 1), minus), simd.unsigned(&bytes[1])),
        ]
    }
}

/// Scales in a tile: their factors; then for every sixteen columns the scales as bytes.
impl Form for Q6K {
    const OFFSET: i32 = 32;
    const HALVES: bool = true;
    const FILE_BLOCK: (usize, usize) = (256, 210);
    const SCALE_BYTES: usize = 32 + 16 * OUTPUTS;

    #[inline(always)]
    fn codes(block: &[u8], part: usize, to: &mut [u8; BLOCK]) {
        let (half, quarter) = (part / 4, part % 4);
        let low = &block[half * 64 + quarter % 2 * 32..][..BLOCK];
        let high = &block[128 + half * 32..][..BLOCK];
        for ((to, low), high) in to.iter_mut().zip(low).zip(high) {
            *to = low >> (quarter / 2 * 4) & 15 | (high >> (quarter * 2) & 3) << 4;
        }
    }

    #[inline(always)]
    fn put_scales(block: &[u8], output: usize, to: &mut [u8]) {
        put_halves(&block[208..], 1, output, to);
        for (group, scale) in block[192..208].iter().enumerate() {
            to[32 + group * OUTPUTS + output] = *scale;
        }
    }

    #[inline(always)]
    fn scales<S: Simd>(simd: S, scales: &[u8], part: usize) -> [S::V; 2] {
        let (bytes, _) = scales[32 + part * 2 * OUTPUTS..][..2 * OUTPUTS].as_chunks();
        let factor = halves(simd, scales, 0);
        [
            simd.mul(factor, simd.signed(&bytes[0])),
            simd.mul(factor, simd.signed(&bytes[1])),
        ]
    }
}

/// Sixteen low nibbles, then sixteen high ones.
#[inline(always)]
fn nibbles(q: &[u8], to: &mut [u8; BLOCK]) {
    let (low, high) = to.split_at_mut(BLOCK / 2);
    for ((low, high), q) in low.iter_mut().zip(high).zip(q) {
        (*low, *high) = (q & 15, q >> 4);
    }
}

/// A word of fifth bits, then nibbles.
#[inline(always)]
fn five_bits(q: &[u8], to: &mut [u8; BLOCK]) {
    nibbles(&q[4..], to);
    for (i, to) in to.iter_mut().enumerate() {
        *to |= (q[i / 8] >> (i % 8) & 1) << 4;
    }
}

/// The scale and the minimum of a group of Q4_K: 6 bits each, those of the last four groups split between low nibbles and spare
/// bits.
#[inline(always)]
fn six_bits(packed: &[u8], group: usize) -> [u8; 2] {
    if group < 4 {
        [packed[group] & 63, packed[group + 4] & 63]
    } else {
        [
            packed[group + 4] & 15 | packed[group - 4] >> 6 << 4,
            packed[group + 4] >> 4 | packed[group] >> 6 << 4,
        ]
    }
}

/// The first `count` half-precision numbers of a block, each to those of its kind of all outputs.
#[inline(always)]
fn put_halves(block: &[u8], count: usize, output: usize, to: &mut [u8]) {
    for (half, to) in block.as_chunks::<2>().0[..count]
        .iter()
        .zip(to.chunks_exact_mut(2 * OUTPUTS))
    {
        to[2 * output..][..2].copy_from_slice(half);
    }
}

/// The `i`th half-precision number of all outputs.
#[inline(always)]
fn halves<S: Simd>(simd: S, scales: &[u8], i: usize) -> S::V {
    simd.halves(&scales.as_chunks().0[i])
}

/// Evaluates an expression with `$F` standing for the form of a format; another for floating point, which has none.
macro_rules! with_form {
    ($dtype:expr, $F:ident => $then:expr, none => $none:expr) => {{
        use $crate::quant::form;
        match $dtype {
            engine::DType::Q4_0 => {
                type $F = form::Q4_0;
                $then
            }
            engine::DType::Q4_1 => {
                type $F = form::Q4_1;
                $then
            }
            engine::DType::Q5_0 => {
                type $F = form::Q5_0;
                $then
            }
            engine::DType::Q5_1 => {
                type $F = form::Q5_1;
                $then
            }
            engine::DType::Q8_0 => {
                type $F = form::Q8_0;
                $then
            }
            engine::DType::Q4K => {
                type $F = form::Q4K;
                $then
            }
            engine::DType::Q6K => {
                type $F = form::Q6K;
                $then
            }
            engine::DType::F32 | engine::DType::F16 | engine::DType::Bf16 => $none,
        }
    }};
}
pub(super) use with_form;
