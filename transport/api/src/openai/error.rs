//! Every answer that is not a success, in OpenAI's shape.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

use crate::submit::{Failure, FailureKind, SubmitError};

/// The wait suggested where whoever refused did not name one.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// An error as the client sees it: a status code and `{"error": {...}}`. Routes added to the router may answer with
/// it too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status.
    pub status: StatusCode,
    /// For the user: what is wrong, and what would be right.
    pub message: String,
    /// OpenAI's class of the error, such as `invalid_request_error`.
    pub kind: &'static str,
    /// The field of the request that is wrong, as a path: `messages[2].content`.
    pub param: Option<String>,
    /// A stable word for programs, such as `model_not_found`.
    pub code: Option<&'static str>,
    /// The phase of the room in which it happened.
    pub phase: Option<String>,
    /// Sent as `Retry-After`.
    pub retry_after_s: Option<u32>,
}

#[derive(Serialize)]
struct Body<'a> {
    error: Inner<'a>,
}

#[derive(Serialize)]
struct Inner<'a> {
    message: &'a str,
    r#type: &'a str,
    param: Option<&'a str>,
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<&'a str>,
}

impl ApiError {
    /// An error with nothing but a status, a class, a code and a message.
    #[must_use]
    pub fn new(status: StatusCode, kind: &'static str, code: Option<&'static str>, message: String) -> Self {
        Self {
            status,
            message,
            kind,
            param: None,
            code,
            phase: None,
            retry_after_s: None,
        }
    }

    /// 400: `param` is wrong.
    #[must_use]
    pub fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        let error = Self::bad_request(message);
        Self {
            param: Some(param.into()),
            ..error
        }
    }

    /// 400, where no single field is wrong.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "invalid_request_error",
            None,
            message.into(),
        )
    }

    /// 429: try again later.
    #[must_use]
    pub fn overloaded(message: impl Into<String>, retry_after: Duration) -> Self {
        let error = Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "rate_limit_error",
            Some("rate_limit_exceeded"),
            message.into(),
        );
        Self {
            retry_after_s: Some(whole_s(retry_after)),
            ..error
        }
    }

    /// 503: nothing here can do it now.
    #[must_use]
    pub fn unavailable(message: impl Into<String>, retry_after: Duration) -> Self {
        let error = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "server_error",
            Some("unavailable"),
            message.into(),
        );
        Self {
            retry_after_s: Some(whole_s(retry_after)),
            ..error
        }
    }

    /// 504: the request's deadline passed, in `phase` if that is known.
    #[must_use]
    pub fn expired(message: impl Into<String>, phase: Option<String>) -> Self {
        let error = Self::new(
            StatusCode::GATEWAY_TIMEOUT,
            "timeout_error",
            Some("deadline_exceeded"),
            message.into(),
        );
        Self { phase, ..error }
    }

    /// 500.
    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "server_error",
            Some("internal_error"),
            message.into(),
        )
    }

    /// 404: no model of this name.
    pub(crate) fn unknown_model(model: &str) -> Self {
        SubmitError::UnknownModel {
            model: model.to_owned(),
        }
        .into()
    }

    /// The JSON of the error.
    pub(crate) fn to_json(&self) -> String {
        let error = Inner {
            message: &self.message,
            r#type: self.kind,
            param: self.param.as_deref(),
            code: self.code,
            phase: self.phase.as_deref(),
        };
        // Strings and options of strings cannot fail to serialise.
        serde_json::to_string(&Body { error }).unwrap_or_default()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.to_json()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(after_s) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(after_s));
        }
        response
    }
}

/// Rounded up and at least 1: a client must not come back before the time.
fn whole_s(after: Duration) -> u32 {
    let rounded = after
        .as_secs()
        .saturating_add(u64::from(after.subsec_nanos() > 0));
    u32::try_from(rounded).unwrap_or(u32::MAX).max(1)
}

impl From<SubmitError> for ApiError {
    fn from(error: SubmitError) -> Self {
        let message = error.to_string();
        match error {
            SubmitError::Invalid { param, .. } => Self {
                param,
                ..Self::bad_request(message)
            },
            SubmitError::PromptTooLong { .. } => Self {
                code: Some("context_length_exceeded"),
                ..Self::bad_request(message)
            },
            SubmitError::UnknownModel { .. } => {
                let error = Self::new(
                    StatusCode::NOT_FOUND,
                    "invalid_request_error",
                    Some("model_not_found"),
                    message,
                );
                Self {
                    param: Some("model".to_owned()),
                    ..error
                }
            }
            // Nothing was started: it got no further than the queue.
            SubmitError::Overloaded { retry_after, .. } => Self {
                phase: Some("queued".to_owned()),
                ..Self::overloaded(message, retry_after)
            },
            SubmitError::Unavailable { retry_after, .. } => Self {
                phase: Some("queued".to_owned()),
                ..Self::unavailable(message, retry_after)
            },
            SubmitError::Expired { phase } => Self::expired(message, Some(phase)),
            SubmitError::Internal { .. } => Self::internal(message),
        }
    }
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> Self {
        let Failure { kind, message, phase } = failure;
        let error = match kind {
            FailureKind::Overloaded => Self::overloaded(message, RETRY_AFTER),
            FailureKind::Unavailable => Self::unavailable(message, RETRY_AFTER),
            FailureKind::Expired => Self::expired(message, None),
            FailureKind::Cancelled => Self {
                code: Some("cancelled"),
                retry_after_s: None,
                ..Self::unavailable(message, RETRY_AFTER)
            },
            FailureKind::Internal => Self::internal(message),
        };
        Self { phase, ..error }
    }
}
