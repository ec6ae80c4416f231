//! The wire format as others see it: its bytes, its bounds, and what it makes of garbage.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bounds;
mod garbage;
mod golden;
mod links;
mod samples;
