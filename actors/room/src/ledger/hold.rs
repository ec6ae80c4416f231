//! Who may be touching the blocks of a lease.

use std::fmt;

/// Somebody who may read or write the blocks of a lease until proven to have stopped.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum Hold {
    /// The engine computes on them.
    Engine,
    /// A read of ours may still land in them.
    Read,
    /// They are on offer: a peer may be reading them.
    Offer,
}

impl Hold {
    /// Every kind of hold.
    pub const ALL: [Self; 3] = [Self::Engine, Self::Read, Self::Offer];

    const fn bit(self) -> u8 {
        match self {
            Self::Engine => 1,
            Self::Read => 2,
            Self::Offer => 4,
        }
    }
}

/// A set of [`Hold`]s.
#[derive(Copy, Clone, Eq, PartialEq, Default)]
pub struct Holds(u8);

impl Holds {
    /// Nobody.
    pub const NONE: Self = Self(0);

    /// Whether nobody holds.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether `hold` is in the set.
    #[must_use]
    pub fn has(self, hold: Hold) -> bool {
        self.0 & hold.bit() != 0
    }

    /// The members, in a fixed order.
    pub fn iter(self) -> impl Iterator<Item = Hold> {
        Hold::ALL.into_iter().filter(move |hold| self.has(*hold))
    }

    pub(crate) fn add(&mut self, hold: Hold) {
        self.0 |= hold.bit();
    }

    /// Takes `hold` out; whether it was in.
    pub(crate) fn take(&mut self, hold: Hold) -> bool {
        let had = self.has(hold);
        self.0 &= !hold.bit();
        had
    }
}

impl fmt::Debug for Holds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
