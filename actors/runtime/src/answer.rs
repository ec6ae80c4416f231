//! The way from a request actor to whoever waits for the answer.
//!
//! A queue of our own rather than a channel, for three reasons: tokens that arrive while the reader is slow are merged into one
//! event, and counted as unread until the reader asks for more, by which the answer's owner decides how far it may be computed; the
//! first terminal event of a room wins, whoever sends it (its actor, or the supervisor that buried the actor), and nothing follows it
//! (INV-05); and the reader's wait has a deadline of its own, so that even a lost owner ends it.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use room::{Failure, Outcome, PhaseKind};
use tokio::time::{Instant, Sleep, sleep_until};
use wire::TokenOut;

use crate::convert;

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
    /// By room.
    passed: Vec<Passed>,
    /// Of the reader that waits for an event.
    reader: Option<Waker>,
}

/// What of one room's answer has come through here.
#[derive(Clone, Debug, Default)]
struct Passed {
    ended: bool,
    /// Its reader gave up by itself, and nobody has told of that.
    given_up: bool,
    /// Where it was then.
    ended_in: Option<PhaseKind>,
    /// Tokens that the reader was given.
    given: u32,
    /// Of those, what it was given before its last call for more.
    read: u32,
    /// Of those, what the owner was told of last.
    told: u32,
    /// Tokens of the prompt that were found in a cache.
    cached: u32,
}

impl State {
    fn gives(&mut self, event: &AnswerEvent) {
        if let AnswerEvent::Tokens { index, tokens } = event
            && let Some(room) = self.passed.get_mut(*index)
        {
            room.given = room.given.saturating_add(convert::count(tokens.len()));
        }
    }

    /// What was given is read; whether the owner of some room is to hear so.
    fn asks_for_more(&mut self, step: u32) -> bool {
        let mut due = false;
        for room in &mut self.passed {
            room.read = room.given;
            if room.read.saturating_sub(room.told) >= step {
                room.told = room.read;
                due = true;
            }
        }
        due
    }

    fn has_ended(&self) -> bool {
        self.passed.iter().all(|room| room.ended)
    }
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
}

impl Shared {
    fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// There may be something for the reader.
    fn wake(&self) {
        if let Some(reader) = self.with(|state| state.reader.take()) {
            reader.wake();
        }
    }

    /// The first outcome of a room wins; returns whether this one did.
    fn end(&self, index: usize, outcome: Outcome) -> bool {
        let is_success = matches!(outcome, Outcome::Completed(_));
        let first = self.with(|state| match state.passed.get_mut(index) {
            Some(room) if !room.ended || planted!(SuccessOverwritesAbort) && is_success => {
                room.ended = true;
                state.queue.push_back(AnswerEvent::Ended { index, outcome });
                true
            }
            _ => false,
        });
        self.wake();
        first
    }

    /// Ends every room that has not ended: its owner is lost.
    fn abandon(&self) {
        let rooms = self.with(|state| state.passed.len());
        for index in 0..rooms {
            if self.end(index, LOST) {
                self.with(|state| state.passed[index].given_up = true);
            }
        }
    }
}

/// What a reader is told that gives up.
const LOST: Outcome = Outcome::Failed(Failure::OwnerLost);

/// The writing end; cheap to clone. With the last clone every room that has not ended fails: nobody is left who could end it.
#[derive(Clone, Debug)]
pub(crate) struct AnswerSink(Arc<Writer>);

#[derive(Debug)]
struct Writer(Arc<Shared>);

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// What the reader has to say to the owner.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(crate) enum FromReader {
    /// It has read more: how much in all is in [`AnswerSink::read`].
    Read,
    /// It left before every room had ended.
    Gone,
}

/// How the owner is told.
pub(crate) type TellOwner = Box<dyn Fn(FromReader) + Send + Sync>;

/// How long after its time a reader waits yet, from when it is awake. A process that has stood still wakes all of its timers at once, in
/// any order, the owner's among them: it is the owner that says how a room ended, if it can.
const LAST_CHANCE: Duration = Duration::from_millis(200);

/// The reading end. Dropping it before every room has ended aborts the request.
pub(crate) struct AnswerStream {
    shared: Arc<Shared>,
    /// What it was given last it has done with, and it was told so.
    asks: bool,
    give_up_at: Instant,
    /// Rings at `give_up_at`; none before it has waited.
    patience: Option<Pin<Box<Sleep>>>,
    /// Its time is over, and only [`LAST_CHANCE`] is left.
    overdue: bool,
    read_step: u32,
    tell: TellOwner,
}

/// Makes the two ends for a request of `rooms` rooms. The reader gives up at `give_up_at`; the owner is told of every `read_step` tokens
/// of a room that were read, and when nobody reads any more.
pub(crate) fn answer(
    rooms: usize,
    give_up_at: Instant,
    read_step: u32,
    tell: TellOwner,
) -> (AnswerSink, AnswerStream) {
    let state = State {
        queue: VecDeque::new(),
        passed: vec![Passed::default(); rooms],
        reader: None,
    };
    let shared = Arc::new(Shared {
        state: Mutex::new(state),
    });
    (
        AnswerSink(Arc::new(Writer(Arc::clone(&shared)))),
        AnswerStream {
            shared,
            asks: false,
            give_up_at,
            patience: None,
            overdue: false,
            read_step,
            tell,
        },
    )
}

impl AnswerSink {
    /// Adds to the answer of room `index`; without effect once that room has ended.
    pub(crate) fn tokens(&self, index: usize, mut tokens: Vec<TokenOut>) {
        let shared = &self.0.0;
        shared.with(|state| {
            if tokens.is_empty() || state.passed.get(index).is_none_or(|room| room.ended) {
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
        shared.wake();
    }

    /// So many tokens of the prompt of room `index` were found in a cache.
    pub(crate) fn found(&self, index: usize, tokens: u32) {
        self.0.0.with(|state| {
            if let Some(room) = state.passed.get_mut(index) {
                room.cached = tokens;
            }
        });
    }

    /// So many tokens of room `index` have been read.
    pub(crate) fn read(&self, index: usize) -> u32 {
        self.0
            .0
            .with(|state| state.passed.get(index).map_or(0, |room| room.read))
    }

    /// Ends room `index`, which was in this phase. The first outcome wins. Returns the one that won, if nobody has told of it yet: this one,
    /// or the one that a reader gave itself.
    pub(crate) fn end(&self, index: usize, outcome: Outcome, ended_in: Option<PhaseKind>) -> Option<Outcome> {
        let shared = &self.0.0;
        shared.with(|state| {
            if let Some(room) = state.passed.get_mut(index).filter(|room| !room.ended) {
                room.ended_in = ended_in;
            }
        });
        if shared.end(index, outcome) {
            return Some(outcome);
        }
        shared.with(|state| {
            let room = state.passed.get_mut(index)?;
            std::mem::take(&mut room.given_up).then_some(LOST)
        })
    }
}

impl AnswerStream {
    /// The next event; `None` when every room has ended and all was read.
    ///
    /// Never waits beyond the request's deadline and a grace: a room that nobody ended by then is reported as
    /// [`Failure::OwnerLost`].
    ///
    /// Whoever asks for more has done with what it was given: that is then counted as read.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<AnswerEvent>> {
        if !std::mem::replace(&mut self.asks, true)
            && self.shared.with(|state| state.asks_for_more(self.read_step))
        {
            (self.tell)(FromReader::Read);
        }
        loop {
            let next = self.shared.with(|state| {
                let next = Self::take(state);
                if next.is_none() {
                    state.reader = Some(cx.waker().clone());
                }
                next
            });
            if let Some(next) = next {
                self.asks = false;
                return Poll::Ready(next);
            }
            let give_up_at = self.give_up_at;
            let patience = self
                .patience
                .get_or_insert_with(|| Box::pin(sleep_until(give_up_at)));
            ready!(patience.as_mut().poll(cx));
            if self.overdue {
                self.shared.abandon();
            } else {
                self.overdue = true;
                self.give_up_at = Instant::now() + LAST_CHANCE;
                patience.as_mut().reset(self.give_up_at);
            }
        }
    }

    /// The same for whoever waits for nothing else. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<AnswerEvent> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Tokens of the prompt that room `index` found in a cache, as far as is known by now.
    pub(crate) fn cached_tokens(&self, index: usize) -> u32 {
        self.shared
            .with(|state| state.passed.get(index).map_or(0, |room| room.cached))
    }

    /// The phase that room `index` was in when its outcome was fixed, once that is known.
    pub(crate) fn ended_in(&self, index: usize) -> Option<PhaseKind> {
        self.shared
            .with(|state| state.passed.get(index).and_then(|room| room.ended_in))
    }

    /// `Some(Some(event))`, `Some(None)` at the end, `None` when there is nothing yet.
    fn take(state: &mut State) -> Option<Option<AnswerEvent>> {
        match state.queue.pop_front() {
            Some(event) => {
                state.gives(&event);
                Some(Some(event))
            }
            None => state.has_ended().then_some(None),
        }
    }
}

impl Drop for AnswerStream {
    fn drop(&mut self) {
        if planted!(DisconnectIgnored) {
            return;
        }
        if !self.shared.with(|state| state.has_ended()) {
            (self.tell)(FromReader::Gone);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use room::{Failure, Finish, Outcome, PhaseKind};
    use tokio::time::Instant;
    use wire::TokenOut;

    use super::{AnswerEvent, AnswerSink, AnswerStream, FromReader, answer};

    const WHOLE: Outcome = Outcome::Completed(Finish::Stop);
    const LOST: Outcome = Outcome::Failed(Failure::OwnerLost);

    fn tokens(tokens: &[u32]) -> Vec<TokenOut> {
        let out = |token: &u32| TokenOut {
            token: *token,
            logprobs: None,
        };
        tokens.iter().map(out).collect()
    }

    fn ended(index: usize, outcome: Outcome) -> AnswerEvent {
        AnswerEvent::Ended { index, outcome }
    }

    fn more(index: usize, more: &[u32]) -> AnswerEvent {
        let tokens = tokens(more);
        AnswerEvent::Tokens { index, tokens }
    }

    /// What a reader of two rooms sees of what `write` does, and how often the owner was told that nobody reads.
    async fn check(
        patience: Duration,
        write: impl FnOnce(AnswerSink) -> Option<AnswerSink>,
        seen: &[AnswerEvent],
        aborts: usize,
    ) {
        let told = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&told);
        let tell = move |said| {
            assert_eq!(said, FromReader::Gone);
            count.fetch_add(1, Ordering::Relaxed);
        };
        let (sink, mut stream): (AnswerSink, AnswerStream) =
            answer(2, Instant::now() + patience, u32::MAX, Box::new(tell));
        let kept = write(sink);
        for event in seen {
            assert_eq!(stream.next().await.as_ref(), Some(event));
        }
        if aborts == 0 {
            assert_eq!(stream.next().await, None);
        }
        drop(stream);
        assert_eq!(told.load(Ordering::Relaxed), aborts);
        drop(kept);
    }

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn tokens_are_merged_and_the_first_outcome_wins() {
        let write = |sink: AnswerSink| {
            sink.tokens(0, tokens(&[1]));
            sink.tokens(1, tokens(&[7]));
            sink.tokens(0, tokens(&[2, 3]));
            assert_eq!(sink.end(0, WHOLE, None), Some(WHOLE));
            assert_eq!(sink.end(0, LOST, None), None);
            sink.tokens(0, tokens(&[4]));
            assert_eq!(sink.end(1, LOST, None), Some(LOST));
            Some(sink)
        };
        let seen = [
            more(0, &[1, 2, 3]),
            more(1, &[7]),
            ended(0, WHOLE),
            ended(1, LOST),
        ];
        check(LONG, write, &seen, 0).await;
    }

    #[tokio::test]
    async fn with_the_last_writer_every_room_ends() {
        let write = |sink: AnswerSink| {
            let other = sink.clone();
            drop(sink);
            other.tokens(1, tokens(&[7]));
            other.end(0, WHOLE, None);
            None
        };
        check(LONG, write, &[more(1, &[7]), ended(0, WHOLE), ended(1, LOST)], 0).await;
    }

    #[tokio::test]
    async fn a_reader_whose_time_is_over_gives_up() {
        let seen = [ended(0, LOST), ended(1, LOST)];
        check(Duration::ZERO, Some, &seen, 0).await;
    }

    /// The reader's turn comes first, the owner's next.
    #[tokio::test]
    async fn an_owner_that_stood_still_with_its_reader_has_the_word() {
        const EXPIRED: Outcome = Outcome::Expired(PhaseKind::Decoding);
        let write = |sink: AnswerSink| {
            let owner = sink.clone();
            tokio::spawn(async move {
                owner.end(0, EXPIRED, None);
                owner.end(1, EXPIRED, None);
            });
            Some(sink)
        };
        let seen = [ended(0, EXPIRED), ended(1, EXPIRED)];
        check(Duration::ZERO, write, &seen, 0).await;
    }

    /// What counts as read when a reader asks for the next event, and how often its owner has heard by then.
    #[tokio::test]
    async fn what_a_reader_is_done_with_is_read_and_told_by_steps() {
        let told = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&told);
        let tell = move |said| {
            if said == FromReader::Read {
                count.fetch_add(1, Ordering::Relaxed);
            }
        };
        let (sink, mut stream) = answer(2, Instant::now() + LONG, 3, Box::new(tell));
        let mut check = async |index, more: &[u32], read, times| {
            sink.tokens(index, tokens(more));
            assert!(stream.next().await.is_some());
            assert_eq!([sink.read(0), sink.read(1)], read);
            assert_eq!(told.load(Ordering::Relaxed), times);
        };
        check(0, &[1, 2], [0, 0], 0).await;
        check(1, &[7, 8], [2, 0], 0).await;
        check(0, &[3], [2, 2], 0).await;
        check(1, &[9, 10, 11, 12], [3, 2], 1).await;
        check(0, &[4], [3, 6], 2).await;
        check(0, &[5], [4, 6], 2).await;
        assert_eq!(sink.read(2), 0, "there is no such room");
    }

    #[tokio::test]
    async fn a_reader_that_leaves_early_aborts() {
        let write = |sink: AnswerSink| {
            sink.end(0, WHOLE, None);
            Some(sink)
        };
        check(LONG, write, &[ended(0, WHOLE)], 1).await;
    }
}
