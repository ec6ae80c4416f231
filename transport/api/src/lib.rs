//! The clients' door: an OpenAI-shaped API over HTTP/3, HTTP/2 and HTTP/1.1.
//!
//! This crate knows no actor: it turns HTTP into a [`GenerateRequest`], hands it to [`Submit`], and turns the
//! [`Event`]s that come back into JSON or server-sent events. One [`router`] holds the handlers; [`serve`] puts it
//! behind TCP and QUIC.
//!
//! **When the client leaves, its [`Generation`] is dropped**, on every protocol, streaming or not, also while the
//! first token is awaited. **Every wait has a deadline** and every queue a bound: see [`Limits`] and [`DoorLimits`].

pub mod client;
mod doors;
mod ids;
mod limits;
mod openai;
mod router;
mod submit;

pub use doors::{BindError, DoorLimits, Doors, DoorsConfig, Drained, Peer, ServeError, Tls, TlsError, serve};
pub use ids::RequestId;
pub use limits::Limits;
pub use openai::ApiError;
pub use router::router;
pub use submit::{
    Event, Events, Failure, FailureKind, FinishReason, GenerateRequest, Generation, Message, ModelCard,
    Prompt, Readiness, Role, Sampling, Submit, SubmitError, TokenLogprob, TopLogprob,
};
