//! A mock backend, for tests and simulations: no model, no weights, made-up answers.
//!
//! * Its tokens are a function of the history alone, so a sequence that migrates, or whose KV was moved, continues as it would have.
//! * It fills the KV of every position with a pattern of all tokens up to there, and checks it before it "attends" to it: a byte of
//!   another sequence, or of another life of the block, is found, with its position and block (INV-01).
//! * It takes as long as a latency model says, by a sleep function it is given, so that virtual time can drive it.

#[macro_use]
mod planted;

mod answer;
mod backend;
mod canary;
mod config;
mod pattern;

pub use answer::undisturbed;
pub use backend::{MockBackend, Sleep, no_sleep};
pub use canary::{Canary, Foreign};
pub use config::{Answer, END_TOKEN, Faults, Latency, MockConfig, OnForeign, Verify};
