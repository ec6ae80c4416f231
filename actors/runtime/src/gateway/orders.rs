//! What operators want of workers: orders that are sent and not answered yet.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ractor::concurrency::{OneshotReceiver, OneshotSender, oneshot};
use room::NodeId;

/// Orders that may be under way at a time. Operators are few.
const MOST: usize = 64;

/// How long a worker may take to answer: longer than its pool may take to say whether it allows a role.
pub(super) const ORDER_PATIENCE: Duration = Duration::from_millis(4_500);

/// Why a worker does not do what an operator wants.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// No worker of that name is linked with this gateway.
    #[error("no worker of that name is linked with this gateway")]
    NotLinked,
    /// The worker does not know orders.
    #[error(
        "it is of an older version, which takes no orders: stop its process (SIGTERM), which drains it, and start one of this version"
    )]
    TooOld,
    /// It says so itself.
    #[error("{0}")]
    Refused(String),
    /// Its link ended before it answered. It may do it all the same.
    #[error("its link ended before it answered")]
    Unlinked,
    /// It did not answer in time. It may do it all the same.
    #[error("it did not answer within {waited_ms} ms")]
    NoAnswer {
        /// How long was waited.
        waited_ms: u64,
    },
    /// Too many others wait for an answer.
    #[error("{MOST} orders are not answered yet, which is the limit")]
    TooMany,
}

type Answer = Result<(), String>;

#[derive(Debug)]
struct Asked {
    worker: NodeId,
    answer: OneshotSender<Answer>,
}

#[derive(Debug, Default)]
struct Pending {
    last: u64,
    asked: BTreeMap<u64, Asked>,
}

/// Those that wait for an answer.
#[derive(Debug, Default)]
pub(crate) struct Orders(Mutex<Pending>);

impl Orders {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new order's number, and where its answer comes; none if there are too many.
    pub(super) fn ask(&self, worker: NodeId) -> Option<(u64, OneshotReceiver<Answer>)> {
        let mut pending = self.lock();
        // Whoever has asked has gone.
        pending.asked.retain(|_, asked| !asked.answer.is_closed());
        if pending.asked.len() >= MOST {
            return None;
        }
        let (answer, answered) = oneshot();
        pending.last += 1;
        let n = pending.last;
        pending.asked.insert(n, Asked { worker, answer });
        Some((n, answered))
    }

    /// The worker answers. What nobody has asked it changes nothing.
    pub(super) fn answered(&self, worker: NodeId, n: u64, answer: Answer) {
        let mut pending = self.lock();
        let is_its = pending.asked.get(&n).is_some_and(|asked| asked.worker == worker);
        let asked = is_its.then(|| pending.asked.remove(&n)).flatten();
        drop(pending);
        if let Some(asked) = asked {
            // Nobody waits any more if this fails.
            let _ = asked.answer.send(answer);
        }
    }

    /// It answers nothing any more.
    pub(super) fn unlinked(&self, worker: NodeId) {
        self.lock().asked.retain(|_, asked| asked.worker != worker);
    }
}

#[cfg(test)]
mod tests {
    use room::NodeId;

    use super::{MOST, Orders};

    const WORKER: NodeId = NodeId(1);

    #[test]
    fn an_answer_is_taken_from_whoever_was_asked() {
        let orders = Orders::default();
        let (n, mut answered) = orders.ask(WORKER).expect("there is room");
        orders.answered(NodeId(2), n, Ok(()));
        orders.answered(WORKER, n + 1, Ok(()));
        assert!(answered.try_recv().is_err(), "nobody has answered");
        orders.answered(WORKER, n, Err("no".to_owned()));
        assert_eq!(answered.try_recv(), Ok(Err("no".to_owned())));
        orders.answered(WORKER, n, Ok(()));
    }

    #[tokio::test]
    async fn whose_link_ends_answers_nothing() {
        let orders = Orders::default();
        let (_, lost) = orders.ask(WORKER).expect("there is room");
        let (n, other) = orders.ask(NodeId(2)).expect("there is room");
        orders.unlinked(WORKER);
        orders.answered(NodeId(2), n, Ok(()));
        assert!(lost.await.is_err());
        assert_eq!(other.await, Ok(Ok(())));
    }

    #[test]
    fn orders_are_bounded_by_those_who_wait() {
        let orders = Orders::default();
        let mut waiting: Vec<_> = (0..MOST)
            .map(|_| orders.ask(WORKER).expect("there is room"))
            .collect();
        assert!(orders.ask(WORKER).is_none());
        waiting.pop();
        assert!(orders.ask(WORKER).is_some(), "whoever has gone makes room");
    }
}
