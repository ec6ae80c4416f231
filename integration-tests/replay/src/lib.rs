//! Traces of real requests, replayed in virtual time: which way of placing them serves how many of them in time.
//!
//! What decides is the product's own: [`room::Room`], [`room::Desk`] with its policy and index, [`room::Host`] with its ledger,
//! [`engine::Scheduler`]. What is simulated is what takes time: steps (`latency`, from published profiles), moves of KV (a bandwidth
//! at each end), and messages (a fixed delay). Nothing is lost and nothing fails; `sim` is for that.
//!
//! ```text
//!   trace ──▶ world: a heap of (time, number) ──▶ gateway: rooms, desk, policy, index
//!                         ▲                            │ orders          ▲ reports, changes of caches, paces
//!                         └── steps, reads, beats ── worker: host, ledger, scheduler
//! ```
//!
//! One thread, no clock, no randomness: the same trace and setup give the same figures.

mod gateway;
mod latency;
mod page;
mod plot;
mod report;
mod setup;
mod shared;
mod trace;
mod worker;
mod world;

pub use latency::{Batch, Latency, Model};
pub use page::{Sweep, publish, tables};
pub use plot::{Curve, Graph};
pub use report::{Record, Summary};
pub use setup::{PolicyName, Setup};
pub use shared::shared_cache;
pub use trace::{BLOCK_TOKENS, Request, TraceError, at_speed, read};
pub use world::{Replayed, replay};
