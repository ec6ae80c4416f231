//! What a load found.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::hist::Histogram;
use super::sse::Usage;

/// What a load found, as `bench load` prints it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// Requests that came to their end.
    pub requests: u64,
    /// Requests that did not.
    pub failed: u64,
    /// What went wrong with the first of them.
    pub errors: Vec<String>,
    /// Times at which an open loop could not ask, for too many were on their way.
    pub skipped: u64,
    /// Connections that were opened.
    pub connections: u64,
    /// Tokens of the prompts, as the server counts them.
    pub prompt_tokens: u64,
    /// Of those, not computed, as the server says.
    pub cached_tokens: u64,
    /// Tokens of the answers, as the server counts them.
    pub output_tokens: u64,
    /// Events with text.
    pub texts: u64,
    /// From the first request to the last answer's end.
    pub seconds: f64,
    /// Processor time of the load generator.
    pub client_cpu_seconds: f64,
    /// From a request to its first text.
    pub first: Histogram,
    /// From text to text.
    pub gaps: Histogram,
    /// How far those are from what they should be.
    pub jitter: Histogram,
    /// From the first text of an answer to its last, divided by its tokens less one.
    pub per_token: Histogram,
    /// From a request to its answer's end.
    pub whole: Histogram,
}

/// As many errors are told.
const ERRORS: usize = 4;

impl Report {
    /// Output tokens a second.
    #[must_use]
    pub fn tokens_per_second(&self) -> f64 {
        self.output_tokens as f64 / self.seconds
    }

    /// Notes what a request has come to.
    pub(super) fn failed(&mut self, error: String) {
        self.failed += 1;
        if self.errors.len() < ERRORS {
            self.errors.push(error);
        }
    }

    /// Notes an answer's end: when its first and last texts came, and when it ended, all after its request.
    pub(super) fn ended(&mut self, usage: Usage, first: Option<Duration>, last: Duration, whole: Duration) {
        self.requests += 1;
        self.prompt_tokens += usage.prompt_tokens;
        self.cached_tokens += usage.cached_tokens();
        self.output_tokens += usage.completion_tokens;
        self.whole.add(whole);
        let steps = u32::try_from(usage.completion_tokens.saturating_sub(1)).unwrap_or(u32::MAX);
        if let (Some(first), 1..) = (first, steps) {
            self.per_token.add((last - first) / steps);
        }
    }
}

/// What is being found, by the tasks of one load.
#[derive(Clone, Default)]
pub(in crate::bench) struct Tally(Arc<Mutex<Report>>);

impl Tally {
    /// Notes something.
    pub(in crate::bench) fn note<T>(&self, what: impl FnOnce(&mut Report) -> T) -> T {
        // What panicked while it noted something has noted all or nothing of it.
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
