//! What is said about what happens.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod explain;
mod history;
mod ids;
mod kit;
mod labels;
mod listeners;
mod log;
mod metrics;
mod sampling;
mod spans;
mod told;
