//! Blocks for sequences that grow, and who gives way.

use crate::host::{Host, HostCommand, StayPhase};
use crate::id::Attempt;
use crate::ledger::Hold;
use crate::outcome::{AttemptError, Refusal};
use crate::time::Time;

impl Host {
    pub(super) fn on_need_blocks(&mut self, now: Time, attempt: Attempt, n: u32) {
        let has = self.ledger.blocks(attempt).len() as u64;
        if has + u64::from(n) > u64::from(self.spec.blocks) {
            return self.fail(now, attempt, AttemptError::Refused(Refusal::TooLarge));
        }
        if n > 0 {
            self.wants.insert(attempt, n);
        }
    }

    /// Gives blocks to those that wait for some, oldest stay first. If the oldest cannot be served, and what is on its
    /// way back will not do either, younger stays are evicted until it will.
    pub(super) fn serve_wants(&mut self, now: Time) {
        while let Some((attempt, n)) = self.oldest_want() {
            if let Ok(blocks) = self.ledger.grow(attempt, n) {
                self.wants.remove(&attempt);
                self.commands.push_back(HostCommand::Grow { attempt, blocks });
                continue;
            }
            let short = n.saturating_sub(self.ledger.available());
            if self.on_their_way() >= short {
                return;
            }
            let Some(victim) = self.youngest_that_can_give() else {
                return;
            };
            self.counters.evictions += 1;
            self.fail(now, victim, AttemptError::Evicted);
        }
    }

    fn oldest_want(&self) -> Option<(Attempt, u32)> {
        let arrival = |attempt: &Attempt| self.stays.get(attempt).map_or(u64::MAX, |stay| stay.arrival);
        self.wants
            .iter()
            .min_by_key(|(attempt, _)| arrival(attempt))
            .map(|(attempt, n)| (*attempt, *n))
    }

    /// Blocks of closing stays that only the engine still holds: they are back within a step.
    fn on_their_way(&self) -> u32 {
        let soon = self.stays.iter().filter(|(attempt, stay)| {
            stay.kind() == StayPhase::Closing && self.ledger.holds(**attempt).iter().eq([Hold::Engine])
        });
        soon.map(|(attempt, _)| self.ledger.returning(*attempt)).sum()
    }

    /// The latest arrival whose blocks come back at once or within a step. Blocks that a transfer holds take longer.
    fn youngest_that_can_give(&self) -> Option<Attempt> {
        let gives = |kind: StayPhase| {
            matches!(
                kind,
                StayPhase::Reserved | StayPhase::Prefilling | StayPhase::Decoding
            )
        };
        let candidates = self.stays.iter().filter(|(_, stay)| gives(stay.kind()));
        candidates
            .max_by_key(|(_, stay)| stay.arrival)
            .map(|(attempt, _)| *attempt)
    }
}
