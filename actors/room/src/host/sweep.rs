//! What ends many stays at once: a digest, and the end of a link.

use std::collections::BTreeMap;

use crate::host::{Host, HostCommand, Kept, StayCause, StayPhase};
use crate::id::{Attempt, NodeId};
use crate::time::Time;

impl Host {
    /// The owner's list is the truth: a stay that it does not list was closed by a message that never came.
    /// What the stays that it lists may do, it says once more.
    pub(super) fn on_digest(&mut self, now: Time, gateway: NodeId, n: u64, open: &[Kept]) {
        let open: BTreeMap<Attempt, u32> = open.iter().map(|kept| (kept.attempt, kept.until)).collect();
        for attempt in self.open_stays_of(gateway) {
            match open.get(&attempt) {
                Some(until) => {
                    self.allow(now, attempt, *until);
                }
                None if planted!(DigestIgnored) => {}
                None => {
                    self.counters.healed_by_digest += 1;
                    self.leave(now, attempt, false, StayCause::NotInDigest);
                }
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
