//! A deadline that cannot be left out.

use crate::time::{Span, Time};

/// When a phase ends by itself. Every live phase holds one and cannot be built without it, and there is no way to make
/// one without a time.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Debug)]
pub(crate) struct Deadline(Time);

impl Deadline {
    /// `span` from `now`.
    pub(crate) fn after(now: Time, span: Span) -> Self {
        Self(now + span)
    }

    /// When it passes.
    pub(crate) fn at(self) -> Time {
        self.0
    }

    /// Whether it has passed.
    pub(crate) fn has_passed(self, now: Time) -> bool {
        now >= self.0
    }
}
