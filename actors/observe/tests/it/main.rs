//! What is said about what happens.

mod explain;
mod history;
mod ids;
mod kit;
mod labels;
mod listeners;
mod metrics;
mod sampling;
mod spans;
