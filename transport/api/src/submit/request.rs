//! A validated request, free of HTTP and of JSON.

use std::time::{Duration, Instant};

/// One prompt to continue, `n` times. Ranges have been checked by the door; what depends on the model (its name,
/// the length of the prompt, the vocabulary) has not.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerateRequest {
    /// The request's name in logs and in the `x-request-id` header: the client's where it sent a sane one, so
    /// *not* unique.
    pub request_id: String,
    /// The name of the model, as the client wrote it.
    pub model: String,
    /// What to continue.
    pub prompt: Prompt,
    /// How many continuations, each with its own room: at least 1. Event indices are `0..n`.
    pub n: u32,
    /// At most this many tokens for each continuation, at least 1. `None`: up to the end of the context; completions that
    /// say nothing ask for 16, as OpenAI's do.
    pub max_tokens: Option<u32>,
    /// How to choose tokens.
    pub sampling: Sampling,
    /// A continuation ends before the first of these (none is empty); the stop string is not delivered.
    pub stop: Vec<String>,
    /// `None`: no log probabilities. `Some(k)`: those of each token and of its `k` likeliest alternatives.
    pub logprobs: Option<u8>,
    /// Do not end at the model's end-of-sequence token.
    pub ignore_eos: bool,
    /// The whole request ends within this time of its submission, queueing included.
    pub timeout: Duration,
    /// The client's W3C `traceparent` header, unparsed.
    pub traceparent: Option<String>,
    /// When the door had the head of the request: what a client's waiting is counted from.
    pub received: Instant,
}

/// What to continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prompt {
    /// A conversation, to be put through the model's chat template; never empty.
    Chat(Vec<Message>),
    /// Text, to be tokenised as it stands.
    Text(String),
    /// Token ids, never empty.
    Tokens(Vec<u32>),
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who said it.
    pub role: Role,
    /// What was said; text parts have been joined.
    pub content: String,
    /// The name of the participant, where the client gave one.
    pub name: Option<String>,
}

/// Who said a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Instructions; OpenAI's `developer` is the same.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The role's name as chat templates know it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// How tokens are chosen. `None` leaves the choice to the model's own generation settings, where it has some, and
/// else to OpenAI's defaults.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampling {
    /// 0 (greedy) to 2.
    pub temperature: Option<f32>,
    /// Above 0, at most 1.
    pub top_p: Option<f32>,
    /// The number of likeliest tokens to choose from; 0 for all.
    pub top_k: Option<u32>,
    /// 0 to 1: drops tokens less likely than this times the likeliest.
    pub min_p: Option<f32>,
    /// Makes the choice repeatable. With `n` above 1 each continuation derives its own from this and its index.
    pub seed: Option<u64>,
    /// -2 to 2.
    pub presence_penalty: f32,
    /// -2 to 2.
    pub frequency_penalty: f32,
}
