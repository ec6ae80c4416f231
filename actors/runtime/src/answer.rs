//! The way from a request actor to whoever waits for the answer.
//!
//! A queue of our own rather than a channel, for three reasons: tokens that arrive while the reader is slow are merged into one
//! event, so that the queue is bounded by the length of the answer; the first terminal event of a room wins, whoever sends it
//! (its actor, or the supervisor that buried the actor), and nothing follows it (INV-05); and the reader's wait has a deadline of
//! its own, so that even a lost owner ends it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use room::{AbortBy, Failure, Outcome};
use tokio::sync::Notify;
use tokio::time::Instant;
use wire::TokenOut;

/// What the reader of an answer sees.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerEvent {
    /// More of one room's answer, in order.
    Tokens {
        /// Which of the request's rooms, counted from 0.
        index: usize,
        /// The tokens.
        tokens: Vec<TokenOut>,
    },
    /// The room's one outcome. Nothing follows for this index.
    Ended {
        /// Which of the request's rooms.
        index: usize,
        /// Its outcome.
        outcome: Outcome,
    },
}

#[derive(Debug)]
struct State {
    queue: VecDeque<AnswerEvent>,
    ended: Vec<bool>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    ready: Notify,
}

impl Shared {
    fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The writing end; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct AnswerSink(Arc<Shared>);

/// The reading end. Dropping it before every room has ended aborts the request.
pub(crate) struct AnswerStream {
    shared: Arc<Shared>,
    give_up_at: Instant,
    abort: Box<dyn Fn(AbortBy) + Send + Sync>,
}

/// Makes the two ends for a request of `rooms` rooms. The reader gives up at `give_up_at`; `abort` tells the owner that nobody
/// reads any more.
pub(crate) fn answer(
    rooms: usize,
    give_up_at: Instant,
    abort: Box<dyn Fn(AbortBy) + Send + Sync>,
) -> (AnswerSink, AnswerStream) {
    let state = State {
        queue: VecDeque::new(),
        ended: vec![false; rooms],
    };
    let shared = Arc::new(Shared {
        state: Mutex::new(state),
        ready: Notify::new(),
    });
    (
        AnswerSink(Arc::clone(&shared)),
        AnswerStream {
            shared,
            give_up_at,
            abort,
        },
    )
}

impl AnswerSink {
    /// Adds to the answer of room `index`; without effect once that room has ended.
    pub(crate) fn tokens(&self, index: usize, mut tokens: Vec<TokenOut>) {
        self.0.with(|state| {
            if tokens.is_empty() || state.ended.get(index) != Some(&false) {
                return;
            }
            let merged = state.queue.iter_mut().rev().find_map(|event| match event {
                AnswerEvent::Tokens { index: i, tokens } if *i == index => Some(tokens),
                _ => None,
            });
            match merged {
                Some(waiting) => waiting.append(&mut tokens),
                None => state.queue.push_back(AnswerEvent::Tokens { index, tokens }),
            }
        });
        self.0.ready.notify_one();
    }

    /// Ends room `index`. The first outcome wins; returns whether this one did.
    pub(crate) fn end(&self, index: usize, outcome: Outcome) -> bool {
        let first = self.0.with(|state| match state.ended.get_mut(index) {
            Some(ended) if !*ended => {
                *ended = true;
                state.queue.push_back(AnswerEvent::Ended { index, outcome });
                true
            }
            _ => false,
        });
        self.0.ready.notify_one();
        first
    }
}

impl AnswerStream {
    /// The next event; `None` when every room has ended and all was read. Cancel-safe.
    ///
    /// Never waits beyond the request's deadline and a grace: a room that nobody ended by then is reported as
    /// [`Failure::OwnerLost`].
    pub(crate) async fn next(&mut self) -> Option<AnswerEvent> {
        loop {
            let ready = self.shared.ready.notified();
            if let Some(next) = self.shared.with(Self::take) {
                return next;
            }
            if tokio::time::timeout_at(self.give_up_at, ready).await.is_err() {
                let sink = AnswerSink(Arc::clone(&self.shared));
                let rooms = self.shared.with(|state| state.ended.len());
                for index in 0..rooms {
                    sink.end(index, Outcome::Failed(Failure::OwnerLost));
                }
            }
        }
    }

    /// `Some(Some(event))`, `Some(None)` at the end, `None` when there is nothing yet.
    fn take(state: &mut State) -> Option<Option<AnswerEvent>> {
        match state.queue.pop_front() {
            Some(event) => Some(Some(event)),
            None => state.ended.iter().all(|ended| *ended).then_some(None),
        }
    }
}

impl Drop for AnswerStream {
    fn drop(&mut self) {
        if !self.shared.with(|state| state.ended.iter().all(|ended| *ended)) {
            (self.abort)(AbortBy::ClientGone);
        }
    }
}
