//! Rooms as ractor actors: performs what `room` decides, feeds it what happens, and decides nothing itself.
//!
//! ```text
//! node
//! ├── gateway ── request supervisor ── request (one actor each, owns its rooms)
//! │         └── placement (the desk: workers, queue, credit)
//! └── pool ── worker (one per device) ── host · engine thread · KV transfer thread
//! ```
//!
//! Links belong to `mesh`; their frames come in through sinks that never block: a worker's straight into the inbox of the request
//! concerned, a gateway's into that of the worker.

#[macro_use]
mod planted;

mod alarm;
mod answer;
mod beside;
mod clock;
mod convert;
mod gateway;
mod node;
mod pool;
#[cfg(test)]
mod testing;
mod vitals;
mod worker;

pub use answer::AnswerEvent;
pub use clock::Clock;
#[cfg(feature = "faults")]
pub use gateway::Poison;
pub use gateway::{
    Answer, Bookkeeping, Counts, Find, GatewayHandle, GatewaySpec, Job, Layout, OrderError, Peer,
    Preparation, Refused, RoomView, WorkerState,
};
pub use node::{Node, StartError};
pub use pool::{BuildWorker, Recipe};
pub use vitals::Vitals;
pub use worker::{BuildTransfer, Figures, LocalWorker, LocalWorkers, StartEngine, WorkerSpec};
