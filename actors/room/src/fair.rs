//! Whose turn it is among tenants that wait for the same: start-time fair queueing.
//!
//! Every tenant has a clock of its own, in tokens by its weight, which goes on with what it is granted. The one whose clock is furthest behind
//! is next. A tenant that comes anew begins at the time of those who wait, so that it has saved up nothing; and nobody owes anything once
//! nobody waits. So a tenant with a thousand rooms in the queue holds up another's one by no more than the room that it is at.

use std::collections::BTreeMap;

/// Virtual time that a token takes at a weight of one: enough for the greatest weight to count exactly.
const TOKEN: u64 = 1 << 16;

/// Who pays for a room. Only those with a key of their own are told apart; all others are one.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug, Default)]
pub struct Tenant(pub u64);

/// Whose room it is, and what its tenant's turn is worth.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct Share {
    /// Who.
    pub tenant: Tenant,
    /// So many times as much as a tenant with a weight of one. At least 1.
    pub weight: u16,
}

impl Default for Share {
    fn default() -> Self {
        Self {
            tenant: Tenant::default(),
            weight: 1,
        }
    }
}

impl Share {
    /// How far the tenant's clock goes on with so many tokens.
    pub(crate) fn cost(self, tokens: u32) -> u64 {
        u64::from(tokens) * TOKEN / u64::from(self.weight.max(1))
    }
}

/// The tenants' clocks.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    /// Where a tenant begins that comes anew.
    now: u64,
    /// Of those who are ahead of that.
    ahead: BTreeMap<Tenant, u64>,
}

impl Clocks {
    /// Where one that comes anew would begin.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// A tenant's own.
    pub(crate) fn of(&self, tenant: Tenant) -> u64 {
        let ahead = self.ahead.get(&tenant).copied();
        ahead.map_or(self.now, |ahead| ahead.max(self.now))
    }

    /// One of them was granted so much. `waiting`: all that waited then, it included.
    pub(crate) fn granted(&mut self, share: Share, tokens: u32, waiting: impl Iterator<Item = Tenant>) {
        let began = self.of(share.tenant);
        // Nobody who waits falls behind by what another was granted while it did not fit.
        let first = waiting.map(|tenant| self.of(tenant)).min();
        self.now = first.unwrap_or(began);
        self.ahead
            .insert(share.tenant, began.saturating_add(share.cost(tokens)));
        let now = self.now;
        self.ahead.retain(|_, ahead| *ahead > now);
    }

    /// Nobody waits.
    pub(crate) fn rest(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_with_who_is_furthest_behind_and_is_forgotten_when_nobody_waits() {
        let (a, b) = (
            Share {
                tenant: Tenant(1),
                weight: 1,
            },
            Share {
                tenant: Tenant(2),
                weight: 2,
            },
        );
        let waiting = || [a.tenant, b.tenant].into_iter();
        let mut clocks = Clocks::default();
        clocks.granted(a, 10, waiting());
        assert_eq!(
            (clocks.of(a.tenant), clocks.of(b.tenant), clocks.now()),
            (10 * TOKEN, 0, 0)
        );
        clocks.granted(b, 10, waiting());
        assert_eq!(
            (clocks.of(a.tenant), clocks.of(b.tenant), clocks.now()),
            (10 * TOKEN, 5 * TOKEN, 0)
        );
        // One that comes anew begins with those who wait.
        clocks.granted(b, 10, waiting());
        assert_eq!((clocks.now(), clocks.of(Tenant(3))), (5 * TOKEN, 5 * TOKEN));
        clocks.rest();
        assert_eq!((clocks.now(), clocks.of(a.tenant)), (0, 0));
    }

    #[test]
    fn who_is_not_ahead_is_not_remembered() {
        let mut clocks = Clocks::default();
        let share = Share::default();
        clocks.granted(share, 0, [share.tenant].into_iter());
        assert!(clocks.ahead.is_empty());
        clocks.granted(share, 1, [share.tenant].into_iter());
        assert_eq!(clocks.ahead.len(), 1);
    }
}
