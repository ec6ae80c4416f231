//! Between the clients' door and the gateway: prompts become tokens, tokens become text, outcomes become what a client is told.

mod outcome;
mod prompts;
mod relay;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use api::{GenerateRequest, Generation, ModelCard, Readiness, Submit, SubmitError};
use engine::Sampling;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use model::Model;
use observe::{SpanId, Trace, TraceId};
use prompts::Prompts;
use relay::Relay;
use room::Share;
use runtime::{GatewayHandle, Job, Preparation, Refused};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use wire::TraceContext;

use crate::keys;

/// The service behind the clients' door.
pub(crate) struct Door {
    gateway: GatewayHandle,
    model: Arc<Model>,
    prompts: Prompts,
    name: String,
    created_s: u64,
    /// The requests that are under way. Closed when the gateway lets no more in.
    guests: TaskTracker,
}

/// When to try again after a refusal.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl Door {
    pub(crate) fn new(gateway: GatewayHandle, model: Arc<Model>, name: String, guests: TaskTracker) -> Self {
        let created_s = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let prompts = Prompts::new(Arc::clone(&model), name.clone());
        Self {
            gateway,
            model,
            prompts,
            name,
            created_s,
            guests,
        }
    }

    fn context_tokens(&self) -> u32 {
        self.model.config().context_tokens
    }

    async fn open(&self, request: GenerateRequest) -> Result<Generation, SubmitError> {
        // Counted before it is looked at: whoever closes the door then waits for it, or it sees that it is closed.
        let guest = self.guests.token();
        if self.guests.is_closed() {
            return Err(refused(&Refused::ShuttingDown));
        }
        if request.model != self.name {
            return Err(SubmitError::UnknownModel { model: request.model });
        }
        let began = Instant::now();
        let prompt = self.prompts.encoded(&request.prompt, request.timeout).await?;
        let prompt_tokens = u32::try_from(prompt.tokens.len()).unwrap_or(u32::MAX);
        let room = self.context_tokens() - prompt_tokens;
        let visit = keys::current();
        let job = Job {
            request_id: request.request_id.clone(),
            prompt: prompt.tokens,
            n: request.n,
            max_new: request.max_tokens.unwrap_or(room).min(room),
            sampling: sampling(&request),
            ignore_eos: request.ignore_eos,
            priority: 128,
            share: visit.as_ref().map_or_else(Share::default, |visit| visit.share()),
            salt: visit.as_ref().map_or(0, |visit| visit.salt()),
            timeout: request.timeout.saturating_sub(began.elapsed()),
            trace: Some(trace(request.traceparent.as_deref())),
            prepared: Preparation {
                in_all: request.received.elapsed(),
                render: prompt.render,
                tokenise: prompt.tokenise,
            },
        };
        let answer = self.gateway.submit(job).await.map_err(|why| refused(&why))?;
        if let Some(visit) = &visit {
            visit.charge(prompt_tokens);
        }
        let room_ids = answer.rooms().iter().map(ToString::to_string).collect();
        let traceparent = answer.traceparent();
        // Ends with the answer, when the client leaves, or at the request's deadline.
        let events = Relay::new(answer, self.model.tokenizer(), &request, visit, guest);
        Ok(Generation {
            room_ids,
            traceparent,
            prompt_tokens,
            events: Box::pin(events),
        })
    }
}

impl Submit for Door {
    fn models(&self) -> Vec<ModelCard> {
        vec![ModelCard {
            id: self.name.clone(),
            created_s: self.created_s,
            context_tokens: self.context_tokens(),
        }]
    }

    fn ready(&self) -> Readiness {
        if self.guests.is_closed() {
            return Readiness::NotReady(Refused::ShuttingDown.to_string());
        }
        match self.gateway.ready() {
            Ok(()) => Readiness::Ready,
            Err(why) => Readiness::NotReady(why),
        }
    }

    fn submit(&self, request: GenerateRequest) -> BoxFuture<'_, Result<Generation, SubmitError>> {
        self.open(request).boxed()
    }
}

/// The client's trace, or one of its own: nobody else has its id.
fn trace(traceparent: Option<&str>) -> TraceContext {
    let trace = traceparent.and_then(Trace::parse);
    let trace = trace.unwrap_or_else(|| Trace::new(TraceId::new(rand::random())));
    TraceContext {
        trace_id: trace.id.bits(),
        span_id: trace.parent.map_or(0, SpanId::bits),
        flags: trace.flags,
    }
}

/// OpenAI's defaults where the client says nothing; without a seed every request gets its own.
fn sampling(request: &GenerateRequest) -> Sampling {
    let wishes = &request.sampling;
    Sampling {
        temperature: wishes.temperature.unwrap_or(1.0),
        top_p: wishes.top_p.unwrap_or(1.0),
        top_k: wishes.top_k.unwrap_or(0),
        min_p: wishes.min_p.unwrap_or(0.0),
        seed: wishes.seed.unwrap_or_else(rand::random),
        presence_penalty: wishes.presence_penalty,
        frequency_penalty: wishes.frequency_penalty,
        logprobs: request.logprobs,
    }
}

fn refused(why: &Refused) -> SubmitError {
    let message = why.to_string();
    match why {
        Refused::TooManyRequests { .. } => SubmitError::Overloaded {
            message,
            retry_after: RETRY_AFTER,
        },
        Refused::ShuttingDown | Refused::NotStarted | Refused::Unavailable { .. } => {
            SubmitError::Unavailable {
                message,
                retry_after: RETRY_AFTER,
            }
        }
    }
}
