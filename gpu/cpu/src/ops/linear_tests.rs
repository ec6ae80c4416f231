//! Products against their definition, and against themselves in other company.

use engine::{DType, TensorView};

use super::*;
use crate::device::Activations;
use crate::memory::Arena;
use crate::simd::Portable;
use crate::testing::{bytes, check_levels, close, matrix, numbers, same_bits};

/// A random weight whose scales are ordinary numbers, and its numbers.
fn weight(dtype: DType, rows: usize, columns: usize) -> (Weight, Vec<f32>) {
    let (block, size) = dtype.block();
    let mut data = bytes(9, rows * columns / block * size);
    let floats: &[usize] = match dtype {
        DType::Q6K => &[208],
        DType::Q4_1 | DType::Q5_1 | DType::Q4K => &[0, 2],
        _ => &[0],
    };
    for (i, block) in data.chunks_exact_mut(size).enumerate() {
        let scale = half::f16::from_f32(0.01 + (i % 7) as f32 * 0.003).to_le_bytes();
        match dtype {
            DType::F32 => block.copy_from_slice(&((i % 19) as f32 * 0.1 - 0.9).to_le_bytes()),
            DType::Bf16 => {
                block.copy_from_slice(&half::bf16::from_f32((i % 23) as f32 * 0.1 - 1.1).to_le_bytes());
            }
            _ => floats
                .iter()
                .for_each(|&at| block[at..at + 2].copy_from_slice(&scale)),
        }
    }
    let tensor = TensorView {
        name: "w",
        dtype,
        rows,
        columns,
        bytes: &data,
    };
    let weight = Weight::new(&tensor, Activations::F32, &mut Arena::default()).unwrap();
    let mut dense = vec![0.0; rows * columns];
    for (row, to) in dense.chunks_exact_mut(columns).enumerate() {
        weight.expand_row(Portable, row, to);
    }
    (weight, dense)
}

fn run(exec: &mut Exec, x: &Matrix, weight: &Weight, bias: Option<&[f32]>) -> Vec<f32> {
    let mut out = Matrix::default();
    linear(exec, x, weight, bias, &mut Scratch::default(), &mut out);
    assert_eq!((out.rows(), out.width()), (x.rows(), weight.rows));
    out.numbers().to_vec()
}

#[track_caller]
fn check(dtype: DType, rows: usize, outputs: usize, columns: usize, bias: bool) {
    let (weight, dense) = weight(dtype, outputs, columns);
    let numbers_in = numbers(1, rows * columns);
    let bias = bias.then(|| numbers(2, outputs));
    let mut expected = Vec::new();
    for x in numbers_in.chunks(columns) {
        for (o, w) in dense.chunks(columns).enumerate() {
            let sum: f64 = x.iter().zip(w).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum();
            expected.push(sum + bias.as_ref().map_or(0.0, |b| f64::from(b[o])));
        }
    }
    let what = format!("{dtype:?} {rows} × {columns} → {outputs}");
    let x = matrix(columns, &numbers_in);
    check_levels(|exec| {
        let all = run(exec, &x, &weight, bias.as_deref());
        close(&all, &expected, 3e-6, &what);
        for chunk in [1, 2, 3, 5, 16] {
            let mut parts = Vec::new();
            for part in numbers_in.chunks(chunk * columns) {
                parts.extend(run(exec, &matrix(columns, part), &weight, bias.as_deref()));
            }
            same_bits(&parts, &all, &format!("{what}, {chunk} rows at a time"));
        }
        all
    });
}

#[test]
fn every_format() {
    for dtype in [
        DType::F32,
        DType::F16,
        DType::Bf16,
        DType::Q4_0,
        DType::Q4_1,
        DType::Q5_0,
        DType::Q5_1,
        DType::Q8_0,
    ] {
        check(dtype, 5, 50, 96, false);
    }
    for dtype in [DType::Q4K, DType::Q6K] {
        check(dtype, 5, 50, 512, false);
    }
}

#[test]
fn every_shape() {
    for rows in [1, 2, 3, 4, 8, 9, 17] {
        check(DType::Q4_1, rows, 37, 64, true);
    }
    check(DType::Q8_0, 33, 1, 32, false);
    check(DType::F32, 6, 5, 7, true);
    check(DType::F16, 2, 130, 21, false);
    check(DType::F32, 1, 1, 1, false);
}

#[test]
fn no_rows_give_no_rows() {
    let (weight, _) = weight(DType::Q4_1, 8, 32);
    check_levels(|exec| {
        let mut x = Matrix::default();
        x.reshape(0, 32);
        run(exec, &x, &weight, None)
    });
}
