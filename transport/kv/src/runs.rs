//! Coalescing: descriptors cost more than bytes, so neighbours travel together.

use crate::BlockIndex;

/// Blocks that are contiguous in both regions.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct Run {
    /// Position in the list of the run's first block.
    pub at: u32,
    /// First block at the source.
    pub source: BlockIndex,
    /// First block at the destination.
    pub into: BlockIndex,
    /// How many blocks.
    pub count: u32,
}

/// Cuts two block lists of equal length (the longer one's rest is ignored) into the fewest runs of at most
/// `max_blocks` blocks that are contiguous on both sides, in order.
pub fn coalesce(source: &[BlockIndex], into: &[BlockIndex], max_blocks: u32) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (at, (&s, &d)) in (0u32..).zip(source.iter().zip(into)) {
        match runs.last_mut() {
            Some(run)
                if run.count < max_blocks
                    && run.source.checked_add(run.count) == Some(s)
                    && run.into.checked_add(run.count) == Some(d) =>
            {
                run.count += 1;
            }
            _ => runs.push(Run {
                at,
                source: s,
                into: d,
                count: 1,
            }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &[u32], into: &[u32], max: u32, want: &[(u32, u32, u32, u32)]) {
        let got: Vec<_> = coalesce(source, into, max)
            .iter()
            .map(|r| (r.at, r.source, r.into, r.count))
            .collect();
        assert_eq!(got, want);
    }

    #[test]
    fn runs_are_contiguous_on_both_sides_and_bounded() {
        check(&[], &[], 8, &[]);
        check(&[1, 2, 3], &[7, 8, 9], 8, &[(0, 1, 7, 3)]);
        check(&[1, 2, 3], &[7, 9, 10], 8, &[(0, 1, 7, 1), (1, 2, 9, 2)]);
        check(&[1, 3, 4], &[7, 8, 9], 8, &[(0, 1, 7, 1), (1, 3, 8, 2)]);
        check(
            &[0, 1, 2, 3, 4],
            &[0, 1, 2, 3, 4],
            2,
            &[(0, 0, 0, 2), (2, 2, 2, 2), (4, 4, 4, 1)],
        );
        check(
            &[u32::MAX, 0],
            &[u32::MAX, 0],
            8,
            &[(0, u32::MAX, u32::MAX, 1), (1, 0, 0, 1)],
        );
    }
}
