//! Stands before the clients' router: without a good key nobody comes in, and nobody beyond what his key allows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use api::ApiError;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};

use super::meter::Exceeded;
use super::ring::{Holder, Ring};
use super::visit::Visit;

/// When to try again where it depends on other requests of the same client.
const SOON: Duration = Duration::from_secs(1);

/// The router for those who have a key of the ring.
pub(crate) fn guarded(router: Router, ring: Arc<Ring>) -> Router {
    router.layer(middleware::from_fn_with_state(ring, pass))
}

async fn pass(State(ring): State<Arc<Ring>>, request: Request, next: Next) -> Response {
    // Of those who start and end processes, and of load balancers: they say nothing.
    if request.uri().path().starts_with("/health/") {
        return next.run(request).await;
    }
    let Some(holder) = shown(request.headers()).and_then(|key| ring.holder(key)) else {
        return unknown(request.headers()).into_response();
    };
    // What is only looked at is free.
    if *request.method() != Method::POST {
        return next.run(request).await;
    }
    match Visit::admit(Arc::clone(&holder), Instant::now()) {
        Ok(visit) => visit.during(next.run(request)).await,
        Err(met) => refused(&holder, met).into_response(),
    }
}

/// The key that a request shows, as OpenAI's clients do.
fn shown(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?
        .split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

fn unknown(headers: &HeaderMap) -> impl IntoResponse {
    let message = match headers.contains_key(header::AUTHORIZATION) {
        true => "this key is not known here, or no longer good",
        false => "a key is needed: send it as `Authorization: Bearer KEY`",
    };
    let error = ApiError::new(
        StatusCode::UNAUTHORIZED,
        "authentication_error",
        Some("invalid_api_key"),
        message.to_owned(),
    );
    let scheme = HeaderValue::from_static("Bearer");
    ([(header::WWW_AUTHENTICATE, scheme)], error)
}

fn refused(holder: &Holder, met: Exceeded) -> ApiError {
    let name = &holder.name;
    let (limit, wait) = match met {
        Exceeded::Requests(wait) => ("requests_per_minute", wait),
        Exceeded::Tokens(wait) => ("tokens_per_minute", wait),
        Exceeded::Concurrent => ("concurrent", SOON),
    };
    tracing::debug!(key = name, limit, "a request is beyond the limits of its key");
    ApiError::overloaded(format!("the key of {name} has used up its {limit}"), wait)
}

#[cfg(test)]
mod tests;
