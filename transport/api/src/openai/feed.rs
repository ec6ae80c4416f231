//! The events of one request, whatever the number of its prompts: merged, checked, and ended exactly once.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep_until};

use super::shape::Usage;
use crate::submit::{Event, Failure, FailureKind, FinishReason, Generation, TokenLogprob};

/// What comes next. After `Failed` or `End` nothing does, and the generations have been dropped.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    Text {
        index: u32,
        text: String,
        logprobs: Vec<TokenLogprob>,
    },
    Done {
        index: u32,
        finish: FinishReason,
    },
    Failed(Failure),
    End,
}

/// The running generations of one request. Dropping it is the abort.
pub(crate) struct Feed {
    parts: Vec<Part>,
    /// Which part to ask first, so that a busy one starves no other.
    turn: usize,
    deadline: Instant,
    patience: Patience,
    usage: Usage,
    request_id: String,
    ended: bool,
    _permit: OwnedSemaphorePermit,
}

struct Part {
    generation: Generation,
    /// The index of this prompt's first continuation in the answer.
    first: u32,
    /// Which continuations have not ended.
    open: Vec<bool>,
    cached_tokens: u32,
}

impl Feed {
    pub(crate) fn new(
        generations: Vec<Generation>,
        n: u32,
        deadline: Instant,
        request_id: String,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let mut usage = Usage::default();
        let mut parts = Vec::with_capacity(generations.len());
        let mut first = 0;
        for generation in generations {
            usage.prompt_tokens = usage.prompt_tokens.saturating_add(generation.prompt_tokens);
            parts.push(Part {
                generation,
                first,
                open: vec![true; n as usize],
                cached_tokens: 0,
            });
            first += n;
        }
        Self {
            parts,
            turn: 0,
            deadline,
            patience: Patience::default(),
            usage,
            request_id,
            ended: false,
            _permit: permit,
        }
    }

    /// The ids of all rooms, separated by commas.
    pub(crate) fn rooms(&self) -> String {
        let ids: Vec<&str> = self
            .parts
            .iter()
            .flat_map(|part| part.generation.room_ids.iter().map(String::as_str))
            .collect();
        ids.join(",")
    }

    /// The span of the request; of several prompts that of the first, as each is a request of its own.
    pub(crate) fn traceparent(&self) -> Option<String> {
        self.parts.first()?.generation.traceparent.clone()
    }

    /// The tokens of all prompts and continuations so far.
    pub(crate) fn usage(&self) -> Usage {
        self.usage
    }

    /// Waits for the next step; `None` if there was none by `quiet_at`. Always resolves by the deadline.
    pub(crate) async fn next(&mut self, quiet_at: Option<Instant>) -> Option<Step> {
        let until = quiet_at.map_or(self.deadline, |at| at.min(self.deadline));
        poll_fn(|cx| {
            if let Some(step) = self.now(cx) {
                return Poll::Ready(Some(step));
            }
            if self.patience.poll(cx, until).is_pending() {
                return Poll::Pending;
            }
            Poll::Ready((until >= self.deadline).then(|| self.expired()))
        })
        .await
    }

    /// The next step if there is one; whoever has to wait is woken for it.
    pub(crate) async fn next_now(&mut self) -> Option<Step> {
        poll_fn(|cx| Poll::Ready(self.now(cx))).await
    }

    fn now(&mut self, cx: &mut Context<'_>) -> Option<Step> {
        // What is ready is not looked at any more: a client that reads slowly, or a service that never stops, ends here too.
        if Instant::now() >= self.deadline {
            return Some(self.expired());
        }
        match self.poll_step(cx) {
            Poll::Ready(step) => Some(step),
            Poll::Pending => None,
        }
    }

    fn expired(&mut self) -> Step {
        self.fail(FailureKind::Expired, "the request's deadline passed")
    }

    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        if self.parts.iter().all(Part::is_done) {
            self.end();
            return Poll::Ready(Step::End);
        }
        let parts = self.parts.len();
        let turn = self.turn;
        for at in (turn..turn + parts).map(|at| at % parts) {
            if self.parts[at].is_done() {
                continue;
            }
            while let Poll::Ready(event) = self.parts[at].generation.events.as_mut().poll_next(cx) {
                self.turn = at + 1;
                let Some(event) = event else {
                    let lost = "the server lost this request before it was complete";
                    return Poll::Ready(self.fail(FailureKind::Internal, lost));
                };
                if let Some(step) = self.accept(at, event) {
                    return Poll::Ready(step);
                }
            }
        }
        Poll::Pending
    }

    /// Turns an event into a step; nothing comes of an event for a continuation that is not open.
    fn accept(&mut self, at: usize, event: Event) -> Option<Step> {
        let part = &mut self.parts[at];
        let (Event::Text { index, .. } | Event::Done { index, .. } | Event::Failed { index, .. }) = event;
        let Some(open) = part.open.get_mut(index as usize).filter(|open| **open) else {
            tracing::warn!(request_id = %self.request_id, index, "dropped an event of no open continuation");
            return None;
        };
        let first = part.first;
        match event {
            Event::Text {
                index,
                text,
                logprobs,
            } => Some(Step::Text {
                index: first + index,
                text,
                logprobs,
            }),
            Event::Done {
                index,
                finish,
                completion_tokens,
                cached_tokens,
            } => {
                *open = false;
                // The prompt counts once, so what was found of it counts once: the best of its continuations.
                let more = cached_tokens.saturating_sub(part.cached_tokens);
                part.cached_tokens += more;
                self.usage.cached_tokens = self.usage.cached_tokens.saturating_add(more);
                self.usage.completion_tokens = self.usage.completion_tokens.saturating_add(completion_tokens);
                Some(Step::Done {
                    index: first + index,
                    finish,
                })
            }
            Event::Failed { failure, .. } => {
                let (kind, phase) = (failure.kind.name(), failure.phase.as_deref());
                tracing::info!(request_id = %self.request_id, kind, phase, "a request failed");
                self.end();
                Some(Step::Failed(failure))
            }
        }
    }

    fn fail(&mut self, kind: FailureKind, message: &str) -> Step {
        self.end();
        Step::Failed(Failure {
            kind,
            message: message.to_owned(),
            phase: None,
        })
    }

    /// Ends the generations: nothing comes after this.
    pub(crate) fn end(&mut self) {
        self.parts.clear();
        self.ended = true;
    }
}

/// A wait for a time that moves on with every step: its timer is set once, and again only when it has rung too early.
#[derive(Default)]
struct Patience(Option<Pin<Box<Sleep>>>);

impl Patience {
    /// Ready from `until` on.
    fn poll(&mut self, cx: &mut Context<'_>, until: Instant) -> Poll<()> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if sleep.deadline() > until {
            sleep.as_mut().reset(until);
        }
        loop {
            if sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if sleep.deadline() >= until {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(until);
        }
    }
}

impl Part {
    fn is_done(&self) -> bool {
        self.open.iter().all(|open| !open)
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        if !self.ended {
            tracing::info!(request_id = %self.request_id, status = 499, "an answer was broken off: its client left or was too slow, or the doors closed");
        }
    }
}
