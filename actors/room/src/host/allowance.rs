//! How far a stay's answer may go. Its owner says so with the job, then as the answer's reader reads, and again with every digest.

use crate::host::{Host, HostCommand, StayPhase};
use crate::id::Attempt;
use crate::ledger::Hold;
use crate::time::Time;

impl Host {
    /// The open stay may go so far; whether that is further than before. What it waited for was its reader: its clock starts anew.
    pub(super) fn allow(&mut self, now: Time, attempt: Attempt, until: u32) -> bool {
        let Some(stay) = self.stays.get_mut(&attempt) else {
            return false;
        };
        if until <= stay.until {
            return false;
        }
        let waited = stay.is_ahead() && stay.kind() == StayPhase::Decoding;
        stay.until = until;
        if stay.whole && self.ledger.holds(attempt).has(Hold::Engine) {
            self.commands.push_back(HostCommand::Allow { attempt, until });
        }
        if waited {
            self.rearm(now, attempt);
        }
        true
    }
}
