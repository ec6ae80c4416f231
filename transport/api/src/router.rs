//! The routes, and what every request passes through whichever door it came in by.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::FutureExt;
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use tokio::sync::Semaphore;

use crate::ids::RequestId;
use crate::limits::Limits;
use crate::openai::{self, ApiError, Reading};
use crate::submit::{Readiness, Submit};

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What the handlers share.
pub(crate) struct Door {
    pub(crate) submit: Arc<dyn Submit>,
    pub(crate) limits: Limits,
    /// One permit a generation request under way.
    pub(crate) permits: Arc<Semaphore>,
    /// Places for requests whose bodies are on their way.
    pub(crate) reading: Reading,
    /// One permit a byte of a request's body.
    pub(crate) bodies: Arc<Semaphore>,
}

/// The routes of OpenAI's API and of health. Add others with `.merge` or `.route`; put what must see every request
/// (keys, quotas) around it with `.layer`.
pub fn router(submit: Arc<dyn Submit>, limits: Limits) -> Router {
    let permits = |most: usize| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
    let door = Arc::new(Door {
        submit,
        permits: permits(limits.requests),
        reading: Reading::new(limits.requests),
        // One body is always taken.
        bodies: permits(limits.bodies_bytes.max(limits.body_bytes)),
        limits,
    });
    Router::new()
        .route("/v1/chat/completions", post(openai::chat_completions))
        .route("/v1/completions", post(openai::completions))
        .route("/v1/models", get(openai::list_models))
        .route("/v1/models/{*id}", get(openai::one_model))
        .route("/health/live", get(live))
        .route("/health/ready", get(ready))
        .fallback(no_such_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn(attend))
        .with_state(door)
}

async fn live() -> &'static str {
    "live\n"
}

async fn ready(State(door): State<Arc<Door>>) -> Result<&'static str, ApiError> {
    match door.submit.ready() {
        Readiness::Ready => Ok("ready\n"),
        Readiness::NotReady(reason) => {
            let error = ApiError::unavailable(format!("not ready: {reason}"), Duration::from_secs(1));
            Err(ApiError {
                code: Some("not_ready"),
                ..error
            })
        }
    }
}

async fn no_such_route(method: Method, uri: Uri) -> ApiError {
    let message = format!("there is no {method} {} here", uri.path());
    ApiError::new(
        StatusCode::NOT_FOUND,
        "invalid_request_error",
        Some("unknown_url"),
        message,
    )
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    let message = format!("{} does not take {method}", uri.path());
    let code = Some("method_not_allowed");
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "invalid_request_error",
        code,
        message,
    )
}

/// Names the request, keeps a panic to it, and logs how it was answered: 499 where the client left first.
async fn attend(mut request: Request, next: Next) -> Response {
    let given = request
        .headers()
        .get(X_REQUEST_ID)
        .and_then(|value| value.to_str().ok());
    let id = RequestId::choose(given);
    request.extensions_mut().insert(id.clone());
    let mut visit = Visit {
        id: id.0.clone(),
        method: request.method().clone(),
        path: request.uri().path().to_owned(),
        since: Instant::now(),
        status: None,
    };
    let mut response = match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => ApiError::internal("the server failed while it handled this request").into_response(),
    };
    if let Ok(value) = HeaderValue::try_from(id.0) {
        response.headers_mut().insert(X_REQUEST_ID, value);
    }
    response
        .headers_mut()
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    visit.status = Some(response.status());
    response
}

/// Logs the answer when dropped: after the head of the answer is made, or when the client leaves before. What is streamed after the head may
/// still fail, and that has a line of its own.
struct Visit {
    id: String,
    method: Method,
    path: String,
    since: Instant,
    status: Option<StatusCode>,
}

impl Drop for Visit {
    fn drop(&mut self) {
        let status = self.status.map_or(499, |status| status.as_u16());
        let elapsed_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        // Probes come every second, and are of interest only to whoever looks for them.
        if self.path.starts_with("/health/") {
            tracing::debug!(method = %self.method, path = %self.path, status, elapsed_ms, "answered a probe");
            return;
        }
        tracing::info!(request_id = %self.id, method = %self.method, path = %self.path, status, elapsed_ms, "the answer begins");
    }
}
