//! One armed time for one actor, kept on a task of its own so that it never sits in the loop it guards.

use room::Time;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep_until;

use crate::clock::Clock;

/// Calls back when the time it was last set to has come. Dropping it ends its task.
#[derive(Debug)]
pub(crate) struct Alarm {
    armed: watch::Sender<Option<Time>>,
    task: JoinHandle<()>,
}

impl Alarm {
    /// Spawns the task. `ring` must not block; it runs once for every time that comes, and the alarm is then unset.
    pub(crate) fn spawn(clock: Clock, ring: impl Fn() + Send + 'static) -> Self {
        let (armed, mut changes) = watch::channel(None::<Time>);
        let task = tokio::spawn(async move {
            loop {
                let until = *changes.borrow_and_update();
                let changed = match until {
                    // No deadline above this wait: it ends when the alarm is set or dropped, and both are ours.
                    None => changes.changed().await,
                    Some(time) => {
                        tokio::select! {
                            biased;
                            changed = changes.changed() => changed,
                            () = sleep_until(clock.instant(time)) => {
                                if clock.now() >= time {
                                    ring();
                                    // No deadline, as above.
                                    changes.changed().await
                                } else {
                                    Ok(())
                                }
                            }
                        }
                    }
                };
                if changed.is_err() {
                    return;
                }
            }
        });
        Self { armed, task }
    }

    /// Sets, moves or (`None`) unsets the time. Setting the same time again after it rang rings again.
    pub(crate) fn set(&self, time: Option<Time>) {
        self.armed.send_replace(time);
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.task.abort();
    }
}
