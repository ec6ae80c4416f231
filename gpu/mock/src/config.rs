//! What a mock backend pretends to be.

use std::time::Duration;

use engine::{PoolShape, Slice, Token};

/// The mock's only end token.
pub const END_TOKEN: Token = 0;

/// A mock backend's make-up.
#[derive(Clone, PartialEq, Debug)]
pub struct MockConfig {
    /// The model name it goes by.
    pub name: String,
    /// Shape of its pool. `head_dim` at least 2: a position's pattern needs 8 bytes.
    pub shape: PoolShape,
    /// Tokens are `0..vocabulary`, at least 2.
    pub vocabulary: u32,
    /// Longest sequence, in tokens.
    pub context_tokens: u32,
    /// When answers end.
    pub answer: Answer,
    /// Stands for the weights: mocks with another salt give other tokens and other KV.
    pub salt: u64,
    /// How long steps take.
    pub latency: Latency,
    /// How much of the KV is checked.
    pub verify: Verify,
    /// What happens when a foreign byte is found.
    pub on_foreign: OnForeign,
    /// Scripted faults.
    pub faults: Faults,
}

impl Default for MockConfig {
    /// A small, instant, correct mock that never ends an answer by itself.
    fn default() -> Self {
        Self {
            name: "mock".into(),
            shape: PoolShape {
                blocks: 256,
                block_tokens: 16,
                layers: 2,
                kv_heads: 1,
                head_dim: 4,
            },
            vocabulary: 1000,
            context_tokens: 4096,
            answer: Answer::Never,
            salt: 0,
            latency: Latency::default(),
            verify: Verify::Every,
            on_foreign: OnForeign::Fail,
            faults: Faults::default(),
        }
    }
}

/// When the mock samples the end token, unless it is told not to.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Answer {
    /// Never: answers end by their length limit.
    Never,
    /// After this many generated tokens.
    After(u32),
    /// After a number of generated tokens that is a function of the prompt, from the first to the second, inclusive.
    Between(u32, u32),
}

/// Duration of a step: the sum of these. Zero by default.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub struct Latency {
    /// For the step itself, in microseconds.
    pub step_micros: u64,
    /// For each token of a slice of several, in microseconds.
    pub prefill_token_micros: u64,
    /// For each slice of one token, in microseconds.
    pub decode_micros: u64,
}

impl Latency {
    /// How long a step of this batch takes.
    #[must_use]
    pub fn of(&self, batch: &[Slice<'_>]) -> Duration {
        let slices = batch.iter().map(|slice| match slice.tokens.len() as u64 {
            1 => self.decode_micros,
            tokens => tokens.saturating_mul(self.prefill_token_micros),
        });
        Duration::from_micros(slices.fold(self.step_micros, u64::saturating_add))
    }
}

/// Which of the positions a slice attends to are checked, in every step.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Verify {
    /// All of them.
    Every,
    /// The latest one and up to this many others, chosen by step and sequence.
    Some(u32),
    /// The latest one, and only for being whole. What it is the KV of decides on the next token, as it does with a model: foreign KV that is
    /// whole shows in the answer. A token costs the same however long its sequence is, which it does with none of the others.
    Latest,
}

/// What the mock does about a foreign byte. It is written down in the [`Canary`] in any case.
///
/// [`Canary`]: crate::Canary
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum OnForeign {
    /// The step fails, and with it the engine.
    Fail,
    /// The step goes on.
    Continue,
}

/// Faults, some at a step, the first being step 1.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub struct Faults {
    /// This step reports an error.
    pub fail_at_step: Option<u64>,
    /// This step panics.
    pub panic_at_step: Option<u64>,
    /// Sequences that begin with this token have no next one from this position on.
    pub no_token_for: Option<(Token, usize)>,
}
