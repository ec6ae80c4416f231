//! How a pool's blocks are spread over what a block can be.

/// Where the blocks of one pool are. The four parts always add up to `total` (INV-02).
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub struct Occupancy {
    /// Blocks in the pool.
    pub total: u32,
    /// Blocks nobody has and whose contents mean nothing.
    pub free: u32,
    /// Blocks that at least one open lease has.
    pub leased: u32,
    /// Blocks no lease has, kept for their contents. Given away again when free ones run out.
    pub cached: u32,
    /// Blocks whose leases are all closed but which somebody may still touch. They wait for the proof that nobody does.
    pub quarantined: u32,
}

impl Occupancy {
    /// Whether INV-02 holds: free + leased + cached + quarantined = total.
    #[must_use]
    pub fn adds_up(&self) -> bool {
        let parts = [self.free, self.leased, self.cached, self.quarantined];
        parts.iter().map(|part| u64::from(*part)).sum::<u64>() == u64::from(self.total)
    }

    /// Whether nobody has or touches any block: all are free or cached (INV-08).
    #[must_use]
    pub fn is_quiescent(&self) -> bool {
        self.leased == 0 && self.quarantined == 0
    }
}

#[cfg(test)]
mod tests {
    use super::Occupancy;

    #[test]
    fn parts_that_do_not_add_up_and_pools_that_are_not_at_rest() {
        let check = |free, leased, cached, quarantined, adds_up, quiescent| {
            let occupancy = Occupancy {
                total: 4,
                free,
                leased,
                cached,
                quarantined,
            };
            assert_eq!(
                (occupancy.adds_up(), occupancy.is_quiescent()),
                (adds_up, quiescent),
                "{occupancy:?}"
            );
        };
        check(3, 0, 1, 0, true, true);
        check(1, 1, 1, 1, true, false);
        check(2, 1, 1, 0, true, false);
        check(2, 0, 1, 1, true, false);
        check(3, 0, 0, 0, false, true);
        check(4, 0, 0, 1, false, false);
    }
}
