//! The CPU device: kernels over quantised weights and a paged KV pool.
//!
//! Weights stay quantised in memory. Products with them are of integers, for which activations are rounded to eight bits (`quant`),
//! or of `f32`, for which weights are expanded tile by tile; everything else is `f32`. Every number is computed in one fixed order
//! of operations, whatever the batch, the chunking of the prompt, the number of threads or the instructions in use: results are
//! the same bit for bit among devices of the same `numerics`.
//!
//! `unsafe` stands in the modules that need it alone: `simd` (instructions), `team` (a closure lent to threads), `split` (one
//! output written by several threads), `memory` (huge pages for weights), and the operations that touch the pool or share an output.

mod device;
mod formats;
mod math;
mod matrix;
mod memory;
mod ops;
mod quant;
mod simd;
mod split;
mod team;
#[cfg(test)]
mod testing;
mod weight;

pub use device::{Activations, CpuDevice, CpuOptions};
pub use matrix::Matrix;
pub use simd::Level;
pub use weight::Weight;
