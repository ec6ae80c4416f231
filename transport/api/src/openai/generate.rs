//! From a request to the head of its answer: submit, wait for the first event, choose the status.

use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures_util::future::try_join_all;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use super::answer::Answer;
use super::common::{Caller, Common};
use super::error::ApiError;
use super::feed::{Feed, Step};
use super::shape::Shape;
use super::{body, sse, whole};
use crate::ids::RequestId;
use crate::limits::Limits;
use crate::router::Door;
use crate::submit::{GenerateRequest, SubmitError};

const X_INNKEEPER_ROOM: HeaderName = HeaderName::from_static("x-innkeeper-room");

/// Where to look for the request among the traces: its own span, in the client's trace if it came with one.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// A parsed request.
pub(crate) struct Job {
    pub(crate) common: Common,
    /// One a prompt.
    pub(crate) requests: Vec<GenerateRequest>,
    /// What the continuations of each prompt begin with: one a prompt, or none at all.
    pub(crate) echoes: Vec<String>,
}

/// Serves one generation request, of either kind.
///
/// Nothing here outlives the future: when the client leaves, the future is dropped, and with it the generation.
pub(crate) async fn serve<S: Shape>(
    door: &Door,
    request: Request<Body>,
    parse: fn(&[u8], &Caller, &Limits) -> Result<Job, ApiError>,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let caller = caller(&parts);
    let held = body::read(&parts.headers, body, door).await?;
    let permit = permit(door)?;
    let Job {
        common,
        requests,
        echoes,
    } = parse(&held.bytes, &caller, &door.limits)?;
    drop(held);
    let answer = Answer::<S>::new(&common, requests.len(), echoes);
    let mut feed = start::<S>(door, &caller, &common, requests, permit).await?;
    let (rooms, traceparent) = (feed.rooms(), feed.traceparent());
    // Both waits end by the request's deadline: see `Feed::next`.
    let mut response = match feed.next(None).await {
        Some(Step::Failed(failure)) => ApiError::from(failure).into_response(),
        first if common.stream => sse::respond(feed, answer, first, door.limits.keep_alive),
        first => match whole::collect(feed, answer, first, door.limits.answer_bytes).await {
            Ok(response) => response,
            Err(error) => error.into_response(),
        },
    };
    if let Ok(value) = HeaderValue::try_from(rooms) {
        response.headers_mut().insert(X_INNKEEPER_ROOM, value);
    }
    if let Some(Ok(value)) = traceparent.map(HeaderValue::try_from) {
        response.headers_mut().insert(TRACEPARENT, value);
    }
    Ok(response)
}

fn permit(door: &Door) -> Result<OwnedSemaphorePermit, ApiError> {
    Arc::clone(&door.permits).try_acquire_owned().map_err(|_| {
        let message = format!(
            "{} requests are under way, the most this server takes",
            door.limits.requests
        );
        ApiError::overloaded(message, std::time::Duration::from_secs(1))
    })
}

fn caller(parts: &http::request::Parts) -> Caller {
    let request_id = parts
        .extensions
        .get::<RequestId>()
        .map(|id| id.0.clone())
        .unwrap_or_default();
    Caller {
        request_id,
        traceparent: text_header(&parts.headers, "traceparent"),
        received: std::time::Instant::now(),
    }
}

fn text_header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned)
}

/// Submits every prompt, by the request's deadline; one refusal withdraws the others.
async fn start<S: Shape>(
    door: &Door,
    caller: &Caller,
    common: &Common,
    requests: Vec<GenerateRequest>,
    permit: OwnedSemaphorePermit,
) -> Result<Feed, ApiError> {
    let deadline = Instant::now() + common.timeout + door.limits.deadline_grace;
    let submitting = try_join_all(requests.into_iter().map(|request| door.submit.submit(request)));
    match timeout_at(deadline, submitting).await {
        Ok(generations) => Ok(Feed::new(
            generations.map_err(refused::<S>)?,
            common.n,
            deadline,
            caller.request_id.clone(),
            permit,
        )),
        Err(_) => Err(ApiError::expired(
            "the request's deadline passed before it could be started",
            Some("queued".to_owned()),
        )),
    }
}

/// Only here is it known in which field the prompt came.
fn refused<S: Shape>(error: SubmitError) -> ApiError {
    let param = matches!(error, SubmitError::PromptTooLong { .. }).then(|| S::PROMPT.to_owned());
    let error = ApiError::from(error);
    ApiError {
        param: param.or(error.param),
        ..error
    }
}
