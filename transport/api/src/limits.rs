//! What the router allows: every limit has a safe default.

use std::time::Duration;

/// Limits on requests, whichever door they come through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The largest request body, in bytes; more is 413.
    pub body_bytes: usize,
    /// The bodies of all requests that are being read, together, in bytes; more is 429.
    pub bodies_bytes: usize,
    /// The whole body must arrive within this time, and before those of as many later requests as may be under way; else 408.
    pub body_read_timeout: Duration,
    /// Generation requests under way at once; more is 429. As many again may have their bodies on their way.
    pub requests: usize,
    /// Continuations of one request: `n` times the number of prompts.
    pub choices: u32,
    /// Stop strings of one request. OpenAI allows 4.
    pub stop_strings: usize,
    /// The text and log probabilities of an answer in one piece, in bytes of memory; more is 400, and has to be streamed.
    pub answer_bytes: usize,
    /// The deadline of a request that names none.
    pub default_timeout: Duration,
    /// The longest `timeout` a request may ask for.
    pub max_timeout: Duration,
    /// How long after a request's deadline the door waits for [`Submit`](crate::Submit) to say so itself.
    pub deadline_grace: Duration,
    /// A comment is sent on a stream that was silent for this long, so that proxies do not cut it.
    pub keep_alive: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 4 << 20,
            bodies_bytes: 512 << 20,
            body_read_timeout: Duration::from_secs(30),
            requests: 4096,
            choices: 128,
            stop_strings: 16,
            answer_bytes: 64 << 20,
            default_timeout: Duration::from_secs(600),
            max_timeout: Duration::from_secs(3600),
            deadline_grace: Duration::from_millis(500),
            keep_alive: Duration::from_secs(5),
        }
    }
}
