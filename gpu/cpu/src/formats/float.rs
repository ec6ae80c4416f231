//! Floating point: blocks of one number.

use crate::simd::Simd;

/// IEEE single precision.
#[inline(always)]
pub(super) fn f32<S: Simd>(_: S, bytes: &[u8; 4], out: &mut [f32; 1]) {
    out[0] = f32::from_le_bytes(*bytes);
}

/// IEEE half precision.
#[inline(always)]
pub(super) fn f16<S: Simd>(simd: S, bytes: &[u8; 2], out: &mut [f32; 1]) {
    out[0] = simd.half(*bytes);
}

/// Brain float: the upper half of a single.
#[inline(always)]
pub(super) fn bf16<S: Simd>(_: S, bytes: &[u8; 2], out: &mut [f32; 1]) {
    out[0] = f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16);
}

#[cfg(test)]
mod tests {
    use engine::DType;

    use crate::formats::Expand;
    use crate::simd::Level;

    #[test]
    fn every_half_is_what_the_library_says() {
        let bits: Vec<u16> = (0..=u16::MAX).collect();
        let bytes: Vec<u8> = bits.iter().flat_map(|b| b.to_le_bytes()).collect();
        let mut ours = vec![0.0; bits.len()];
        for level in Level::available() {
            for (dtype, theirs) in [
                (
                    DType::F16,
                    (|b| half::f16::from_bits(b).to_f32()) as fn(u16) -> f32,
                ),
                (DType::Bf16, |b| half::bf16::from_bits(b).to_f32()),
            ] {
                level.run(Expand {
                    dtype,
                    from: &bytes,
                    to: &mut ours,
                });
                for (ours, bits) in ours.iter().zip(&bits) {
                    let theirs = theirs(*bits);
                    let same = ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan());
                    assert!(same, "{level:?} {dtype:?} {bits:#06x}: {ours}, not {theirs}");
                }
            }
        }
    }
}
