//! The CPU device: kernels over quantised weights and a paged KV pool.
//!
//! Activations and products are `f32`; weights stay quantised in memory and are expanded tile by tile. Every number is computed in
//! one fixed order of operations, whatever the batch, the chunking of the prompt, the number of threads or the instructions in
//! use: results are the same bit for bit (`numerics` = `f32-fma16`).
//!
//! `unsafe` stands in the modules that need it alone: `simd` (instructions), `team` (a closure lent to threads), `split` (one
//! output written by several threads), and the operations that touch the pool or share an output.

mod device;
mod formats;
mod math;
mod matrix;
mod ops;
mod simd;
mod split;
mod team;
#[cfg(test)]
mod testing;
mod weight;

pub use device::{CpuDevice, CpuOptions};
pub use matrix::Matrix;
pub use simd::Level;
pub use weight::Weight;
