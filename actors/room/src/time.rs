//! Time as the protocol sees it: an argument, never a clock.

use std::ops::{Add, Sub};

/// A point on the caller's monotonic clock, in microseconds since an origin that the caller chose.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug, Default)]
pub struct Time {
    /// Microseconds since the caller's origin.
    pub micros: u64,
}

/// A length of time, in microseconds.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug, Default)]
pub struct Span {
    /// Microseconds.
    pub micros: u64,
}

impl Span {
    /// A span of whole milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self {
            micros: millis.saturating_mul(1_000),
        }
    }

    /// The span in whole milliseconds, rounded down.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.micros / 1_000
    }

    /// Twice as long.
    #[must_use]
    pub const fn doubled(self) -> Self {
        Self {
            micros: self.micros.saturating_mul(2),
        }
    }
}

impl Add<Span> for Time {
    type Output = Self;

    fn add(self, span: Span) -> Self {
        Self {
            micros: self.micros.saturating_add(span.micros),
        }
    }
}

impl Sub for Time {
    type Output = Span;

    /// Time passed since `earlier`; zero if it is not earlier.
    fn sub(self, earlier: Self) -> Span {
        Span {
            micros: self.micros.saturating_sub(earlier.micros),
        }
    }
}
