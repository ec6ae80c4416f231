//! What is left of a request when its answer is there.
//!
//! An answer may come while the client is still sending: the body is too large, the path is wrong, nothing is free. Were the rest
//! refused at once, with a reset, many clients would stop at that and never read the answer. So it is taken and thrown away for
//! a while: over HTTP/2 beside the answer, elsewhere between its last byte and its end.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::FutureExt;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::time::{Sleep, sleep, timeout};

/// How long the rest is taken.
const LINGER: Duration = Duration::from_secs(1);

/// Where the body of a request goes when whoever was to read it drops it.
#[derive(Clone, Default)]
pub(super) struct Rest(Arc<Mutex<Option<Body>>>);

impl Rest {
    fn put(&self, body: Body) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(body);
    }

    /// What was not read of the request, unless all that comes is its end.
    pub(super) fn take(&self) -> Option<Body> {
        let mut body = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        match body.frame().now_or_never() {
            Some(None | Some(Err(_))) => None,
            // The first piece is as little use as the others.
            Some(Some(Ok(_))) | None => Some(body),
        }
    }
}

/// The body of a request, which ends up in a [`Rest`] where it is not read to its end.
pub(super) struct Kept {
    body: Body,
    rest: Rest,
    ended: bool,
}

impl Kept {
    pub(super) fn new(body: Body, rest: Rest) -> Self {
        Self {
            body,
            rest,
            ended: false,
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if !self.ended && !self.body.is_end_stream() {
            self.rest.put(std::mem::take(&mut self.body));
        }
    }
}

impl http_body::Body for Kept {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = ready!(Pin::new(&mut self.body).poll_frame(cx));
        self.ended = !matches!(polled, Some(Ok(_)));
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer that ends when the rest of its request has come, or does not for too long.
pub(super) struct Lingering {
    answer: Body,
    rest: Body,
    /// Runs from the end of the answer.
    patience: Option<Pin<Box<Sleep>>>,
}

impl Lingering {
    pub(super) fn new(answer: Body, rest: Body) -> Self {
        Self {
            answer,
            rest,
            patience: None,
        }
    }
}

impl http_body::Body for Lingering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        if this.patience.is_none()
            && let Some(frame) = ready!(Pin::new(&mut this.answer).poll_frame(cx))
        {
            return Poll::Ready(Some(frame));
        }
        let patience = this.patience.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        loop {
            // First, so that a client that never stops sending is not listened to for ever.
            if patience.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            match ready!(Pin::new(&mut this.rest).poll_frame(cx)) {
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Poll::Ready(None),
            }
        }
    }
}

/// Takes the rest.
pub(super) async fn discard(mut rest: Body) {
    let taking = async { while let Some(Ok(_)) = rest.frame().await {} };
    // In time or not: it is dropped, and what may still come is refused.
    let _ = timeout(LINGER, taking).await;
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    fn kept(body: Body) -> (Body, Rest) {
        let rest = Rest::default();
        (Body::new(Kept::new(body, rest.clone())), rest)
    }

    #[tokio::test]
    async fn only_what_was_not_read_is_left() {
        let (body, rest) = kept(Body::from("all of it"));
        drop(body.collect().await);
        assert!(rest.take().is_none());
        let (body, rest) = kept(Body::empty());
        drop(body);
        assert!(rest.take().is_none());
        let (body, rest) = kept(Body::from("none of it"));
        drop(body);
        assert!(rest.take().is_some());
        assert!(rest.take().is_none());
    }

    /// The answer comes at once and whole, whatever the client goes on sending.
    #[tokio::test]
    async fn an_answer_lingers_for_the_rest_but_not_for_ever() {
        let silent = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        let endless = Body::from_stream(stream::unfold((), async |()| {
            sleep(Duration::from_millis(1)).await;
            Some((Ok::<_, std::io::Error>(Bytes::from_static(b"x")), ()))
        }));
        let broken = Body::from_stream(stream::iter([Err::<Bytes, _>(std::io::Error::other("gone"))]));
        for rest in [Body::from("the rest"), silent, endless, broken] {
            let answer = Lingering::new(Body::from("too large"), rest);
            assert_eq!(answer.collect().await.unwrap().to_bytes(), "too large");
        }
    }
}
