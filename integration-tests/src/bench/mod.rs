//! Benchmarks of whole clusters. What is compared runs in turn, in one run on one machine; what is told are ratios, with their spread.

mod load;
mod spread;
mod tracing;

pub use tracing::{Options as TracingOptions, tracing};
