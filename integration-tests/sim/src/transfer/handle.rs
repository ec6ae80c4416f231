//! One worker's transfer, as its owner sees it.

use kv::{KvError, KvTransfer, Offer, Read, ReadId, SourceAddress, Totals, TransferKey};

use super::{Network, members::MemberId};

/// One incarnation's transfer. Dropping it is its orderly end; after [`Network::kill`] it is nothing any more.
pub(crate) struct SimTransfer {
    pub(super) network: Network,
    pub(super) id: MemberId,
}

impl KvTransfer for SimTransfer {
    fn address(&self) -> SourceAddress {
        self.id.address()
    }

    fn offer(&self, offer: Offer) -> Result<(), KvError> {
        self.network.with(|world| world.offer(self.id, offer))
    }

    fn withdraw(&self, key: TransferKey) {
        self.network.with(|world| world.withdraw(self.id, key));
    }

    fn read(&self, read: Read) -> Result<(), KvError> {
        self.network.with(|world| world.start_read(self.id, read))
    }

    fn cancel(&self, id: ReadId) {
        self.network.with(|world| world.cancel(self.id, id));
    }

    fn totals(&self) -> Totals {
        self.network.with(|world| {
            let member = world.members.get(&self.id);
            member.map_or_else(Totals::default, |member| member.account.totals())
        })
    }
}

impl Drop for SimTransfer {
    fn drop(&mut self) {
        self.network.with(|world| world.leave(self.id));
    }
}
