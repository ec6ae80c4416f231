//! The body of a request: JSON, within the limits of size, of time and of memory.

use axum::body::Body;
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::error::ApiError;
use crate::limits::Limits;
use crate::router::Door;

/// A body that has been read, and the room it takes up among all that are being read.
pub(crate) struct Held {
    pub(crate) bytes: Vec<u8>,
    room: Option<OwnedSemaphorePermit>,
}

/// Reads a whole JSON body. What is too large by its own account is refused unread.
pub(crate) async fn read(headers: &HeaderMap, body: Body, door: &Door) -> Result<Held, ApiError> {
    let limits = &door.limits;
    check_content_type(headers)?;
    if announced_bytes(headers).is_some_and(|bytes| bytes > limits.body_bytes as u64) {
        return Err(too_large(limits));
    }
    let place = door.reading.enter();
    let read = timeout(limits.body_read_timeout, collect(body, door));
    tokio::select! {
        biased;
        read = read => read.unwrap_or_else(|_| {
            let limit = limits.body_read_timeout.as_secs();
            Err(not_in_time(format!("the request's body did not arrive within {limit} s")))
        }),
        () = place.gives_way() => Err(not_in_time(format!(
            "the request's body did not arrive before those of {} later requests were on their way, the most this server reads at once",
            limits.requests
        ))),
    }
}

fn not_in_time(message: String) -> ApiError {
    ApiError::new(
        StatusCode::REQUEST_TIMEOUT,
        "timeout_error",
        Some("body_timeout"),
        message,
    )
}

async fn collect(mut body: Body, door: &Door) -> Result<Held, ApiError> {
    let mut held = Held {
        bytes: Vec::new(),
        room: None,
    };
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| ApiError::bad_request(format!("the request's body broke off: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if held.bytes.len() + data.len() > door.limits.body_bytes {
            return Err(too_large(&door.limits));
        }
        held.make_room(data.len(), door)?;
        held.bytes.extend_from_slice(&data);
    }
    Ok(held)
}

impl Held {
    /// Counts only what has come: a client that sends little and slowly takes no room from others.
    fn make_room(&mut self, bytes: usize, door: &Door) -> Result<(), ApiError> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let more = door.bodies.clone().try_acquire_many_owned(bytes).map_err(|_| {
            let message = "the requests that are being read take up all the memory there is for them";
            ApiError::overloaded(message, std::time::Duration::from_secs(1))
        })?;
        match &mut self.room {
            Some(room) => room.merge(more),
            None => self.room = Some(more),
        }
        Ok(())
    }
}

fn announced_bytes(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn too_large(limits: &Limits) -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "invalid_request_error",
        Some("request_too_large"),
        format!("the request's body is larger than {} bytes", limits.body_bytes),
    )
}

fn check_content_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let given = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    let essence = given.split(';').next().unwrap_or("").trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    // A form's type is what a web page may send to any address without asking: refusing it keeps pages out.
    Err(ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "invalid_request_error",
        Some("unsupported_media_type"),
        format!("the content type is `{given}`: send JSON with `Content-Type: application/json`"),
    ))
}
