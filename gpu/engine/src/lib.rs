//! The compute side of a worker: the batch scheduler (sans-IO), the paged KV pool, and the thread that runs steps.

mod backend;
mod device;
mod pool;
pub mod prefix;
mod region;
mod sampling;

pub use backend::{
    Backend, BackendError, BlockIndex, ModelSpec, SampleRequest, Sampled, Slice, Token, TokenLogprobs,
};
pub use device::{Attention, DType, Device, Gate, Rope, Span, TensorView};
pub use pool::{Half, KvPool, OutOfPool, PoolShape, layout_hash};
pub use sampling::Sampling;
