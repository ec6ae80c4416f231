//! A weight on this device: as stored, in tiles for rounded activations, or as `f32` where that is what it is.

use std::ops::Range;

use engine::{BackendError, DType, TensorView};

use crate::device::Activations;
use crate::formats::{Expand, expand};
use crate::matrix::Aligned;
use crate::memory::Arena;
use crate::quant::Tiles;
use crate::simd::{LANES, Level, Simd};

/// A weight matrix of `rows` outputs by `columns` inputs, or a vector as one row.
pub struct Weight {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    store: Store,
}

enum Store {
    /// Rows of [`Weight::stride`] numbers, the missing ones 0.
    Dense(Aligned),
    /// Rows of whole blocks.
    Packed {
        dtype: DType,
        row_bytes: usize,
        bytes: Box<[u8]>,
    },
    /// For products of integers.
    Tiles(Tiles),
}

impl Weight {
    /// Takes a copy of a tensor. Matrices of `F32` and all vectors become numbers. Other matrices stay as they are, or are repacked
    /// where activations are rounded and their format is one of integers.
    pub(crate) fn new(
        tensor: &TensorView<'_>,
        activations: Activations,
        arena: &mut Arena,
    ) -> Result<Self, BackendError> {
        let &TensorView {
            name,
            dtype,
            rows,
            columns,
            bytes,
        } = tensor;
        let (block, block_bytes) = dtype.block();
        if rows == 0 || columns == 0 || columns % block != 0 {
            return Err(BackendError(format!(
                "tensor {name}: {rows} × {columns} numbers; {dtype:?} wants rows of whole blocks of {block}, at least one"
            )));
        }
        let row_bytes = columns / block * block_bytes;
        if row_bytes.checked_mul(rows) != Some(bytes.len()) {
            return Err(BackendError(format!(
                "tensor {name}: {} bytes for {rows} rows of {row_bytes} bytes ({dtype:?})",
                bytes.len()
            )));
        }
        let store = if rows == 1 || dtype == DType::F32 {
            let stride = columns.next_multiple_of(LANES);
            let mut numbers = Aligned::default();
            let rows = numbers.take(stride * rows).chunks_exact_mut(stride);
            for (to, from) in rows.zip(bytes.chunks_exact(row_bytes)) {
                Level::Portable.run(Expand {
                    dtype,
                    from,
                    to: &mut to[..columns],
                });
            }
            Store::Dense(numbers)
        } else {
            let tiles = match activations {
                Activations::Int8 => Tiles::new(tensor, arena)?,
                Activations::F32 => None,
            };
            tiles.map_or_else(
                || Store::Packed {
                    dtype,
                    row_bytes,
                    bytes: bytes.into(),
                },
                Store::Tiles,
            )
        };
        Ok(Self { rows, columns, store })
    }

    /// The weight in tiles, if it is.
    pub(crate) fn tiles(&self) -> Option<&Tiles> {
        match &self.store {
            Store::Tiles(tiles) => Some(tiles),
            Store::Dense(_) | Store::Packed { .. } => None,
        }
    }

    /// Numbers from one expanded row to the next: whole vectors.
    pub(crate) fn stride(&self) -> usize {
        self.columns.next_multiple_of(LANES)
    }

    /// The numbers of a vector, or of the first row of an `F32` matrix. (Every vector is dense.)
    pub(crate) fn vector(&self) -> &[f32] {
        match &self.store {
            Store::Dense(numbers) => numbers.get(self.columns),
            Store::Packed { .. } | Store::Tiles(_) => &[],
        }
    }

    /// How much scratch [`Weight::expand`] needs for so many rows.
    pub(crate) fn scratch_len(&self, rows: usize) -> usize {
        match self.store {
            Store::Dense(_) => 0,
            Store::Packed { .. } | Store::Tiles(_) => rows * self.stride(),
        }
    }

    /// Expands one row into `to`, which holds as many numbers as there are columns.
    #[inline(always)]
    pub(crate) fn expand_row<S: Simd>(&self, simd: S, row: usize, to: &mut [f32]) {
        match &self.store {
            Store::Dense(numbers) => {
                let stride = self.stride();
                to.copy_from_slice(&numbers.get(self.rows * stride)[row * stride..][..self.columns]);
            }
            Store::Packed {
                dtype,
                row_bytes,
                bytes,
            } => expand(simd, *dtype, &bytes[row * row_bytes..][..*row_bytes], to),
            Store::Tiles(tiles) => tiles.row(simd, row, to),
        }
    }

    /// The given rows as numbers, [`Weight::stride`] apart, in `scratch` if need be.
    #[inline(always)]
    pub(crate) fn expand<'a, S: Simd>(
        &'a self,
        simd: S,
        rows: Range<usize>,
        scratch: &'a mut [f32],
    ) -> &'a [f32] {
        let stride = self.stride();
        match &self.store {
            Store::Dense(numbers) => &numbers.get(self.rows * stride)[rows.start * stride..rows.end * stride],
            Store::Packed {
                dtype,
                row_bytes,
                bytes,
            } => {
                let from = bytes[rows.start * row_bytes..rows.end * row_bytes].chunks_exact(*row_bytes);
                for (to, from) in scratch.chunks_exact_mut(stride).zip(from) {
                    expand(simd, *dtype, from, &mut to[..self.columns]);
                    to[self.columns..].fill(0.0);
                }
                &scratch[..rows.len() * stride]
            }
            Store::Tiles(tiles) => {
                for (row, to) in rows.clone().zip(scratch.chunks_exact_mut(stride)) {
                    tiles.row(simd, row, &mut to[..self.columns]);
                }
                &scratch[..rows.len() * stride]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Portable;

    #[track_caller]
    fn check(dtype: DType, rows: usize, columns: usize, bytes: usize, expected: Result<(), &str>) {
        let bytes = vec![0; bytes];
        let tensor = TensorView {
            name: "w",
            dtype,
            rows,
            columns,
            bytes: &bytes,
        };
        match (
            Weight::new(&tensor, Activations::Int8, &mut Arena::default()),
            expected,
        ) {
            (Ok(_), Ok(())) => {}
            (Err(e), Err(part)) => assert!(e.0.contains(part), "{e}"),
            (result, expected) => panic!("{expected:?}, got {:?}", result.map(|_| ())),
        }
    }

    #[test]
    fn a_tensor_must_fit_its_shape() {
        check(DType::Q4_1, 3, 64, 120, Ok(()));
        check(DType::Q4_1, 3, 64, 119, Err("119 bytes for 3 rows of 40 bytes"));
        check(DType::Q4_1, 3, 65, 120, Err("whole blocks of 32"));
        check(DType::Q6K, 1, 128, 105, Err("whole blocks of 256"));
        check(DType::F32, 0, 4, 0, Err("at least one"));
        check(DType::F32, 2, 5, 40, Ok(()));
        check(DType::F16, usize::MAX, 4, 0, Err("0 bytes for"));
    }

    #[test]
    fn rows_are_padded_to_whole_vectors() {
        let bytes: Vec<u8> = (0..10).flat_map(|i| (i as f32).to_le_bytes()).collect();
        let tensor = TensorView {
            name: "w",
            dtype: DType::F32,
            rows: 2,
            columns: 5,
            bytes: &bytes,
        };
        let weight = Weight::new(&tensor, Activations::F32, &mut Arena::default()).unwrap();
        let rows = weight.expand(Portable, 0..2, &mut []).to_vec();
        assert_eq!(rows[..5], [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(rows[16..21], [5.0, 6.0, 7.0, 8.0, 9.0]);
        assert!(rows[5..16].iter().chain(&rows[21..]).all(|n| *n == 0.0));
    }
}
