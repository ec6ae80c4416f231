//! From stored weights to `f32`. GGML's block formats keep their published byte layout.
//!
//! Every number is q · d + m with a small integer q, rounded once. The products are exact in `f32` (11 bits by at most 14), so this
//! is what the definition of each format gives, bit for bit (but for the sign of a zero), whichever way it is written there.

mod float;
mod legacy;
mod superblock;

use engine::DType;

use crate::simd::{Kernel, LANES, Simd};

/// Expands whole blocks. `from` and `to` hold the same number of blocks; what is beyond the shorter is left alone.
#[inline(always)]
pub(crate) fn expand<S: Simd>(simd: S, dtype: DType, from: &[u8], to: &mut [f32]) {
    // A macro and not a function of a function: a function passed as an argument is not reliably inlined into the code that has
    // the level's instructions, and would then be slow.
    macro_rules! blocks {
        ($one:expr) => {
            for (from, to) in from.as_chunks().0.iter().zip(to.as_chunks_mut().0) {
                $one(simd, from, to);
            }
        };
    }
    match dtype {
        DType::F32 => blocks!(float::f32),
        DType::F16 => blocks!(float::f16),
        DType::Bf16 => blocks!(float::bf16),
        DType::Q4_0 => blocks!(legacy::q4_0),
        DType::Q4_1 => blocks!(legacy::q4_1),
        DType::Q5_0 => blocks!(legacy::q5_0),
        DType::Q5_1 => blocks!(legacy::q5_1),
        DType::Q8_0 => blocks!(legacy::q8_0),
        DType::Q4K => blocks!(superblock::q4_k),
        DType::Q6K => blocks!(superblock::q6_k),
    }
}

/// `out = q · d + m`
#[inline(always)]
fn write<S: Simd>(simd: S, q: S::V, d: f32, m: f32, out: &mut [f32; LANES]) {
    simd.store(simd.fma(q, simd.splat(d), simd.splat(m)), out);
}

/// [`expand`] as a kernel of its own.
pub(crate) struct Expand<'a> {
    pub(crate) dtype: DType,
    pub(crate) from: &'a [u8],
    pub(crate) to: &'a mut [f32],
}

impl Kernel for Expand<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        expand(simd, self.dtype, self.from, self.to);
    }
}

#[cfg(test)]
mod tests;
