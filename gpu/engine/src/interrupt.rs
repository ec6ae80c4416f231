//! Abandoning a step whose work nobody wants any more.
//!
//! A step may take a second of prefill on a slow device. When the sequences that make up at least half of it are stopped meanwhile,
//! the step is abandoned: nothing of it is booked, and the next one is planned without them. The rest loses less than is saved. Nobody
//! loses two steps in a row, or a storm of aborts would hold up those who stay: what remains of an abandoned step is *owed* its next
//! one, which is then abandoned only if all of it is stopped. An engine that is told to end abandons its step in any case.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::scheduler::{Part, StepPlan};
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
/// handle; its lock is held for one look at the step's parts, never across a step.
pub(crate) struct Watch {
    interrupt: Interrupt,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Of the step in progress.
    parts: Vec<Part>,
    /// When the step in progress began, by the engine's clock.
    began: Option<Duration>,
    /// Stops that are queued and not applied yet. As bounded as the command queue.
    stops: BTreeSet<SequenceKey>,
    /// The engine is about to end: no step is wanted.
    ending: bool,
}

impl State {
    /// Whether at least half of the step's tokens are not wanted any more, and none of the rest are owed.
    fn is_futile(&self) -> bool {
        if self.ending {
            return true;
        }
        let (mut wanted, mut unwanted) = (0, 0);
        for part in &self.parts {
            if self.stops.contains(&part.key) {
                unwanted += u64::from(part.tokens);
            } else if part.owed {
                return false;
            } else {
                wanted += u64::from(part.tokens);
            }
        }
        unwanted > 0 && unwanted >= wanted
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
        if state.stops.insert(key) && state.is_futile() {
            self.interrupt.set(true);
        }
    }

    /// A stop has been applied, or could not be queued.
    pub(crate) fn stop_settled(&self, key: SequenceKey) {
        self.state().stops.remove(&key);
    }

    /// The engine shall end. Whatever it computes now is for nobody.
    pub(crate) fn end_queued(&self) {
        let mut state = self.state();
        state.ending = true;
        self.interrupt.set(true);
    }

    /// When the step in progress began; none between steps.
    pub(crate) fn began(&self) -> Option<Duration> {
        self.state().began
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.state().ending
    }

    /// A step begins. It may be futile already.
    pub(crate) fn begin(&self, plan: &StepPlan, now: Duration) {
        let mut state = self.state();
        state.began = Some(now);
        state.parts = plan.parts().to_vec();
        self.interrupt.set(state.is_futile());
    }

    /// The step has ended; whether it was interrupted.
    pub(crate) fn end(&self) -> bool {
        let mut state = self.state();
        state.parts.clear();
        state.began = None;
        let raised = self.interrupt.is_raised();
        self.interrupt.set(false);
        raised
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Interrupt, Watch};
    use crate::scheduler::{Part, StepPlan};
    use crate::sequence::SequenceKey;

    /// A plan of sequences 0, 1, ... with so many tokens each.
    fn plan(tokens: &[u32]) -> StepPlan {
        let part = |(key, &tokens)| Part::of(SequenceKey(key), tokens);
        StepPlan::of((0..).zip(tokens).map(part).collect())
    }

    #[allow(clippy::needless_pass_by_value, reason = "plans are made where they are used")]
    fn begin(watch: &Watch, plan: StepPlan) {
        watch.begin(&plan, Duration::ZERO);
    }

    /// With stops of these queued before and during a step, is it interrupted?
    #[track_caller]
    fn check(tokens: &[u32], before: &[u64], during: &[u64], expected: bool) {
        let interrupt = Interrupt::default();
        let watch = Watch::new(interrupt.clone());
        before.iter().for_each(|&key| watch.stop_queued(SequenceKey(key)));
        begin(&watch, plan(tokens));
        during.iter().for_each(|&key| watch.stop_queued(SequenceKey(key)));
        assert_eq!(
            interrupt.is_raised(),
            expected,
            "{tokens:?} {before:?} {during:?}"
        );
        assert_eq!(watch.end(), expected);
        assert!(!interrupt.is_raised(), "the next step begins afresh");
    }

    #[test]
    fn half_of_the_tokens_decide() {
        check(&[10, 10], &[], &[], false);
        check(&[10, 10], &[], &[0], true);
        check(&[10, 11], &[], &[0], false);
        check(&[10, 11], &[], &[1], true);
        check(&[1, 1, 1, 1], &[], &[0, 2], true);
        check(&[1, 1, 1, 1], &[], &[0, 0], false);
        check(&[10, 10], &[], &[7, 8, 9], false);
    }

    #[test]
    fn a_stop_queued_before_the_step_counts() {
        check(&[10, 10], &[1], &[], true);
        check(&[1, 1, 1, 1], &[3], &[0], true);
    }

    #[test]
    fn what_is_owed_is_computed_unless_nobody_wants_it() {
        let check = |stops: &[u64], expected: bool| {
            let watch = Watch::new(Interrupt::default());
            let mut parts = plan(&[10, 10, 100]).parts().to_vec();
            parts[1].owed = true;
            begin(&watch, StepPlan::of(parts));
            stops.iter().for_each(|&key| watch.stop_queued(SequenceKey(key)));
            assert_eq!(watch.end(), expected, "{stops:?}");
        };
        check(&[2], false);
        check(&[0, 2], false);
        check(&[1, 2], true);
        check(&[0, 1, 2], true);
    }

    #[test]
    fn no_step_is_wanted_at_the_end() {
        let interrupt = Interrupt::default();
        let watch = Watch::new(interrupt.clone());
        begin(&watch, plan(&[10]));
        watch.end_queued();
        assert!(interrupt.is_raised() && watch.end());
        begin(&watch, plan(&[10]));
        assert!(watch.end(), "nor any later one");
    }

    #[test]
    fn a_settled_stop_is_forgotten() {
        let watch = Watch::new(Interrupt::default());
        watch.stop_queued(SequenceKey(0));
        watch.stop_settled(SequenceKey(0));
        watch.stop_settled(SequenceKey(5));
        begin(&watch, plan(&[10]));
        assert!(!watch.end());
    }

    #[test]
    fn a_stop_between_steps_interrupts_nothing() {
        let interrupt = Interrupt::default();
        let watch = Watch::new(interrupt.clone());
        begin(&watch, plan(&[10]));
        watch.end();
        watch.stop_queued(SequenceKey(0));
        assert!(!interrupt.is_raised());
    }
}
