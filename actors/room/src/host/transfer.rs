//! Reports of the KV transfer.

use crate::host::{Host, Phase, StayCause, ToOwner, TransferInput};
use crate::id::Attempt;
use crate::ledger::Hold;
use crate::outcome::AttemptError;
use crate::time::Time;

impl Host {
    pub(super) fn on_transfer(&mut self, now: Time, attempt: Attempt, event: TransferInput) {
        let hold = match event {
            TransferInput::Offered | TransferInput::Withdrawn => Hold::Offer,
            TransferInput::ReadEnded { .. } => Hold::Read,
        };
        let phase = self.stays.get(&attempt).map(|stay| stay.phase());
        let Some(phase) = phase.filter(|_| self.ledger.holds(attempt).has(hold)) else {
            self.counters.late_reports += 1;
            return;
        };
        if event == TransferInput::Offered {
            if phase == Phase::Published {
                self.tell(attempt, ToOwner::Published);
            }
            return;
        }
        self.ledger.release(attempt, hold);
        match (phase, event) {
            (Phase::Closing { .. }, _) => self.settle(now, attempt),
            (_, TransferInput::ReadEnded { ok: true }) => self.pulled(now, attempt, StayCause::Transfer),
            _ => self.fail(now, attempt, AttemptError::PullFailed),
        }
    }
}
