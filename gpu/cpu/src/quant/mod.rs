//! Products of small integers: activations rounded to eight bits, weights as they are stored (`numerics` = `q8b32`).
//!
//! * Activations ([`Acts`]): every row is cut into blocks of 32 columns; a block is a scale `d`, its largest magnitude over 127, and
//!   32 signed bytes.
//! * Weights ([`Tiles`]): GGML's blocks, repacked when they are loaded into tiles of 16 outputs by 32 columns. Nothing is rounded.
//! * An output is a lane of a vector and never summed across lanes. Of each block the integers are multiplied and summed exactly;
//!   then `acc = fma(sum · d, scale, acc)`, block after block, and `acc = fma(d · Σq, minimum, acc)` where the format has one.
//!
//! So an element of the output is one fixed sequence of operations on its own row and its own weights: the same bits at every level
//! of instructions, with any other rows beside it, on any thread.

mod acts;
mod form;
mod product;
mod tiles;

pub(crate) use acts::Acts;
pub(crate) use product::linear;
pub(crate) use tiles::Tiles;

/// Columns of a block.
const BLOCK: usize = 32;

#[cfg(test)]
mod tests;
