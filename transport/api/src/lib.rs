//! The clients' door: an OpenAI-shaped API over HTTP/3, HTTP/2 and HTTP/1.1.
//!
//! This crate knows no actor: it turns HTTP into a [`GenerateRequest`], hands it to [`Submit`], and turns the
//! [`Event`]s that come back into JSON or server-sent events.

mod limits;
mod submit;

pub use limits::Limits;
pub use submit::{
    Event, Failure, FailureKind, FinishReason, GenerateRequest, Generation, Message, ModelCard, Prompt,
    Readiness, Role, Sampling, Submit, SubmitError, TokenLogprob, TopLogprob,
};
