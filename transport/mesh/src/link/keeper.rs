//! The timers of a link, on a task that does no I/O: a reader or writer that hangs does not stop them.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::link::{Core, DownReason};

/// Says that heartbeat `n` is due.
pub(crate) type Beat = Box<dyn Fn(u64) + Send + Sync>;

/// Runs until the link ends. `beat` is called every `every`, first at once; a worker has none.
pub(crate) async fn keep(core: Arc<Core>, beat: Option<(Duration, Beat)>) {
    let mut n = 0;
    let mut next_beat = Instant::now();
    while !core.ending.is_cancelled() {
        if let Some((every, beat)) = &beat
            && Instant::now() >= next_beat
        {
            // Nothing can be queued on a link that is to finish.
            if !core.is_down() {
                n += 1;
                beat(n);
            }
            // Beats that were missed are not made up for.
            next_beat = Instant::now() + *every;
        }
        if let Err(silent) = core.lease.check(Instant::now()) {
            let lease = core.lease.length();
            core.end(if core.places.is_waiting() {
                DownReason::Behind { lease }
            } else {
                silent
            });
            return;
        }
        let lease_end = core.lease.end();
        sleep_until(if beat.is_some() {
            next_beat.min(lease_end)
        } else {
            lease_end
        })
        .await;
    }
}
