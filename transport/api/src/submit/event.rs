//! What a running generation tells the door.

use std::fmt;
use std::pin::Pin;

use futures_util::Stream;

/// The events of a request. They are asked for where they are written: by the task of the client's connection.
pub type Events = Pin<Box<dyn Stream<Item = Event> + Send>>;

/// A request under way: its rooms and the stream of their events.
///
/// **Dropping this is the abort.** The door drops it as soon as the client has left (connection closed, stream
/// reset) and as soon as the first [`Event::Failed`] has been read.
pub struct Generation {
    /// The rooms, one a continuation, in the order of their indices. Sent in the `x-innkeeper-room` header.
    pub room_ids: Vec<String>,
    /// The request's span as W3C writes it. Sent in the `traceparent` header.
    pub traceparent: Option<String>,
    /// The length of the prompt, counted once whatever `n` is.
    pub prompt_tokens: u32,
    /// The events of all continuations. For each index: any number of `Text`, then one `Done` or `Failed`. Asked for
    /// more only when the client has taken what came before: when it reads slowly, its room is to pause. Must not
    /// block, nor be ready for ever with nothing new. An end before every index has ended counts as an internal
    /// failure.
    pub events: Events,
}

impl fmt::Debug for Generation {
    /// Without the events, which only come.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generation")
            .field("room_ids", &self.room_ids)
            .field("traceparent", &self.traceparent)
            .field("prompt_tokens", &self.prompt_tokens)
            .finish_non_exhaustive()
    }
}

/// One thing that happened to one continuation.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// More text.
    Text {
        /// Which continuation: below `n`.
        index: u32,
        /// Whole characters; may be empty where a token ends inside a character.
        text: String,
        /// One entry a token of `text`, where asked for; else empty.
        logprobs: Vec<TokenLogprob>,
    },
    /// The continuation is complete.
    Done {
        /// Which continuation.
        index: u32,
        /// Why it ended.
        finish: FinishReason,
        /// How many tokens were generated.
        completion_tokens: u32,
        /// How many tokens of the prompt were found in a cache.
        cached_tokens: u32,
    },
    /// The continuation cannot be completed. The door ends the whole request with this.
    Failed {
        /// Which continuation.
        index: u32,
        /// What went wrong.
        failure: Failure,
    },
}

/// Why a continuation is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// The model ended it, or a stop string.
    Stop,
    /// `max_tokens` or the context was used up.
    Length,
}

/// A continuation that will not be completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Decides the status code where no byte of the answer has been sent yet.
    pub kind: FailureKind,
    /// For the user: what is wrong, and what would be right.
    pub message: String,
    /// The phase of the room in which it happened.
    pub phase: Option<String>,
}

/// The kinds of failure a user can tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// No credit before the queue's deadline: 429.
    Overloaded,
    /// No worker, or draining: 503.
    Unavailable,
    /// The request's deadline: 504.
    Expired,
    /// Ended by an operator: 503.
    Cancelled,
    /// Anything else: 500.
    Internal,
}

impl FailureKind {
    /// The name in lower case, for logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Overloaded => "overloaded",
            Self::Unavailable => "unavailable",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Internal => "internal",
        }
    }
}

/// A generated token and how likely it was.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenLogprob {
    /// The token as text; what is not UTF-8 is replaced.
    pub token: String,
    /// The token's bytes.
    pub bytes: Vec<u8>,
    /// Natural logarithm of its probability.
    pub logprob: f32,
    /// The likeliest tokens in its place, best first: as many as were asked for.
    pub top: Vec<TopLogprob>,
}

/// A token that could have been.
#[derive(Debug, Clone, PartialEq)]
pub struct TopLogprob {
    /// The token as text; what is not UTF-8 is replaced.
    pub token: String,
    /// The token's bytes.
    pub bytes: Vec<u8>,
    /// Natural logarithm of its probability.
    pub logprob: f32,
}
