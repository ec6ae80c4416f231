//! An answer in pieces of bounded size, so that a slow client that takes some of it is told from one that takes nothing.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use http_body::{Frame, SizeHint};

/// The largest piece of an answer handed to a connection at once, in bytes.
const SLICE_BYTES: usize = 32 << 10;

/// Cuts the frames of a body.
pub(super) struct Sliced {
    body: Body,
    /// What is left of the last frame.
    rest: Bytes,
}

impl Sliced {
    pub(super) fn new(body: Body) -> Self {
        Self {
            body,
            rest: Bytes::new(),
        }
    }
}

impl http_body::Body for Sliced {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                end => return Poll::Ready(end),
            }
        }
        let most = self.rest.len().min(SLICE_BYTES);
        let slice = self.rest.split_to(most);
        Poll::Ready(Some(Ok(Frame::data(slice))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (inner, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(rest));
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use http_body::Body as _;
    use http_body_util::BodyExt;

    use super::*;

    async fn check(length: usize, pieces: &[usize]) {
        let mut body = Sliced::new(Body::from(vec![7; length]));
        let mut left = length;
        for piece in pieces {
            assert_eq!(body.size_hint().exact(), Some(left as u64));
            let data = body.frame().await.unwrap().unwrap().into_data().unwrap();
            assert_eq!(data.len(), *piece);
            left -= piece;
        }
        assert!(body.is_end_stream());
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn frames_are_cut() {
        check(5, &[5]).await;
        check(SLICE_BYTES, &[SLICE_BYTES]).await;
        check(2 * SLICE_BYTES + 1, &[SLICE_BYTES, SLICE_BYTES, 1]).await;
    }
}
