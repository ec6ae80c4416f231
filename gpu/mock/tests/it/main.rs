//! The engine with the mock as its backend, and the mock itself.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod canary;
mod context;
mod drive;
mod handover;
mod invariance;
mod make_up;
mod thread;
