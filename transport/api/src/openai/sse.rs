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

/// Ends a complete answer, and no other.
const DONE: &str = "data: [DONE]\n\n";

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
        let mut out = String::new();
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

    fn write(&mut self, step: Step, out: &mut String) {
        match step {
            Step::Text {
                index,
                text,
                logprobs,
            } => {
                self.open(index, out);
                if let Some(piece) = self.answer.text(index, text, &logprobs) {
                    event(out, &self.answer.piece_json(piece));
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
                out.push_str(DONE);
            }
        }
    }

    fn open(&mut self, index: u32, out: &mut String) {
        for piece in self.answer.opening(index) {
            event(out, &self.answer.piece_json(piece));
        }
    }
}

fn event(out: &mut String, json: &str) {
    out.push_str("data: ");
    out.push_str(json);
    out.push_str("\n\n");
}
