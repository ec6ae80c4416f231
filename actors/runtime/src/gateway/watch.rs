//! The supervisor's timers: one table, on a task of its own that does no I/O and is in nobody's loop.
//!
//! A request's actor re-arms its entry after every message, under a short lock. The task wakes for the earliest deadline and tells the
//! supervisor, whose timeout message to the actor is what a lost abort becomes.
//!
//! An actor that hangs may hang on the very thread that waits for the runtime's sockets and timers, and then no other thread takes
//! these over by itself. A thread outside of the runtime therefore wakes the timer task now and then: whoever runs that looks after
//! sockets and timers next.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use room::{Alarm, Span, Time, WatchTable};
use tokio::sync::Notify;
use tokio::time::sleep_until;
use tracing::warn;

use super::shared::RequestId;
use crate::beside::is_single_threaded;
use crate::clock::Clock;

/// Between two pulses from outside of the runtime.
const PULSE: Duration = Duration::from_millis(250);

/// The table, shared by the supervisor, the request actors and the timer task.
#[derive(Debug)]
pub(crate) struct Watch {
    table: Mutex<WatchTable<RequestId>>,
    /// Told when a deadline became the earliest, and now and then.
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
        if planted!(DeadlineInGuardedLoop) {
            return;
        }
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

    /// Whether the request has a deadline armed.
    pub(crate) fn is_armed(&self, request: RequestId) -> bool {
        self.with(|table| table.is_watched(request))
    }

    /// How many requests have a deadline armed.
    pub(crate) fn armed(&self) -> usize {
        self.with(|table| table.len())
    }

    /// Spawns the timer task; it ends when the table is dropped. `ring` must not block.
    pub(crate) fn spawn(self: &Arc<Self>, clock: Clock, ring: impl Fn(Alarm<RequestId>) + Send + 'static) {
        let table = Arc::downgrade(self);
        if !is_single_threaded() {
            Self::spawn_pulse(Weak::clone(&table));
        }
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

    /// Ends with the table. A runtime of one thread has nobody who could take over.
    fn spawn_pulse(table: Weak<Self>) {
        let pulse = move || {
            while let Some(watch) = table.upgrade() {
                watch.earlier.notify_one();
                drop(watch);
                thread::sleep(PULSE);
            }
        };
        if let Err(error) = thread::Builder::new().name("watch".into()).spawn(pulse) {
            warn!(%error, "no thread for the pulse of the timers: an actor that hangs may take them along");
        }
    }

    fn due(table: &Weak<Self>, clock: Clock) -> Option<Vec<Alarm<RequestId>>> {
        let now = clock.now();
        let watch = table.upgrade()?;
        Some(watch.with(|table| std::iter::from_fn(|| table.poll_alarm(now)).collect()))
    }
}
