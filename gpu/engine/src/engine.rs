//! The engine without its thread: commands in, steps, events out. A simulation drives it under virtual time; [`start`] puts it on
//! a thread.
//!
//! [`start`]: crate::start

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use crate::backend::{Backend, BackendError};
use crate::config::EngineConfig;
use crate::event::{Command, DownReason, EngineEvent, StepReport};
use crate::load::{Gauges, Load};
use crate::scheduler::{Scheduler, StepPlan};

/// A scheduler and the backend it feeds.
///
/// After a `Down` event the backend is gone and every further call answers `Down` again.
pub struct Engine {
    scheduler: Scheduler,
    /// The backend, or why it is gone.
    backend: Result<Box<dyn Backend>, DownReason>,
    gauges: Arc<Gauges>,
}

impl Engine {
    /// An idle engine.
    #[must_use]
    pub fn new(backend: Box<dyn Backend>, config: EngineConfig) -> Self {
        let scheduler = Scheduler::new(config, backend.spec(), &backend.pool().shape());
        Self {
            scheduler,
            backend: Ok(backend),
            gauges: Arc::default(),
        }
    }

    /// Takes a command in, and gives its answer if it has one.
    pub fn apply(&mut self, command: Command) -> Option<EngineEvent> {
        if let Err(why) = &self.backend {
            return Some(EngineEvent::Down { why: why.clone() });
        }
        let answer = match command {
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
            Command::Stop { key } => {
                self.scheduler.stop(key);
                Some(EngineEvent::Stopped { key })
            }
            Command::Shutdown => Some(self.fall(DownReason::Shutdown)),
        };
        self.measure();
        answer
    }

    /// Runs one step. `None` when there is nothing to say: no sequence can run, and none newly wants blocks.
    ///
    /// A panic in the backend ends here: the engine goes down.
    pub fn step(&mut self) -> Option<EngineEvent> {
        let backend = match &mut self.backend {
            Ok(backend) => backend,
            Err(why) => return Some(EngineEvent::Down { why: why.clone() }),
        };
        let Some(plan) = self.scheduler.next_step() else {
            let wants = self.scheduler.take_wants();
            let report = StepReport {
                wants,
                ..StepReport::default()
            };
            return (!report.wants.is_empty()).then_some(EngineEvent::Step(report));
        };
        let began = Instant::now();
        let scheduler = &mut self.scheduler;
        // Whatever the panic left behind is thrown away: nothing of it is looked at again.
        let ran = catch_unwind(AssertUnwindSafe(|| run(backend.as_mut(), scheduler, &plan)));
        let why = match ran {
            Ok(Ok(mut report)) => {
                report.micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
                self.count(&report);
                return Some(EngineEvent::Step(report));
            }
            Ok(Err(error)) => DownReason::Backend(error.to_string()),
            Err(panic) => DownReason::Panic(panic_text(panic.as_ref())),
        };
        Some(self.fall(why))
    }

    /// Whether it has gone down.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.backend.is_err()
    }

    /// Its figures.
    #[must_use]
    pub fn load(&self) -> Load {
        self.gauges.read()
    }

    pub(crate) fn gauges(&self) -> Arc<Gauges> {
        Arc::clone(&self.gauges)
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

    fn count(&self, report: &StepReport) {
        self.gauges.steps.fetch_add(1, Relaxed);
        self.gauges
            .computed_tokens
            .fetch_add(u64::from(report.step_tokens), Relaxed);
        self.gauges
            .sampled_tokens
            .fetch_add(report.tokens.len() as u64, Relaxed);
        self.gauges.busy_micros.fetch_add(report.micros, Relaxed);
        self.measure();
    }

    fn measure(&self) {
        self.gauges
            .sequences
            .store(self.scheduler.sequences() as u64, Relaxed);
        self.gauges
            .backlog_tokens
            .store(self.scheduler.backlog_tokens() as u64, Relaxed);
    }
}

fn run(
    backend: &mut dyn Backend,
    scheduler: &mut Scheduler,
    plan: &StepPlan,
) -> Result<StepReport, BackendError> {
    let mut sampled = Vec::new();
    backend.step(&scheduler.slices(plan), &mut sampled)?;
    scheduler.complete(plan, sampled)
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
