//! Abandoning a step whose work nobody wants any more.
//!
//! A step may take a second of prefill on a slow device. When the sequences that make up at least half of it are stopped meanwhile,
//! the step is abandoned: nothing of it is booked, and the next one is planned without them. The rest loses less than is saved, and
//! loses it once for each stop at most, so a storm of aborts cannot hold the engine up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::scheduler::StepPlan;
use crate::sequence::SequenceKey;

/// A flag that a backend looks at during a step, for example between layers.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Whether the step in progress had better be abandoned.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self, raised: bool) {
        self.0.store(raised, Ordering::Release);
    }
}

/// Sees every stop when it is queued, and decides whether the step in progress is worth its while. Shared by the engine and its
/// handle; its lock is held for a few instructions only, never across a step.
pub(crate) struct Watch {
    interrupt: Interrupt,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The parts of the step in progress: whose, and how many tokens.
    parts: Vec<(SequenceKey, u32)>,
    /// Stops that are queued and not applied yet. As bounded as the command queue.
    stops: Vec<SequenceKey>,
}

impl State {
    /// Whether at least half of the step's tokens are not wanted any more.
    fn is_futile(&self) -> bool {
        let tokens = |wanted: &dyn Fn(SequenceKey) -> bool| -> u64 {
            self.parts
                .iter()
                .filter(|(key, _)| wanted(*key))
                .map(|&(_, tokens)| u64::from(tokens))
                .sum()
        };
        let all = tokens(&|_| true);
        all > 0 && 2 * tokens(&|key| self.stops.contains(&key)) >= all
    }
}

impl Watch {
    pub(crate) fn new(interrupt: Interrupt) -> Self {
        Self {
            interrupt,
            state: Mutex::default(),
        }
    }

    /// A stop is about to be queued.
    pub(crate) fn stop_queued(&self, key: SequenceKey) {
        let mut state = self.state();
        state.stops.push(key);
        if state.is_futile() {
            self.interrupt.set(true);
        }
    }

    /// A stop has been applied, or could not be queued.
    pub(crate) fn stop_settled(&self, key: SequenceKey) {
        let mut state = self.state();
        if let Some(at) = state.stops.iter().position(|&stop| stop == key) {
            state.stops.swap_remove(at);
        }
    }

    /// A step begins. It may be futile already.
    pub(crate) fn begin(&self, plan: &StepPlan) {
        let mut state = self.state();
        state.parts = plan.parts().iter().map(|part| (part.key, part.tokens)).collect();
        self.interrupt.set(state.is_futile());
    }

    /// The step has ended; whether it was interrupted.
    pub(crate) fn end(&self) -> bool {
        let mut state = self.state();
        state.parts.clear();
        let raised = self.interrupt.is_raised();
        self.interrupt.set(false);
        raised
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
