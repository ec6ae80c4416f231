//! The engine itself: commands in, steps, events out. [`Driven`] gives it a queue and a sink, and [`start`] a thread.
//!
//! [`Driven`]: crate::Driven
//! [`start`]: crate::start

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backend::Backend;
use crate::config::EngineConfig;
use crate::event::{Command, DownReason, EngineEvent, StepReport};
use crate::interrupt::Watch;
use crate::scheduler::{Scheduler, StepPlan};

/// A scheduler and the backend it feeds.
///
/// After a `Down` event the backend is gone and every further call answers `Down` again.
pub struct Engine {
    scheduler: Scheduler,
    /// The backend, or why it is gone.
    backend: Result<Box<dyn Backend>, DownReason>,
    watch: Arc<Watch>,
    clock: Clock,
}

/// What is to be done next.
pub(crate) enum Next {
    /// This step, which has begun.
    Step(StepPlan),
    /// Tell this; there may be more to do.
    Say(EngineEvent),
    /// Nothing, before a command comes.
    Nothing,
}

/// Time since any fixed moment. Only ever used to say how long a step took.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

impl Engine {
    /// An idle engine, on the system's monotonic clock.
    #[must_use]
    pub fn new(backend: Box<dyn Backend>, config: EngineConfig) -> Self {
        let start = Instant::now();
        Self::with_clock(backend, config, Arc::new(move || start.elapsed()))
    }

    /// An idle engine on another clock: a simulation's, so that its reports are the same in every run.
    #[must_use]
    pub fn with_clock(backend: Box<dyn Backend>, config: EngineConfig, clock: Clock) -> Self {
        let scheduler = Scheduler::new(config, backend.spec(), &backend.pool().shape());
        let watch = Arc::new(Watch::new(backend.interrupt().unwrap_or_default()));
        Self {
            scheduler,
            backend: Ok(backend),
            watch,
            clock,
        }
    }

    /// Takes a command in, and gives its answer if it has one.
    pub fn apply(&mut self, command: Command) -> Option<EngineEvent> {
        if let Err(why) = &self.backend {
            return Some(EngineEvent::Down { why: why.clone() });
        }
        match command {
            Command::Start(spec) => {
                let key = spec.key;
                self.scheduler
                    .add(spec)
                    .err()
                    .map(|why| EngineEvent::Refused { key, why })
            }
            Command::Grow { key, blocks } => self
                .scheduler
                .grow(key, &blocks)
                .err()
                .map(|why| EngineEvent::Refused { key, why }),
            Command::Allow { key, until } => {
                self.scheduler.allow(key, until);
                None
            }
            Command::Stop { key } => {
                self.scheduler.stop(key);
                self.watch.stop_settled(key);
                Some(EngineEvent::Stopped { key })
            }
            Command::Shutdown => Some(self.fall(DownReason::Shutdown)),
        }
    }

    /// Runs one step. `None` when there is nothing to say: no sequence can run, and none newly wants blocks.
    ///
    /// A panic in the backend ends here: the engine goes down.
    pub fn step(&mut self) -> Option<EngineEvent> {
        match self.begin() {
            Next::Step(plan) => Some(self.compute(&plan)),
            Next::Say(event) => Some(event),
            Next::Nothing => None,
        }
    }

    /// Plans a step, which has begun with this: [`Engine::compute`] ends it.
    pub(crate) fn begin(&mut self) -> Next {
        if let Err(why) = &self.backend {
            return Next::Say(EngineEvent::Down { why: why.clone() });
        }
        if let Some(plan) = self.scheduler.next_step() {
            self.watch.begin(&plan, (self.clock)());
            return Next::Step(plan);
        }
        let wants = self.scheduler.take_wants();
        if wants.is_empty() {
            return Next::Nothing;
        }
        Next::Say(EngineEvent::Step(StepReport {
            wants,
            ..StepReport::default()
        }))
    }

    /// Computes the step that was begun, and books it.
    pub(crate) fn compute(&mut self, plan: &StepPlan) -> EngineEvent {
        let began = self.watch.began();
        match self.run(plan) {
            Ok(mut report) => {
                let lasted = began.map(|began| (self.clock)().saturating_sub(began));
                report.micros = lasted.map_or(0, micros);
                EngineEvent::Step(report)
            }
            Err(why) => self.fall(why),
        }
    }

    /// An abandoned step is not booked, and has an empty report.
    fn run(&mut self, plan: &StepPlan) -> Result<StepReport, DownReason> {
        let backend = self.backend.as_mut().map_err(|why| why.clone())?;
        let slices = self.scheduler.slices(plan);
        let mut sampled = Vec::new();
        // Nothing can end a device that hangs here: its worker sees how long the step lasts, and gives this engine up.
        // Whatever a panic leaves behind is thrown away: nothing of it is looked at again.
        let ran = catch_unwind(AssertUnwindSafe(|| backend.step(&slices, &mut sampled)));
        let interrupted = self.watch.end();
        ran.map_err(|panic| DownReason::Panic(panic_text(panic.as_ref())))?
            .map_err(|error| DownReason::Backend(error.to_string()))?;
        // A finished step without samples looks the same; computing it again is harmless.
        if interrupted && sampled.is_empty() {
            self.scheduler.abandon(plan);
            return Ok(StepReport::default());
        }
        self.scheduler
            .complete(plan, sampled)
            .map_err(|error| DownReason::Backend(error.to_string()))
    }

    /// Whether it has gone down.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.backend.is_err()
    }

    pub(crate) fn clock(&self) -> Clock {
        Arc::clone(&self.clock)
    }

    pub(crate) fn watch(&self) -> Arc<Watch> {
        Arc::clone(&self.watch)
    }

    /// Gets rid of the backend, so that nothing of it runs any more when `Down` is said.
    fn fall(&mut self, why: DownReason) -> EngineEvent {
        let backend = std::mem::replace(&mut self.backend, Err(why.clone()));
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(backend))) {
            tracing::error!(
                panic = panic_text(panic.as_ref()),
                "the backend panicked when it was dropped"
            );
        }
        EngineEvent::Down { why }
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
