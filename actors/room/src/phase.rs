//! The phases of a room at its owner, and the one list of steps between them.

use std::fmt;

/// A phase without its data: what is shown, counted and put into outcomes.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum PhaseKind {
    /// Waits for credit. Nothing was started.
    Queued,
    /// Waits for decode to grant blocks and a slot.
    Reserving,
    /// The prompt is being computed.
    Prefilling,
    /// Decode is pulling the KV.
    Pulling,
    /// Tokens are streaming.
    Decoding,
    /// The outcome is fixed; leases are being proven returned.
    Draining,
    /// Nothing is left.
    Ended,
}

impl PhaseKind {
    /// Every phase, in the order of a room's life.
    pub const ALL: [Self; 7] = [
        Self::Queued,
        Self::Reserving,
        Self::Prefilling,
        Self::Pulling,
        Self::Decoding,
        Self::Draining,
        Self::Ended,
    ];

    /// The legal steps. Everything that is not here cannot happen.
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        use PhaseKind::{Decoding, Draining, Ended, Prefilling, Pulling, Queued, Reserving};
        matches!(
            (self, next),
            // The way of an undisturbed room; on a mixed worker nothing is pulled.
            (Queued, Reserving)
                | (Reserving, Prefilling)
                | (Prefilling, Pulling | Decoding)
                | (Pulling, Decoding)
                // The attempt failed: the next generation starts over.
                | (Reserving | Prefilling | Pulling | Decoding, Queued)
                // The outcome is fixed.
                | (Queued | Reserving | Prefilling | Pulling | Decoding, Draining)
                | (Draining, Ended)
        )
    }

    /// Whether the outcome is still open.
    #[must_use]
    pub fn is_live(self) -> bool {
        !matches!(self, Self::Draining | Self::Ended)
    }

    /// The name in lower case, for labels and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Reserving => "reserving",
            Self::Prefilling => "prefilling",
            Self::Pulling => "pulling",
            Self::Decoding => "decoding",
            Self::Draining => "draining",
            Self::Ended => "ended",
        }
    }
}

impl fmt::Display for PhaseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
