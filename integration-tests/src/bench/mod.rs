//! Benchmarks of whole clusters, and of servers that are not ours beside them. What is compared runs in turn, in one run on one machine; what is
//! told are ratios, with their spread.

mod client;
mod control;
mod engine;
mod fit;
mod floor;
mod growth;
mod kv;
mod load;
mod page;
mod queue;
mod sample;
mod server;
mod spread;
mod streams;
mod tracing;
mod usage;

pub use client::{Endpoint, Histogram, Load, Report, run};
pub use control::{Options as ControlOptions, Who, control};
pub use engine::{Options as EngineOptions, engine};
pub use floor::Bandwidth;
pub use growth::{Options as GrowthOptions, growth};
pub use kv::{MoverOptions, Options as KvOptions, Transport as KvTransport, kv, mover};
pub use queue::{Options as QueueOptions, queue};
pub use streams::{Options as StreamsOptions, streams};
pub use tracing::{Options as TracingOptions, tracing};

use crate::proc;

/// Puts a load on its server from this process, which does nothing else. Says so when all streams that it holds are open, and gives its report
/// as JSON.
///
/// # Panics
/// If the report cannot be written.
pub async fn load(load: Load) -> String {
    let mut report = run(load, || println!("{}", client::ALL_OPEN)).await;
    report.client_cpu_seconds = proc::ticks(std::process::id()) as f64 / 100.0;
    serde_json::to_string(&report).expect("numbers and texts")
}
