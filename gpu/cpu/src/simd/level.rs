//! Which instructions to use, chosen at run time.
#![allow(unsafe_code)]

use super::Simd;
use super::portable::Portable;
#[cfg(target_arch = "x86_64")]
use super::{avx2::Avx2, avx512::Avx512};

/// A set of vector instructions. All give the same bits; they differ in speed alone.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
#[non_exhaustive]
pub enum Level {
    /// Plain Rust, vectorised by the compiler for the target's baseline.
    Portable,
    /// AVX2, FMA and F16C.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 F, BW, DQ and VL, with what AVX2 has.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// AVX-512 with VNNI: products of bytes.
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
}

/// Work that is instantiated for every level. `run` must be `#[inline(always)]`, and so must be what it calls and is hot.
pub(crate) trait Kernel {
    type Output;

    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

impl Level {
    /// The levels this machine has, slowest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut levels = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c");
            if avx2 {
                levels.push(Self::Avx2);
            }
            if avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                levels.push(Self::Avx512);
                if is_x86_feature_detected!("avx512vnni") {
                    levels.push(Self::Avx512Vnni);
                }
            }
        }
        levels
    }

    /// The fastest level this machine has.
    #[must_use]
    pub fn best() -> Self {
        Self::available().pop().unwrap_or(Self::Portable)
    }

    /// Rows that are multiplied together: what fits into registers.
    pub(crate) fn rows_together(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 | Self::Avx512Vnni => 8,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => 4,
            _ => 2,
        }
    }

    /// Runs a kernel with this level's instructions.
    ///
    /// The level must be one of [`Level::available`]: [`crate::CpuDevice`] sees to that when it is made.
    #[inline]
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            Self::Portable => kernel.run(Portable),
            // SAFETY: a device only holds a level that was detected on this machine.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { run_avx2(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => unsafe { run_avx512(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => unsafe { run_avx512_vnni(kernel) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx2::new())
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")]
fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx512::new())
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn run_avx512_vnni<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx512::with_vnni())
}
