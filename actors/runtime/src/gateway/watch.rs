//! The supervisor's timers: one table, on a task of its own that does no I/O and is in nobody's loop.
//!
//! A request's actor re-arms its entry after every message, under a short lock. The task wakes for the earliest deadline and tells the
//! supervisor, whose timeout message to the actor is what a lost abort becomes.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use room::{Alarm, Span, Time, WatchTable};
use tokio::sync::Notify;
use tokio::time::sleep_until;

use super::shared::RequestId;
use crate::clock::Clock;

/// The table, shared by the supervisor, the request actors and the timer task.
#[derive(Debug)]
pub(crate) struct Watch {
    table: Mutex<WatchTable<RequestId>>,
    /// Told when a deadline became the earliest.
    earlier: Notify,
}

impl Watch {
    /// An empty table; an actor that does not answer its timeout within `grace` is to be killed.
    pub(crate) fn new(grace: Span) -> Arc<Self> {
        Arc::new(Self {
            table: Mutex::new(WatchTable::new(grace)),
            earlier: Notify::new(),
        })
    }

    fn with<R>(&self, f: impl FnOnce(&mut WatchTable<RequestId>) -> R) -> R {
        f(&mut self.table.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Arms or moves a request's deadline.
    pub(crate) fn arm(&self, request: RequestId, at: Time) {
        let is_earliest = self.with(|table| {
            let before = table.poll_timeout();
            table.arm(request, at);
            before.is_none_or(|before| at < before)
        });
        if is_earliest {
            self.earlier.notify_one();
        }
    }

    /// Forgets a request.
    pub(crate) fn disarm(&self, request: RequestId) {
        self.with(|table| table.disarm(request));
    }

    /// Spawns the timer task; it ends when the table is dropped. `ring` must not block.
    pub(crate) fn spawn(self: &Arc<Self>, clock: Clock, ring: impl Fn(Alarm<RequestId>) + Send + 'static) {
        let table = Arc::downgrade(self);
        tokio::spawn(async move {
            while let Some(due) = Self::due(&table, clock) {
                due.into_iter().for_each(&ring);
                let Some(watch) = table.upgrade() else { return };
                // At least once a second, so that the task sees the table's end.
                let second = clock.now() + Span::from_millis(1_000);
                let next = watch
                    .with(|table| table.poll_timeout())
                    .map_or(second, |next| next.min(second));
                tokio::select! {
                    biased;
                    () = watch.earlier.notified() => {}
                    () = sleep_until(clock.instant(next)) => {}
                }
            }
        });
    }

    fn due(table: &Weak<Self>, clock: Clock) -> Option<Vec<Alarm<RequestId>>> {
        let now = clock.now();
        let watch = table.upgrade()?;
        Some(watch.with(|table| std::iter::from_fn(|| table.poll_alarm(now)).collect()))
    }
}
