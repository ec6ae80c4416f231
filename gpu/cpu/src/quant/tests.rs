//! Products of integers against their definition, and against themselves in other company.

use engine::{DType, TensorView};

use super::*;
use crate::matrix::Matrix;
use crate::memory::Arena;
use crate::ops::Exec;
use crate::simd::{Kernel, Level, Simd};
use crate::testing::{bytes, check_levels, close, expanded, matrix, numbers, same_bits};

const FORMATS: [DType; 7] = [
    DType::Q4_0,
    DType::Q4_1,
    DType::Q5_0,
    DType::Q5_1,
    DType::Q8_0,
    DType::Q4K,
    DType::Q6K,
];

/// Random blocks whose half-precision numbers are ordinary ones of both signs.
fn blocks(dtype: DType, rows: usize, columns: usize) -> Vec<u8> {
    let (block, size) = dtype.block();
    let mut data = bytes(9, rows * columns / block * size);
    let halves: &[usize] = match dtype {
        DType::Q6K => &[208],
        DType::Q4_1 | DType::Q5_1 | DType::Q4K => &[0, 2],
        _ => &[0],
    };
    for (i, block) in data.chunks_exact_mut(size).enumerate() {
        for &at in halves {
            let half = half::f16::from_f32(((i + at) % 7) as f32 * 0.004 - 0.011);
            block[at..at + 2].copy_from_slice(&half.to_le_bytes());
        }
    }
    data
}

struct Weight {
    tiles: Tiles,
    numbers: Vec<f32>,
}

fn weight(dtype: DType, rows: usize, columns: usize) -> Weight {
    let bytes = &blocks(dtype, rows, columns)[..];
    let name = "w";
    let view = TensorView {
        name,
        dtype,
        rows,
        columns,
        bytes,
    };
    Weight {
        tiles: Tiles::new(&view, &mut Arena::default()).unwrap().unwrap(),
        numbers: expanded(dtype, bytes, rows * columns),
    }
}

/// The rounded rows as numbers, and their products.
fn run(exec: &mut Exec, x: &[f32], columns: usize, weight: &Weight, bias: Option<&[f32]>) -> [Vec<f32>; 2] {
    let (mut acts, mut out) = (Acts::default(), Matrix::default());
    acts.quantise(exec, &matrix(columns, x));
    linear(exec, &acts, &weight.tiles, bias, &mut out);
    [acts.numbers(), out.numbers().to_vec()]
}

/// `x · weightᵀ + bias`, in double precision.
fn exact(x: &[f32], columns: usize, weight: &Weight, bias: Option<&[f32]>) -> Vec<f64> {
    let outputs = weight.tiles.rows();
    let mut exact = Vec::new();
    for x in x.chunks(columns) {
        for (o, w) in weight.numbers.chunks(columns).enumerate().take(outputs) {
            let sum: f64 = x.iter().zip(w).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum();
            exact.push(sum + bias.map_or(0.0, |b| f64::from(b[o])));
        }
    }
    exact
}

#[track_caller]
fn check(dtype: DType, rows: usize, outputs: usize, columns: usize, bias: bool) {
    let weight = weight(dtype, outputs, columns);
    // Of different size from block to block.
    let x: Vec<f32> = numbers(1, rows * columns)
        .iter()
        .enumerate()
        .map(|(i, x)| x * (1 + i / BLOCK % 5) as f32)
        .collect();
    let bias = bias.then(|| numbers(2, outputs));
    let bias = bias.as_deref();
    let what = format!("{dtype:?} {rows} × {columns} → {outputs}");
    check_levels(|exec| {
        let [rounded, all] = run(exec, &x, columns, &weight, bias);
        close(&all, &exact(&rounded, columns, &weight, bias), 2e-6, &what);
        close(
            &all,
            &exact(&x, columns, &weight, bias),
            2e-2,
            &format!("{what}, not rounded"),
        );
        for chunk in [1, 2, 3, 5, 16] {
            let mut parts = Vec::new();
            for part in x.chunks(chunk * columns) {
                parts.extend(run(exec, part, columns, &weight, bias)[1].clone());
            }
            same_bits(&parts, &all, &format!("{what}, {chunk} rows at a time"));
        }
        all
    });
}

#[test]
fn every_format() {
    for dtype in FORMATS {
        check(dtype, 5, 50, 512, false);
    }
}

#[test]
fn every_shape() {
    for rows in [1, 2, 3, 4, 8, 9, 23] {
        check(DType::Q4_1, rows, 37, 64, true);
    }
    for columns in [32, 96, 576] {
        check(DType::Q8_0, 3, 200, columns, true);
    }
    check(DType::Q4_0, 33, 1, 32, false);
    check(DType::Q6K, 2, 16, 256, true);
}

/// Rows of tiles as numbers.
struct Rows<'a>(&'a Tiles);

impl Kernel for Rows<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Vec<f32> {
        let mut numbers = vec![f32::NAN; self.0.rows() * self.0.columns()];
        for (row, to) in numbers.chunks_exact_mut(self.0.columns()).enumerate() {
            self.0.row(simd, row, to);
        }
        numbers
    }
}

#[test]
fn repacking_loses_nothing() {
    for dtype in FORMATS {
        let weight = weight(dtype, 21, 512);
        for level in Level::available() {
            let rows = level.run(Rows(&weight.tiles));
            // As numbers: of a zero the definition may have the other sign.
            assert_eq!(rows, weight.numbers, "{dtype:?} at {level:?}");
        }
    }
}

#[test]
fn what_is_no_number_stays_none_and_harms_no_other_row() {
    let weight = weight(DType::Q8_0, 20, 64);
    let good = numbers(3, 3 * 64);
    check_levels(|exec| {
        let expected = run(exec, &good, 64, &weight, None)[1].clone();
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = good.clone();
            x[64 + 40] = bad;
            let out = run(exec, &x, 64, &weight, None)[1].clone();
            // A weight's block may have a scale of 0, which a number would not come out of either.
            assert!(out[20..40].iter().all(|y| !y.is_finite()), "{bad}");
            same_bits(&out[..20], &expected[..20], "the row before");
            same_bits(&out[40..], &expected[40..], "the row behind");
        }
        expected
    });
}

#[test]
fn zeros_give_the_bias_and_no_rows_give_no_rows() {
    let weight = weight(DType::Q4_1, 20, 64);
    let bias = numbers(4, 20);
    check_levels(|exec| {
        let [_, out] = run(exec, &[0.0; 64], 64, &weight, Some(&bias));
        assert_eq!(out, bias);
        let [_, none] = run(exec, &[], 64, &weight, Some(&bias));
        assert!(none.is_empty());
        out
    });
}

#[test]
fn floating_point_has_no_tiles() {
    for dtype in [DType::F32, DType::F16, DType::Bf16] {
        let view = TensorView {
            name: "w",
            dtype,
            rows: 0,
            columns: 0,
            bytes: &[],
        };
        assert!(Tiles::new(&view, &mut Arena::default()).unwrap().is_none());
    }
}
