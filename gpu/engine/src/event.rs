//! What goes into the engine and what comes out of it.

use crate::backend::{BlockIndex, NoToken, Token, TokenLogprobs};
use crate::sequence::{Refusal, SequenceKey, SequenceSpec};

/// What an engine can be told. Takes effect at the next boundary between steps.
#[derive(Clone, PartialEq, Debug)]
pub enum Command {
    /// Takes a sequence in.
    Start(SequenceSpec),
    /// Appends blocks to a sequence's table. Without effect for a sequence that has left.
    Grow {
        /// The sequence.
        key: SequenceKey,
        /// The blocks, in order.
        blocks: Vec<BlockIndex>,
    },
    /// The sequence may go on so far. What is less than was said before changes nothing, and so does a sequence that has left.
    Allow {
        /// The sequence.
        key: SequenceKey,
        /// As [`SequenceSpec::until`].
        until: u32,
    },
    /// Takes a sequence out. Always answered by [`EngineEvent::Stopped`] (or [`EngineEvent::Down`]).
    Stop {
        /// The sequence.
        key: SequenceKey,
    },
    /// Ends the engine: [`EngineEvent::Down`] follows.
    Shutdown,
}

/// What an engine says.
///
/// A sequence has left the engine, and no step touches its blocks any more, after whichever comes first: a token event of its own with
/// [`TokenEvent::left`], its name in [`StepReport::failed`], `Stopped`, `Refused`, or `Down`.
#[derive(Clone, PartialEq, Debug)]
pub enum EngineEvent {
    /// A step was run (or abandoned, and has an empty report), or sequences that cannot run want blocks.
    Step(StepReport),
    /// The sequence is not in the engine (any more). Answers every `Stop`, also of a key the engine never saw.
    Stopped {
        /// The sequence.
        key: SequenceKey,
    },
    /// The sequence was not taken in, or was thrown out for a block that is not of this pool. None of this key is in the engine now.
    Refused {
        /// The sequence.
        key: SequenceKey,
        /// Why.
        why: Refusal,
    },
    /// The engine ended and its backend is gone. Said once, as the last event; answers every command not yet answered.
    Down {
        /// Why.
        why: DownReason,
    },
}

/// Why an engine ended.
#[derive(Clone, Eq, PartialEq, Debug, thiserror::Error)]
pub enum DownReason {
    /// It was told to, or nobody could command it any more.
    #[error("the engine was shut down")]
    Shutdown,
    /// The backend reported an error.
    #[error("{0}")]
    Backend(String),
    /// A step panicked, or whoever was told of one.
    #[error("the engine panicked: {0}")]
    Panic(String),
}

/// What one step did.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StepReport {
    /// Sampled tokens, at most one a sequence.
    pub tokens: Vec<TokenEvent>,
    /// Sequences that have no next token, and have left the engine.
    pub failed: Vec<(SequenceKey, NoToken)>,
    /// For every other sequence in the step: positions whose keys and values are now in its blocks, in total.
    pub computed: Vec<(SequenceKey, u32)>,
    /// Sequences that want more blocks, and how many. A want is reported once; `Grow` may answer it in parts. A sequence whose blocks
    /// are full waits, without holding up others.
    pub wants: Vec<(SequenceKey, u32)>,
    /// Sequences in the step.
    pub batch: u32,
    /// Tokens computed in the step.
    pub step_tokens: u32,
    /// How long the step took, in microseconds.
    pub micros: u64,
}

/// A sampled token.
#[derive(Clone, PartialEq, Debug)]
pub struct TokenEvent {
    /// Whose.
    pub key: SequenceKey,
    /// The token. With `finish: Some(Stop)` it is the end token, which is not part of the answer's text.
    pub token: Token,
    /// Its index in the whole sequence, prompt included.
    pub position: u32,
    /// Log-probabilities, when asked for.
    pub logprobs: Option<TokenLogprobs>,
    /// Set if the answer ends with this token.
    pub finish: Option<FinishReason>,
    /// The sequence has left the engine: the answer ended, or its goal is reached.
    pub left: bool,
}

/// Why an answer ended.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum FinishReason {
    /// The model sampled an end token.
    Stop,
    /// The token is the last that was allowed.
    Length,
}
