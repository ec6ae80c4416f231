//! Turns a gateway's answer into what the door sends, where it is sent: in the task of the client's connection. Ends with the answer, or when
//! the door drops it.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use api::{Event, Failure, FailureKind, FinishReason, GenerateRequest};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, Stream};
use model::Tokenizer;
use room::{Finish, Outcome};
use runtime::{Answer, AnswerEvent};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::outcome;
use crate::keys::Visit;
use crate::text::TextStream;

/// An answer as the door's events. Dropping it drops the answer, which aborts what has not ended.
///
/// A client that reads slowly pauses its own answer: nothing is asked for here before the last event was taken, and so counts as unread. It
/// may do so until the request's deadline, unless the door finds that it takes nothing at all.
pub(super) struct Relay {
    answer: Answer,
    texts: Vec<TextStream>,
    /// What the last event of the answer has come to.
    relayed: VecDeque<Event>,
    timeout: Duration,
    /// The key it came with, where keys are asked for.
    key: Option<Key>,
    /// The key is no longer good: the answer ended with that.
    withdrawn: bool,
    _guest: TaskTrackerToken,
}

/// What is charged for the answer, and ends it.
struct Key {
    visit: Arc<Visit>,
    withdrawn: BoxFuture<'static, ()>,
}

impl Key {
    fn new(visit: Arc<Visit>) -> Self {
        let watched = Arc::clone(&visit);
        Self {
            visit,
            withdrawn: Box::pin(async move { watched.withdrawn().await }),
        }
    }
}

impl Relay {
    /// `guest`: as long as somebody may read the answer.
    pub(super) fn new(
        answer: Answer,
        tokenizer: &Arc<Tokenizer>,
        request: &GenerateRequest,
        visit: Option<Arc<Visit>>,
        guest: TaskTrackerToken,
    ) -> Self {
        let texts = (0..request.n).map(|_| TextStream::new(tokenizer, &request.stop));
        Self {
            answer,
            texts: texts.collect(),
            relayed: VecDeque::new(),
            timeout: request.timeout,
            key: visit.map(Key::new),
            withdrawn: false,
            _guest: guest,
        }
    }

    /// What there is to say of an event; nothing of one that comes after a stop string.
    fn relay(&mut self, event: AnswerEvent) {
        let (AnswerEvent::Tokens { index, .. } | AnswerEvent::Ended { index, .. }) = event;
        if let (Some(key), AnswerEvent::Tokens { tokens, .. }) = (&self.key, &event) {
            key.visit.charge(number(tokens.len()));
        }
        let Some(text) = self.texts.get_mut(index).filter(|text| !text.stopped()) else {
            return;
        };
        match event {
            AnswerEvent::Tokens { tokens, .. } => {
                let piece = text.push(&tokens);
                self.relayed.push_back(Event::Text {
                    index: number(index),
                    text: piece.text,
                    logprobs: piece.logprobs,
                });
                if piece.stopped {
                    self.answer.stop_string_found(index);
                    let cached = cached_tokens(&self.answer, index);
                    self.relayed
                        .push_back(done(index, FinishReason::Stop, text, cached));
                }
            }
            AnswerEvent::Ended { outcome, .. } => {
                let ended = ended(&self.answer, index, outcome, text, self.timeout);
                self.relayed.extend(ended);
            }
        }
    }
}

impl Stream for Relay {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        loop {
            if let Some(event) = self.relayed.pop_front() {
                return Poll::Ready(Some(event));
            }
            if self.withdrawn {
                return Poll::Ready(None);
            }
            if self
                .key
                .as_mut()
                .is_some_and(|key| key.withdrawn.poll_unpin(cx).is_ready())
            {
                self.withdrawn = true;
                return Poll::Ready(Some(no_longer_good()));
            }
            // Bounded by the request's deadline: see `Answer::next`.
            let Some(event) = ready!(self.answer.poll_next(cx)) else {
                return Poll::Ready(None);
            };
            // The connection's other requests have no part in it: to the door, this one's answer ends too early.
            if catch_unwind(AssertUnwindSafe(|| self.relay(event))).is_err() {
                return Poll::Ready(None);
            }
        }
    }
}

fn no_longer_good() -> Event {
    let failure = Failure {
        kind: FailureKind::Cancelled,
        message: "the key of this request is no longer good".to_owned(),
        phase: None,
    };
    Event::Failed { index: 0, failure }
}

/// Tokens of the prompt that were in a cache before this request came. What its later rooms find there may be its first one's own work.
fn cached_tokens(answer: &Answer, index: usize) -> u32 {
    if index == 0 {
        answer.cached_tokens(index)
    } else {
        0
    }
}

fn ended(
    answer: &Answer,
    index: usize,
    outcome: Outcome,
    text: &mut TextStream,
    timeout: Duration,
) -> Vec<Event> {
    if let Some(failure) = outcome::failure(outcome, answer.ended_in(index), timeout) {
        return vec![Event::Failed {
            index: number(index),
            failure,
        }];
    }
    let finish = match outcome {
        Outcome::Completed(Finish::Length) => FinishReason::Length,
        _ => FinishReason::Stop,
    };
    let rest = text.finish();
    let mut relayed = Vec::new();
    if !rest.is_empty() {
        relayed.push(Event::Text {
            index: number(index),
            text: rest,
            logprobs: Vec::new(),
        });
    }
    relayed.push(done(index, finish, text, cached_tokens(answer, index)));
    relayed
}

fn done(index: usize, finish: FinishReason, text: &TextStream, cached_tokens: u32) -> Event {
    Event::Done {
        index: number(index),
        finish,
        completion_tokens: text.tokens(),
        cached_tokens,
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
