//! What a host is told once, at its start.

use crate::time::Span;

/// The worker that a host speaks for.
#[derive(Clone, Eq, PartialEq, Debug)]
pub struct HostSpec {
    /// Positions (tokens) in a block.
    pub block_tokens: u32,
    /// Blocks in the pool.
    pub blocks: u32,
    /// Sequences that may be with the engine, or reserved for it, at once.
    pub slots: u32,
    /// Whether a reserved attempt may be prefilled here too. Such an attempt always computes its last position itself,
    /// so its last full block is never shared.
    pub mixed: bool,
    /// How long things may take.
    pub limits: HostLimits,
}

/// How long a stay may remain in each phase, and how much is remembered.
///
/// These are a second line, to be set longer than the owner's [`Limits`](crate::Limits) for the same wait; a stay is also
/// dropped by its owner's digest and by the end of its owner's link.
#[derive(Clone, Eq, PartialEq, Debug)]
pub struct HostLimits {
    /// Prefilling without a computed position.
    pub prefill_no_progress: Span,
    /// From the offer until the owner releases it: the whole pull, as its source sees it.
    pub published: Span,
    /// The whole pull, as its destination sees it. The transfer's own deadline for lack of progress is far shorter.
    pub pull: Span,
    /// Decoding without a token.
    pub stall: Span,
    /// After this long without the proof, whoever holds the blocks is told to stop again.
    pub proof_retry: Span,
    /// Added to a request's own deadline, so that its owner ends it and not we.
    pub grace: Span,
    /// Rooms remembered after they have gone.
    pub tombstones: usize,
    /// Transitions kept for [`Host::poll_transition`](crate::Host::poll_transition); the oldest are dropped.
    pub transitions: usize,
}

impl Default for HostLimits {
    fn default() -> Self {
        Self {
            prefill_no_progress: Span::from_millis(12_000),
            published: Span::from_millis(12_000),
            pull: Span::from_millis(12_000),
            stall: Span::from_millis(12_000),
            proof_retry: Span::from_millis(1_000),
            grace: Span::from_millis(500),
            tombstones: 4_096,
            transitions: 1_024,
        }
    }
}
