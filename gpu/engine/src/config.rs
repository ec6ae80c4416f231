//! The engine's limits.

/// Limits of one engine. Zeros are taken for ones.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct EngineConfig {
    /// Tokens a step aims at: one for every decoding sequence, the rest for prefill (a quarter in any case, so that it never starves).
    pub step_tokens: u32,
    /// Prefill tokens of one sequence in one step. An abort takes effect within one step, so this bounds its delay.
    pub chunk_tokens: u32,
    /// Sequences that may be in the engine at a time.
    pub max_sequences: u32,
    /// A sequence asks for its next block when fewer than this many positions are left, so that normally it need not wait.
    pub grow_ahead_tokens: u32,
    /// Commands that may wait for the end of a step.
    pub command_queue: u32,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            step_tokens: 512,
            chunk_tokens: 256,
            max_sequences: 64,
            grow_ahead_tokens: 16,
            command_queue: 1024,
        }
    }
}

impl EngineConfig {
    /// The same with every zero made a one.
    pub(crate) fn at_least_one(self) -> Self {
        Self {
            step_tokens: self.step_tokens.max(1),
            chunk_tokens: self.chunk_tokens.max(1),
            max_sequences: self.max_sequences.max(1),
            grow_ahead_tokens: self.grow_ahead_tokens.max(1),
            command_queue: self.command_queue.max(1),
        }
    }
}
