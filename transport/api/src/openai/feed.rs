//! The events of one request, whatever the number of its prompts: merged, checked, and ended exactly once.

use std::future::poll_fn;
use std::task::{Context, Poll};

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

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
        let deadline = self.deadline;
        // What is ready is not looked at any more: a client that reads slowly, or a service that never stops, ends here too.
        if Instant::now() >= deadline {
            return Some(self.fail(FailureKind::Expired, "the request's deadline passed"));
        }
        let until = quiet_at.map_or(deadline, |at| at.min(deadline));
        match timeout_at(until, poll_fn(|cx| self.poll_step(cx))).await {
            Ok(step) => Some(step),
            Err(_) if until < deadline => None,
            Err(_) => Some(self.fail(FailureKind::Expired, "the request's deadline passed")),
        }
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
            while let Poll::Ready(event) = self.parts[at].generation.events.poll_recv(cx) {
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
