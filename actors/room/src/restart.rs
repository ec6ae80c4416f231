//! How often a supervisor restarts a child, and after which pause.

use std::collections::VecDeque;

use crate::time::{Span, Time};

/// A bounded restart policy: at most so many failures within a span. Beyond that the supervisor gives up, and its own
/// supervisor decides.
#[derive(Clone, Debug)]
pub struct Restarts {
    max: usize,
    within: Span,
    first_pause: Span,
    failures: VecDeque<Time>,
}

/// What a supervisor does about a failed child.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Restart {
    /// Start it again after this pause.
    After(Span),
    /// It fails too often to be started again.
    GiveUp,
}

impl Restarts {
    /// At most `max` restarts within `within`; the first without a pause, the second after `first_pause`, which
    /// doubles with every further failure within the span.
    #[must_use]
    pub fn new(max: usize, within: Span, first_pause: Span) -> Self {
        Self {
            max,
            within,
            first_pause,
            failures: VecDeque::new(),
        }
    }

    /// The child failed.
    pub fn on_failure(&mut self, now: Time) -> Restart {
        self.failures.retain(|at| now - *at < self.within);
        if self.failures.len() >= self.max {
            return Restart::GiveUp;
        }
        let pause = match self.failures.len() {
            0 => Span::default(),
            n => (1..n.min(32)).fold(self.first_pause, |pause, _| pause.doubled()),
        };
        self.failures.push_back(now);
        Restart::After(pause.min(self.within))
    }
}
