//! An answer as server-sent events, made only as fast as the client takes them.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderName, HeaderValue, header};
use tokio::time::Instant;

use super::answer::Answer;
use super::error::ApiError;
use super::feed::{Feed, Step};
use super::shape::Shape;

/// Steps that are ready together are sent together, up to about this many bytes.
const BATCH_BYTES: usize = 16 << 10;

/// What an event is between.
const DATA: &[u8] = b"data: ";
const END: &[u8] = b"\n\n";

/// Ends a complete answer, and no other.
const DONE: &[u8] = b"data: [DONE]\n\n";

struct Events<S> {
    feed: Feed,
    answer: Answer<S>,
    first: Option<Step>,
    keep_alive: Duration,
    ended: bool,
}

/// The streamed answer. Its body holds the generation: when the client leaves, the door drops the body.
pub(crate) fn respond<S: Shape>(
    feed: Feed,
    answer: Answer<S>,
    first: Option<Step>,
    keep_alive: Duration,
) -> Response {
    let events = Events {
        feed,
        answer,
        first,
        keep_alive,
        ended: false,
    };
    let body = stream::unfold(events, |mut events| async move {
        let bytes = events.next().await?;
        Some((Ok::<_, Infallible>(bytes), events))
    });
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream; charset=utf-8"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // nginx would otherwise hold the stream back.
    headers.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    response
}

impl<S: Shape> Events<S> {
    /// The next bytes; `None` after the terminal event.
    async fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        let mut out = Vec::new();
        let quiet_at = Instant::now() + self.keep_alive;
        // A step may say nothing yet: half a character, or text that may become a stop string.
        while out.is_empty() {
            let step = match self.first.take() {
                Some(first) => first,
                None => match self.feed.next(Some(quiet_at)).await {
                    Some(step) => step,
                    None => return Some(Bytes::from_static(b": still here\n\n")),
                },
            };
            self.write(step, &mut out);
        }
        while !self.ended && out.len() < BATCH_BYTES {
            match self.feed.next_now().await {
                Some(step) => self.write(step, &mut out),
                None => break,
            }
        }
        Some(Bytes::from(out))
    }

    fn write(&mut self, step: Step, out: &mut Vec<u8>) {
        match step {
            Step::Text {
                index,
                text,
                logprobs,
            } => {
                self.open(index, out);
                let before = out.len();
                out.extend_from_slice(DATA);
                if self.answer.write_text(index, text, &logprobs, out) {
                    out.extend_from_slice(END);
                } else {
                    out.truncate(before);
                }
            }
            Step::Done { index, finish } => {
                self.open(index, out);
                event(out, &self.answer.piece_json(S::closing(index, finish)));
            }
            Step::Failed(failure) => {
                self.ended = true;
                event(out, &ApiError::from(failure).to_json());
            }
            Step::End => {
                self.ended = true;
                if let Some(usage) = self.answer.usage_json(self.feed.usage()) {
                    event(out, &usage);
                }
                out.extend_from_slice(DONE);
            }
        }
    }

    fn open(&mut self, index: u32, out: &mut Vec<u8>) {
        for piece in self.answer.opening(index) {
            event(out, &self.answer.piece_json(piece));
        }
    }
}

fn event(out: &mut Vec<u8>, json: &str) {
    out.extend_from_slice(DATA);
    out.extend_from_slice(json.as_bytes());
    out.extend_from_slice(END);
}
