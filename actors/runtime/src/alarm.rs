//! One armed time for one actor, kept on a task of its own so that it never sits in the loop it guards.
//!
//! The time moves on with almost every message of the actor's. The task is woken only if it has become earlier than what the task
//! sleeps for; a later one it sees when it wakes by itself, and sleeps on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use room::Time;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::sleep_until;

use crate::clock::Clock;

/// In place of a time: there is none.
const UNSET: u64 = u64::MAX;

/// Calls back when the time it was last set to has come. Dropping it ends its task.
#[derive(Debug)]
pub(crate) struct Alarm {
    times: Arc<Times>,
    task: JoinHandle<()>,
}

/// In microseconds of the clock. Either side writes its own before it reads the other's, so that one of the two sees that they differ.
#[derive(Debug)]
struct Times {
    /// What it is set to.
    set: AtomicU64,
    /// What the task sleeps for.
    awaited: AtomicU64,
    /// Told when `set` has become the earlier of the two.
    earlier: Notify,
}

impl Alarm {
    /// Spawns the task. `ring` must not block; it runs once for every time that comes, and the alarm is then unset.
    pub(crate) fn spawn(clock: Clock, ring: impl Fn() + Send + 'static) -> Self {
        let times = Arc::new(Times {
            set: AtomicU64::new(UNSET),
            awaited: AtomicU64::new(UNSET),
            earlier: Notify::new(),
        });
        let task = tokio::spawn(keep(Arc::clone(&times), clock, ring));
        Self { times, task }
    }

    /// Sets, moves or (`None`) unsets the time. Setting the same time again after it rang rings again.
    pub(crate) fn set(&self, time: Option<Time>) {
        let set = time.map_or(UNSET, |time| time.micros);
        self.times.set.store(set, Ordering::SeqCst);
        if set < self.times.awaited.load(Ordering::SeqCst) {
            self.times.earlier.notify_one();
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Sleeps and rings, for as long as the task is let.
async fn keep(times: Arc<Times>, clock: Clock, ring: impl Fn()) {
    let mut set = times.set.load(Ordering::SeqCst);
    loop {
        times.awaited.store(set, Ordering::SeqCst);
        let now_set = times.set.load(Ordering::SeqCst);
        if now_set < set {
            set = now_set;
            continue;
        }
        let time = Time { micros: set };
        tokio::select! {
            biased;
            // No deadline above this wait: it ends when the alarm is set or dropped, and both are ours.
            () = times.earlier.notified() => {}
            () = sleep_until(clock.instant(time)), if set != UNSET => {}
        }
        set = times.set.load(Ordering::SeqCst);
        if set == UNSET || clock.now() < (Time { micros: set }) {
            continue;
        }
        // Whoever has set another time meanwhile has set the alarm anew.
        let unset = times
            .set
            .compare_exchange(set, UNSET, Ordering::SeqCst, Ordering::SeqCst);
        set = unset.map_or_else(|other| other, |_| UNSET);
        if unset.is_ok() {
            ring();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use room::Span;
    use tokio::time::advance;

    use super::Alarm;
    use crate::clock::Clock;

    /// Sets an alarm to each of these times, one after the other a millisecond apart, `0` unsetting it; how often it has rung at `10` and
    /// at `100`.
    async fn check(set_ms: &[u64], rings: [u32; 2]) {
        let rung = Arc::new(AtomicU32::new(0));
        let counts = Arc::clone(&rung);
        let clock = Clock::start();
        let origin = clock.now();
        let alarm = Alarm::spawn(clock, move || {
            counts.fetch_add(1, Ordering::Relaxed);
        });
        let until = async |ms: u64| {
            while clock.now() - origin < Span::from_millis(ms) {
                settled().await;
                advance(Duration::from_millis(1)).await;
            }
            settled().await;
        };
        for (at, set) in (0..).zip(set_ms) {
            until(at).await;
            let time = origin + Span::from_millis(*set);
            alarm.set((*set > 0).then_some(time));
        }
        until(10).await;
        assert_eq!(rung.load(Ordering::Relaxed), rings[0], "{set_ms:?}");
        until(100).await;
        assert_eq!(rung.load(Ordering::Relaxed), rings[1], "{set_ms:?}");
    }

    /// Every task that can has had its turn.
    async fn settled() {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_rings_once_when_its_time_has_come() {
        check(&[], [0, 0]).await;
        check(&[8], [1, 1]).await;
        check(&[50], [0, 1]).await;
        check(&[50, 0], [0, 0]).await;
        check(&[5, 0], [0, 0]).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_time_is_the_one_that_counts() {
        check(&[50, 8], [1, 1]).await;
        check(&[5, 50], [0, 1]).await;
        check(&[5, 50, 60, 70, 8], [1, 1]).await;
        check(&[3, 0, 200], [0, 0]).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_time_that_is_set_again_rings_again() {
        check(&[1, 1, 1, 1], [4, 4]).await;
    }
}
