//! Tests of the engine crate from outside. Those that need a backend are in the mock's crate.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod layout;
mod pool;
mod prefix;
mod refusals;
mod scheduler;
mod scheduler_properties;
mod world;
