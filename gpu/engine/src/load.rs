//! Figures of an engine that anyone may read at any time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How busy an engine is, and what it has done since it started.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub struct Load {
    /// Sequences in the engine.
    pub sequences: u64,
    /// Prompt tokens waiting to be computed.
    pub backlog_tokens: u64,
    /// Steps run.
    pub steps: u64,
    /// Steps abandoned because most of their work had been stopped meanwhile.
    pub abandoned_steps: u64,
    /// Tokens computed.
    pub computed_tokens: u64,
    /// Tokens sampled.
    pub sampled_tokens: u64,
    /// Time spent in steps, abandoned ones included, in microseconds.
    pub busy_micros: u64,
}

/// The same, written by the engine while others read. Each figure is right by itself; they need not be of one moment.
#[derive(Default)]
pub(crate) struct Gauges {
    pub(crate) sequences: AtomicU64,
    pub(crate) backlog_tokens: AtomicU64,
    pub(crate) steps: AtomicU64,
    pub(crate) abandoned_steps: AtomicU64,
    pub(crate) computed_tokens: AtomicU64,
    pub(crate) sampled_tokens: AtomicU64,
    pub(crate) busy_micros: AtomicU64,
}

impl Gauges {
    pub(crate) fn read(&self) -> Load {
        Load {
            sequences: self.sequences.load(Relaxed),
            backlog_tokens: self.backlog_tokens.load(Relaxed),
            steps: self.steps.load(Relaxed),
            abandoned_steps: self.abandoned_steps.load(Relaxed),
            computed_tokens: self.computed_tokens.load(Relaxed),
            sampled_tokens: self.sampled_tokens.load(Relaxed),
            busy_micros: self.busy_micros.load(Relaxed),
        }
    }
}
