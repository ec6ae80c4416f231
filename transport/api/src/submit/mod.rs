//! What the door asks of whatever stands behind it: [`Submit`], its request, its events, its refusals.
//!
//! The door knows no actor. The binary implements [`Submit`]; the tests implement it with a script.

mod error;
mod event;
mod request;

use futures_util::future::BoxFuture;

pub use error::SubmitError;
pub use event::{Event, Events, Failure, FailureKind, FinishReason, Generation, TokenLogprob, TopLogprob};
pub use request::{GenerateRequest, Message, Prompt, Role, Sampling};

/// The service behind the door.
pub trait Submit: Send + Sync + 'static {
    /// The models that can be asked for now, in the order to list them.
    fn models(&self) -> Vec<ModelCard>;

    /// Whether a request sent now could be served.
    fn ready(&self) -> Readiness;

    /// Validates the request against its model, opens its rooms and returns the stream of their events.
    ///
    /// Resolves by `request.timeout`, with an error if nothing could be started by then. Dropping the returned
    /// future before it resolves means the client has left: whatever it had begun is aborted.
    fn submit(&self, request: GenerateRequest) -> BoxFuture<'_, Result<Generation, SubmitError>>;
}

/// One served model, as `GET /v1/models` lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCard {
    /// The name a request gives in `model`.
    pub id: String,
    /// When this model began to be served, in seconds since the Unix epoch.
    pub created_s: u64,
    /// Prompt and completion together may have this many tokens.
    pub context_tokens: u32,
}

/// The answer to `GET /health/ready`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// A request would be served: 200.
    Ready,
    /// It would not, and why: 503.
    NotReady(String),
}
