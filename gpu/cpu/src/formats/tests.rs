//! Every format against a second implementation, written number by number from GGML's published block layout.

use half::f16;

use super::*;
use crate::simd::Level;
use crate::testing::{bytes, same_bits};

/// Random blocks whose 16-bit floats (at the given offsets in each block) are ordinary numbers.
fn random(dtype: DType, floats: &[usize], blocks: usize, seed: u64) -> Vec<u8> {
    let (_, size) = dtype.block();
    let mut data = bytes(seed, size * blocks);
    for (b, block) in data.chunks_exact_mut(size).enumerate() {
        for (f, &at) in floats.iter().enumerate() {
            let value = (b as f32 - 3.3) * 0.013 + f as f32 * 0.7;
            block[at..at + 2].copy_from_slice(&f16::from_f32(value).to_le_bytes());
        }
    }
    data
}

/// Compares all levels with `number(block, i)`, the plain definition of number `i` of a block.
#[track_caller]
fn check(dtype: DType, floats: &[usize], number: impl Fn(&[u8], usize) -> f32) {
    let (numbers, size) = dtype.block();
    let data = random(dtype, floats, 9, size as u64);
    let expected: Vec<f32> = data
        .chunks_exact(size)
        .flat_map(|block| (0..numbers).map(|i| number(block, i)).collect::<Vec<_>>())
        .collect();
    let expand = |level: Level| {
        let mut numbers = vec![f32::NAN; expected.len()];
        let to = &mut numbers[..];
        level.run(Expand {
            dtype,
            from: &data,
            to,
        });
        numbers
    };
    let portable = expand(Level::Portable);
    // As numbers: of a zero the definition may have the other sign.
    assert_eq!(portable, expected, "{dtype:?}");
    for level in Level::available() {
        same_bits(&expand(level), &portable, &format!("{dtype:?} at {level:?}"));
    }
}

fn float(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// Number `i` of 32 among nibbles: the low ones first.
fn nibble(nibbles: &[u8], i: usize) -> i32 {
    if i < 16 {
        i32::from(nibbles[i]) % 16
    } else {
        i32::from(nibbles[i - 16]) / 16
    }
}

fn fifth(word: &[u8], i: usize) -> i32 {
    (i32::from(word[i / 8]) >> (i % 8)) % 2 * 16
}

#[test]
fn floats() {
    check(DType::F32, &[0, 2], |b, _| {
        f32::from_bits(u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    });
    check(DType::F16, &[0], |b, _| float(b, 0));
    check(DType::Bf16, &[0], |b, _| {
        half::bf16::from_le_bytes([b[0], b[1]]).to_f32()
    });
}

#[test]
fn blocks_of_32() {
    check(DType::Q4_0, &[0], |b, i| {
        float(b, 0) * (nibble(&b[2..], i) - 8) as f32
    });
    check(DType::Q4_1, &[0, 2], |b, i| {
        float(b, 0) * nibble(&b[4..], i) as f32 + float(b, 2)
    });
    check(DType::Q5_0, &[0], |b, i| {
        float(b, 0) * (nibble(&b[6..], i) + fifth(&b[2..6], i) - 16) as f32
    });
    check(DType::Q5_1, &[0, 2], |b, i| {
        float(b, 0) * (nibble(&b[8..], i) + fifth(&b[4..8], i)) as f32 + float(b, 2)
    });
    check(DType::Q8_0, &[0], |b, i| {
        let q = i32::from(b[2 + i]);
        float(b, 0) * (if q > 127 { q - 256 } else { q }) as f32
    });
}

#[test]
fn q4_k() {
    check(DType::Q4K, &[0, 2], |b, i| {
        let group = i / 32;
        let s = |k: usize| u32::from(b[4 + k]);
        let (scale, min) = if group < 4 {
            (s(group) % 64, s(group + 4) % 64)
        } else {
            (
                s(group + 4) % 16 + s(group - 4) / 64 * 16,
                s(group + 4) / 16 + s(group) / 64 * 16,
            )
        };
        let byte = u32::from(b[16 + group / 2 * 32 + i % 32]);
        let q = if group % 2 == 0 { byte % 16 } else { byte / 16 };
        float(b, 0) * scale as f32 * q as f32 - float(b, 2) * min as f32
    });
}

#[test]
fn q6_k() {
    check(DType::Q6K, &[208], |b, i| {
        // Number i: half h of 128, quarter q of 32 in it, place l in the quarter.
        let (h, q, l) = (i / 128, i / 32 % 4, i % 32);
        let low = i32::from(b[h * 64 + q % 2 * 32 + l]);
        let low = if q < 2 { low % 16 } else { low / 16 };
        let high = i32::from(b[128 + h * 32 + l]) / [1, 4, 16, 64][q] % 4;
        let scale = i32::from(b[192 + i / 16]);
        let scale = if scale > 127 { scale - 256 } else { scale };
        float(b, 208) * scale as f32 * (low + 16 * high - 32) as f32
    });
}
