//! What is replayed on.

use room::{ByTime, DeskLimits, HostLimits, Limits, LongestPrefix, Policy, RoundRobin, Span, Weights};

use crate::latency::Model;

/// Which policy places requests.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Debug, clap::ValueEnum)]
pub enum PolicyName {
    /// One worker after the other.
    RoundRobin,
    /// The least loaded: what a cluster does without a policy.
    LeastLoaded,
    /// Whoever has most of the prompt.
    LongestPrefix,
    /// What costs the least time.
    Time,
    /// The same, and who cannot have its first token in time is refused.
    TimeRefusing,
}

impl PolicyName {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 5] = [
        Self::RoundRobin,
        Self::LeastLoaded,
        Self::LongestPrefix,
        Self::Time,
        Self::TimeRefusing,
    ];

    /// As said on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "round-robin",
            Self::LeastLoaded => "least-loaded",
            Self::LongestPrefix => "longest-prefix",
            Self::Time => "time",
            Self::TimeRefusing => "time-refusing",
        }
    }

    /// The desk's policy; none is the least loaded.
    pub(crate) fn policy(self, weights: Weights) -> Option<Box<dyn Policy>> {
        match self {
            Self::RoundRobin => Some(Box::new(RoundRobin::default())),
            Self::LeastLoaded => None,
            Self::LongestPrefix => Some(Box::new(LongestPrefix)),
            Self::Time | Self::TimeRefusing => Some(Box::new(ByTime::new(weights))),
        }
    }

    /// Whether requests say when their first token must be there.
    pub(crate) fn refuses(self) -> bool {
        self == Self::TimeRefusing
    }
}

/// A cluster, and what is asked of it.
#[derive(Copy, Clone, Debug)]
pub struct Setup {
    /// Prefill workers.
    pub prefill: u16,
    /// Decode workers.
    pub decode: u16,
    /// Blocks of a prefill worker's pool, of [`BLOCK_TOKENS`](crate::BLOCK_TOKENS) each.
    pub blocks: u32,
    /// Blocks of a decode worker's.
    pub decode_blocks: u32,
    /// Sequences that a worker takes at once.
    pub slots: u32,
    /// Tokens of prompts that a prefill worker computes in one step.
    pub prefill_chunk: u32,
    /// The same at a decode worker, beside its answers.
    pub decode_chunk: u32,
    /// The model on every worker.
    pub model: Model,
    /// Bytes of KV a second that a worker sends, and that it receives.
    pub kv_bytes_per_s: u64,
    /// How long a message takes, in microseconds.
    pub link_us: u64,
    /// How often a worker says what it could grant and how fast it is, in microseconds.
    pub beat_us: u64,
    /// Until when a first token is in time, in microseconds since the request came.
    pub first_token_us: u64,
    /// How far apart tokens are in time on average over an answer, in microseconds.
    pub between_tokens_us: u64,
    /// Who places.
    pub policy: PolicyName,
    /// What placement by time weighs with.
    pub weights: Weights,
}

impl Setup {
    /// The default cluster with this policy.
    #[must_use]
    pub fn new(policy: PolicyName) -> Self {
        Self {
            prefill: 10,
            decode: 10,
            blocks: 3_000,
            decode_blocks: 3_000,
            slots: 64,
            prefill_chunk: 4_096,
            decode_chunk: 512,
            model: Model::M13b,
            kv_bytes_per_s: 25_000_000_000,
            link_us: 100,
            beat_us: 250_000,
            first_token_us: 2_000_000,
            between_tokens_us: 25_000,
            policy,
            weights: Weights::default(),
        }
    }

    /// Whether decode workers may be given prompts.
    pub(crate) fn decode_computes(&self) -> bool {
        let by_time = matches!(self.policy, PolicyName::Time | PolicyName::TimeRefusing);
        by_time && self.weights.decode_computes
    }

    /// Rooms' limits: the product's, but readers that take every token at once.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            unread_tokens: 1 << 30,
            ..Limits::default()
        }
    }

    pub(crate) fn desk_limits(&self) -> DeskLimits {
        DeskLimits::default()
    }

    pub(crate) fn host_limits(&self) -> HostLimits {
        HostLimits {
            // Nobody looks at them.
            transitions: 1,
            // Published KV waits for as long as its reader's queue is long.
            published: Span::from_millis(60_000),
            ..HostLimits::default()
        }
    }
}
