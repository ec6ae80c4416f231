//! Why a request was not started.

use std::time::Duration;

/// A request refused before any room was opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// 400: the request is wrong for this model.
    #[error("{message}")]
    Invalid {
        /// The field that is wrong.
        param: Option<String>,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// 400 with the code `context_length_exceeded`, naming the field the prompt came in.
    #[error(
        "the prompt has {prompt_tokens} tokens and the model's context is {context_tokens}, answer included: shorten the prompt"
    )]
    PromptTooLong {
        /// Tokens of the prompt.
        prompt_tokens: u32,
        /// Tokens the model can take, completion included.
        context_tokens: u32,
    },
    /// 404: no model of this name is served.
    #[error("the model `{model}` does not exist here: GET /v1/models lists those that do")]
    UnknownModel {
        /// The name asked for.
        model: String,
    },
    /// 429 with `Retry-After`: the queue is full, or a quota is used up.
    #[error("{message}")]
    Overloaded {
        /// Which limit was met.
        message: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// 503 with `Retry-After`: no worker can take it, or this node is draining.
    #[error("{message}")]
    Unavailable {
        /// What is missing.
        message: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// 504: the request's deadline passed.
    #[error("the request's deadline passed while {phase}")]
    Expired {
        /// The phase it had reached.
        phase: String,
    },
    /// 500.
    #[error("{message}")]
    Internal {
        /// What broke.
        message: String,
    },
}
