//! What ends many stays at once: a digest, and the end of a link.

use crate::host::{Host, HostCommand, StayCause, StayPhase};
use crate::id::{Attempt, NodeId};
use crate::time::Time;

impl Host {
    /// The owner's list is the truth: a stay that it does not list was closed by a message that never came.
    pub(super) fn on_digest(&mut self, now: Time, gateway: NodeId, n: u64, open: &[Attempt]) {
        let mut open = open.to_vec();
        open.sort_unstable();
        for attempt in self.open_stays_of(gateway) {
            if open.binary_search(&attempt).is_err() && !planted!(DigestIgnored) {
                self.counters.healed_by_digest += 1;
                self.leave(now, attempt, false, StayCause::NotInDigest);
            }
        }
        let held = self
            .stays
            .keys()
            .filter(|attempt| attempt.room.gateway == gateway)
            .copied()
            .collect();
        self.commands
            .push_back(HostCommand::AnswerDigest { gateway, n, held });
    }

    /// Nobody can be told any more, and nobody waits: the leases of that gateway end.
    pub(super) fn on_gateway_lost(&mut self, now: Time, gateway: NodeId) {
        if planted!(GatewayLossIgnored) {
            return;
        }
        for attempt in self.open_stays_of(gateway) {
            self.counters.ended_with_link += 1;
            self.leave(now, attempt, false, StayCause::GatewayLost);
        }
    }

    fn open_stays_of(&self, gateway: NodeId) -> Vec<Attempt> {
        let of_gateway = self
            .stays
            .iter()
            .filter(|(attempt, _)| attempt.room.gateway == gateway);
        of_gateway
            .filter(|(_, stay)| stay.kind() != StayPhase::Closing)
            .map(|(attempt, _)| *attempt)
            .collect()
    }
}
