//! Weights in tiles.

use engine::{BackendError, DType, TensorView};

use super::BLOCK;
use super::form::{Form, OUTPUTS, with_form};
use crate::memory::{Arena, Memory};
use crate::simd::{LANES, Simd};

/// A weight matrix in tiles of 16 outputs by 32 columns, tile after tile along the columns. Outputs that are missing in the last
/// tiles have scales of 0.
pub(crate) struct Tiles {
    pub(super) dtype: DType,
    rows: usize,
    columns: usize,
    codes: Memory,
    scales: Memory,
}

/// All columns of sixteen outputs.
#[derive(Copy, Clone)]
pub(super) struct Tile<'a> {
    pub(super) codes: &'a [u8],
    pub(super) scales: &'a [u8],
}

impl Tiles {
    /// Repacks a tensor of whole blocks; `None` if its format is floating point.
    ///
    /// # Errors
    /// When there is not that much memory.
    pub(crate) fn new(tensor: &TensorView<'_>, arena: &mut Arena) -> Result<Option<Self>, BackendError> {
        with_form!(tensor.dtype, F => Self::pack::<F>(tensor, arena).map(Some), none => Ok(None))
    }

    fn pack<F: Form>(tensor: &TensorView<'_>, arena: &mut Arena) -> Result<Self, BackendError> {
        let &TensorView {
            dtype,
            rows,
            columns,
            bytes,
            ..
        } = tensor;
        let tiles = rows.div_ceil(OUTPUTS);
        let code_bytes = columns / BLOCK * F::LINES * 64;
        let scale_bytes = columns / F::FILE_BLOCK.0 * F::SCALE_BYTES;
        let mut codes = arena.zeroed(tiles * code_bytes)?;
        let mut scales = arena.zeroed(tiles * scale_bytes)?;
        let row_bytes = columns / F::FILE_BLOCK.0 * F::FILE_BLOCK.1;
        for (row, from) in bytes.chunks_exact(row_bytes).enumerate() {
            let (tile, output) = (row / OUTPUTS, row % OUTPUTS);
            let codes = &mut codes[tile * code_bytes..][..code_bytes];
            let scales = &mut scales[tile * scale_bytes..][..scale_bytes];
            let blocks = codes.chunks_exact_mut(F::PARTS * F::LINES * 64);
            let blocks = blocks.zip(scales.chunks_exact_mut(F::SCALE_BYTES));
            for (from, (codes, scales)) in from.chunks_exact(F::FILE_BLOCK.1).zip(blocks) {
                F::put_scales(from, output, scales);
                for (part, lines) in codes.chunks_exact_mut(F::LINES * 64).enumerate() {
                    let mut q = [0; BLOCK];
                    F::codes(from, part, &mut q);
                    put_codes::<F>(&q, output, lines);
                }
            }
        }
        Ok(Self {
            dtype,
            rows,
            columns,
            codes,
            scales,
        })
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// Number of tiles of sixteen outputs.
    pub(super) fn count(&self) -> usize {
        self.rows.div_ceil(OUTPUTS)
    }

    #[inline(always)]
    pub(super) fn tile<F: Form>(&self, tile: usize) -> Tile<'_> {
        let code_bytes = self.columns / BLOCK * F::LINES * 64;
        let scale_bytes = self.columns / F::FILE_BLOCK.0 * F::SCALE_BYTES;
        Tile {
            codes: &self.codes[tile * code_bytes..][..code_bytes],
            scales: &self.scales[tile * scale_bytes..][..scale_bytes],
        }
    }

    /// One output's weights as numbers, rounded once each, as the format defines them.
    #[inline(always)]
    pub(crate) fn row<S: Simd>(&self, simd: S, row: usize, to: &mut [f32]) {
        with_form!(self.dtype, F => self.row_of::<S, F>(simd, row, to), none => ());
    }

    #[inline(always)]
    fn row_of<S: Simd, F: Form>(&self, simd: S, row: usize, to: &mut [f32]) {
        let (tile, output) = (self.tile::<F>(row / OUTPUTS), row % OUTPUTS);
        for (block, to) in to.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
            let lines = &tile.codes[block * F::LINES * 64..][..F::LINES * 64];
            let [scale, other] = tile.scales::<S, F>(simd, block);
            let (scale, other) = (lane(simd, scale, output), lane(simd, other, output));
            #[allow(clippy::cast_precision_loss, reason = "an offset is small")]
            let below = -F::OFFSET as f32;
            for (i, to) in to.iter_mut().enumerate() {
                let scale = if F::HALVES && i >= BLOCK / 2 { other } else { scale };
                let minimum = if F::MINIMA { other } else { below * scale };
                *to = f32::from(code::<F>(lines, output, i)).mul_add(scale, minimum);
            }
        }
    }
}

impl Tile<'_> {
    /// See [`Form::scales`]; of the `block`th 32 columns.
    #[inline(always)]
    pub(super) fn scales<S: Simd, F: Form>(self, simd: S, block: usize) -> [S::V; 2] {
        let scales = &self.scales[block / F::PARTS * F::SCALE_BYTES..][..F::SCALE_BYTES];
        F::scales(simd, scales, block % F::PARTS)
    }
}

#[inline(always)]
fn lane<S: Simd>(simd: S, v: S::V, i: usize) -> f32 {
    let mut lane = [0.0; LANES];
    simd.store(v, &mut lane);
    lane[i]
}

/// Puts an output's codes of 32 columns into their places in the lines of a block.
#[inline(always)]
fn put_codes<F: Form>(q: &[u8; BLOCK], output: usize, lines: &mut [u8]) {
    for (j, line) in lines.chunks_exact_mut(64).enumerate() {
        for (i, to) in line[4 * output..][..4].iter_mut().enumerate() {
            *to = q[4 * j + i];
            if F::NIBBLES {
                *to |= q[16 + 4 * j + i] << 4;
            }
        }
    }
}

/// What [`put_codes`] put.
#[inline(always)]
fn code<F: Form>(lines: &[u8], output: usize, column: usize) -> u8 {
    let (high, column) = (
        F::NIBBLES && column >= 16,
        if F::NIBBLES { column % 16 } else { column },
    );
    let byte = lines[column / 4 * 64 + 4 * output + column % 4];
    match (F::NIBBLES, high) {
        (true, true) => byte >> 4,
        (true, false) => byte & 15,
        (false, _) => byte,
    }
}
