//! How fast a simulated engine runs: as its latency model says, slower, or not at all.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::{Backend, DownReason, EngineConfig, EngineHandle, EventSink, StepPlan, Turn, Wake};
use mock::Latency;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

#[derive(Copy, Clone, Debug)]
struct Switches {
    /// Steps take so many times as long.
    slowness: u32,
    /// Steps do not end.
    held: bool,
    /// The next step fails.
    fails: bool,
}

/// The switches of a worker's engines, over all of its incarnations.
#[derive(Debug)]
pub(crate) struct Pace {
    latency: Latency,
    switches: Mutex<Switches>,
    changed: Notify,
}

impl Pace {
    /// An undisturbed pace.
    #[must_use]
    pub(crate) fn new(latency: Latency) -> Arc<Self> {
        let switches = Switches {
            slowness: 1,
            held: false,
            fails: false,
        };
        Arc::new(Self {
            latency,
            switches: Mutex::new(switches),
            changed: Notify::new(),
        })
    }

    fn switches(&self) -> MutexGuard<'_, Switches> {
        self.switches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Steps take `times` as long from now on.
    pub(crate) fn slow(&self, times: u32) {
        self.switches().slowness = times.max(1);
    }

    /// From now on no step ends, or they do again.
    pub(crate) fn hold(&self, held: bool) {
        self.switches().held = held;
        self.changed.notify_waiters();
    }

    /// The next step fails, and with it the engine.
    pub(crate) fn fail(&self) {
        self.switches().fails = true;
    }

    /// All switches as at the start.
    pub(crate) fn heal(&self) {
        *self.switches() = Switches {
            slowness: 1,
            held: false,
            fails: false,
        };
        self.changed.notify_waiters();
    }

    fn lasts(&self, plan: &StepPlan) -> Duration {
        let Latency {
            step_micros,
            prefill_token_micros,
            decode_micros,
        } = self.latency;
        let parts = plan.parts().iter().map(|part| match u64::from(part.tokens) {
            1 => decode_micros,
            tokens => tokens * prefill_token_micros,
        });
        let micros = step_micros + parts.sum::<u64>();
        Duration::from_micros(micros * u64::from(self.switches().slowness))
    }

    /// Lets the time of a step pass.
    async fn pass(&self, plan: &StepPlan) -> Result<(), DownReason> {
        sleep(self.lasts(plan)).await;
        loop {
            let changed = self.changed.notified();
            if std::mem::take(&mut self.switches().fails) {
                return Err(DownReason::Backend("a simulated failure".to_owned()));
            }
            if !self.switches().held {
                return Ok(());
            }
            // Whoever holds it lets it go, or takes its power.
            changed.await;
        }
    }

    /// An engine at this pace, on a task of its own.
    pub(crate) fn start(
        self: Arc<Self>,
        backend: Box<dyn Backend>,
        config: EngineConfig,
        sink: EventSink,
    ) -> (EngineHandle, AbortHandle) {
        let origin = Instant::now();
        let clock: engine::Clock = Arc::new(move || origin.elapsed());
        let woken = Arc::new(Notify::new());
        let notify = Arc::clone(&woken);
        let wake: Wake = Arc::new(move || notify.notify_one());
        let (handle, mut driven) = engine::drive(backend, config, sink, clock, wake);
        let task = tokio::spawn(async move {
            let why = loop {
                let down = match driven.begin() {
                    Turn::Step(plan) => match self.pass(&plan).await {
                        Ok(()) => driven.finish(&plan),
                        Err(why) => Some(why),
                    },
                    Turn::Idle => {
                        woken.notified().await;
                        None
                    }
                    Turn::Ended(why) => Some(why),
                };
                if let Some(why) = down {
                    break why;
                }
            };
            driven.end(why);
        });
        (handle, task.abort_handle())
    }
}
