//! Guests: requests that are on their way while something goes wrong.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinHandle;

use super::ctx::Ctx;
use crate::stream::{Answer, Stream};

/// A request whose answer is being read.
pub(crate) struct Guest {
    reading: JoinHandle<Result<Answer, String>>,
}

impl Guest {
    /// Sends a request; nobody waits for it yet.
    pub(crate) fn arrives(ctx: &Ctx, request: &Value) -> Self {
        let (to, request) = (ctx.cluster.ports().http, request.clone());
        let reading = tokio::spawn(async move { Stream::open(to, &request).await?.finish().await });
        Self { reading }
    }

    /// Sends a request and waits until it has so many tokens; the gaps between tokens are counted from then.
    pub(crate) async fn streams(ctx: &Ctx, request: &Value, tokens: usize) -> Self {
        Self::streams_from(ctx.cluster.ports().http, request, tokens).await
    }

    /// The same, of a gateway that listens there.
    pub(crate) async fn streams_from(to: SocketAddr, request: &Value, tokens: usize) -> Self {
        let mut stream = Stream::open(to, request).await.unwrap();
        let so_far = stream.read_tokens(tokens).await.unwrap();
        assert!(so_far.tokens.len() >= tokens, "{so_far:?}");
        stream.mark();
        Self {
            reading: tokio::spawn(stream.finish()),
        }
    }

    /// Its whole answer.
    pub(crate) async fn leaves(self) -> Answer {
        let answer = self.reading.await.expect("the reader does not panic");
        answer.expect("an answer without a broken connection")
    }

    /// Its answer, if its connection does not break.
    pub(crate) async fn hears(self) -> Result<Answer, String> {
        self.reading.await.expect("the reader does not panic")
    }

    /// Goes away without waiting: its connection is cut.
    pub(crate) async fn runs_away(self) {
        self.reading.abort();
        // The connection is closed when the reader has gone.
        let _ = self.reading.await;
    }
}

/// A whole answer with the tokens of the undisturbed one.
pub(crate) fn same(expected: &Answer, answer: &Answer) {
    whole(answer);
    assert_eq!(
        expected.tokens, answer.tokens,
        "INV-06: other tokens than undisturbed"
    );
    assert_eq!(
        expected.logprobs, answer.logprobs,
        "INV-06: other numbers than undisturbed"
    );
}

/// An answer that came to its end in order.
pub(crate) fn whole(answer: &Answer) {
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.done && answer.error.is_none(), "{answer:?}");
    assert_eq!(answer.finish.as_deref(), Some("length"), "{answer:?}");
}

/// INV-05: the error that goes with this status, in the head or in the stream, and no success beside it.
pub(crate) fn failed(answer: &Answer, status: u16) {
    let code = match status {
        429 => "rate_limit_exceeded",
        503 => "unavailable",
        504 => "deadline_exceeded",
        _ => panic!("no cell expects {status}: {answer:?}"),
    };
    assert!(!answer.done, "{answer:?}");
    let said = answer.error.as_ref().map(|error| &error["code"]);
    assert_eq!(said.and_then(Value::as_str), Some(code), "{answer:?}");
    // A stream that has begun says it in an event.
    assert!([status, 200].contains(&answer.status), "{answer:?}");
}

/// The longest time without a token since the fault.
pub(crate) fn longest_gap<'a>(answers: impl IntoIterator<Item = &'a Answer>) -> Duration {
    let gaps = answers.into_iter().map(|answer| answer.longest_gap);
    gaps.max().unwrap_or_default()
}
