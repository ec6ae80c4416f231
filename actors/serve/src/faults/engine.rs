//! An engine that is slow, stuck, failing, or panicking, by a switch around its backend.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use engine::{Backend, BackendError, Interrupt, KvPool, ModelSpec, Sampled, Slice};

use super::SWITCHES;

/// Between two looks at a switch.
const LOOK: Duration = Duration::from_millis(5);

/// What steps of the engine of this process do.
#[derive(Debug, Default)]
pub(crate) struct EngineSwitch {
    /// Each takes so much longer, in milliseconds; an abort cuts that short as it does a step.
    pub(crate) step_ms: AtomicU64,
    /// None ends, whatever is asked of it.
    pub(crate) stuck: AtomicBool,
    /// The next one panics.
    pub(crate) panic: AtomicBool,
    /// The next one fails.
    pub(crate) fail: AtomicBool,
    /// Steps begun so far.
    pub(crate) steps: AtomicU64,
}

impl EngineSwitch {
    fn before_step(&self, interrupt: Option<&Interrupt>) -> Result<(), BackendError> {
        self.steps.fetch_add(1, Ordering::Relaxed);
        let ends = Instant::now() + Duration::from_millis(self.step_ms.load(Ordering::Relaxed));
        let is_cut = || interrupt.is_some_and(Interrupt::is_raised);
        while Instant::now() < ends && !is_cut() {
            sleep(LOOK.min(ends.saturating_duration_since(Instant::now())));
        }
        while self.stuck.load(Ordering::Relaxed) {
            sleep(LOOK);
        }
        assert!(
            !self.panic.swap(false, Ordering::Relaxed),
            "a test's fault switch"
        );
        match self.fail.swap(false, Ordering::Relaxed) {
            true => Err(BackendError("a test's fault switch".to_owned())),
            false => Ok(()),
        }
    }
}

/// A backend behind the switches of this process.
pub(crate) struct Disturbed(pub(crate) Box<dyn Backend>);

impl Backend for Disturbed {
    fn spec(&self) -> &ModelSpec {
        self.0.spec()
    }

    fn pool(&self) -> Arc<KvPool> {
        self.0.pool()
    }

    fn interrupt(&self) -> Option<Interrupt> {
        self.0.interrupt()
    }

    fn step(&mut self, batch: &[Slice<'_>], out: &mut Vec<Sampled>) -> Result<(), BackendError> {
        let interrupt = self.0.interrupt();
        SWITCHES.engine.before_step(interrupt.as_ref())?;
        self.0.step(batch, out)
    }
}
