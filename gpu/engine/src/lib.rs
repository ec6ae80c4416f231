//! The compute side of a worker: the batch scheduler (sans-IO), the paged KV pool, and the thread that runs steps.

mod backend;
mod config;
mod device;
mod driven;
mod engine;
mod event;
mod interrupt;
mod pool;
pub mod prefix;
mod region;
mod sampling;
mod scheduler;
mod sequence;
mod thread;

pub use backend::{
    Backend, BackendError, BlockIndex, ModelSpec, NoToken, SampleRequest, Sampled, Slice, Token,
    TokenLogprobs,
};
pub use config::EngineConfig;
pub use device::{Attention, DType, Device, Gate, Rope, Span, TensorView};
pub use driven::{Driven, EventSink, Turn, Wake};
pub use engine::{Clock, Engine};
pub use event::{Command, DownReason, EngineEvent, FinishReason, StepReport, TokenEvent};
pub use interrupt::Interrupt;
pub use kv::{KvMemory, OutOfRange};
pub use pool::{Half, KvPool, PoolShape, layout_hash};
pub use sampling::Sampling;
pub use scheduler::{Part, Scheduler, StepPlan};
pub use sequence::{Goal, Refusal, SequenceKey, SequenceSpec};
pub use thread::{EngineHandle, SendError, StillRunning, drive, start};
