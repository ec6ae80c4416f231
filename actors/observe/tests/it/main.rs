//! What is said about what happens.

mod explain;
mod history;
mod ids;
mod kit;
mod labels;
mod listeners;
mod sampling;
mod spans;
