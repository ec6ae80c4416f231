//! Tests of the whole: the right tokens from the real model, and whole clusters of real processes, healthy and not.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod arrows;
mod certificates;
mod clocks;
mod cluster_faults;
mod cluster_storm;
mod cluster_tokens;
mod deploy;
mod leave;
mod matrix;
mod operators;
mod probes;
mod prometheus;
mod prompts;
mod runbook;
mod tokens;
mod traces;
