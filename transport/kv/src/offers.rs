//! What stands for reading, and which of it is in flight. Pure: no clock, no I/O.

use std::collections::BTreeMap;

use crate::{BlockIndex, KvError, Refusal, TransferKey, transfer::validate_blocks};

/// What a source publishes and a reader must present.
#[derive(Clone, Eq, PartialEq, Debug)]
pub struct Offer {
    /// Whose blocks.
    pub key: TransferKey,
    /// Random, minted for this offer; whoever presents it may read.
    pub capability: u128,
    /// The blocks, in sequence order.
    pub blocks: Vec<BlockIndex>,
}

/// What a withdrawal found.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Withdrawal {
    /// Nothing is in flight: the blocks may be reused now.
    Done,
    /// Sends are in flight: [`OfferTable::unpin`] will say when the last has ended.
    Pending,
}

struct Entry {
    offer: Offer,
    in_flight: u32,
    withdrawn: bool,
}

/// The offers of one source with their sends in flight. An entry leaves the table only when it is withdrawn and has
/// no send in flight.
pub struct OfferTable {
    entries: BTreeMap<TransferKey, Entry>,
    limit: usize,
    region_blocks: u32,
}

impl OfferTable {
    /// A table of at most `limit` offers over a region of `region_blocks` blocks.
    pub fn new(limit: usize, region_blocks: u32) -> Self {
        Self {
            entries: BTreeMap::new(),
            limit,
            region_blocks,
        }
    }

    /// Offers held, withdrawn ones with sends in flight included.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no offer is held.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Sends in flight, over all offers.
    pub fn in_flight(&self) -> u64 {
        self.entries.values().map(|e| u64::from(e.in_flight)).sum()
    }

    /// Adds an offer.
    pub fn insert(&mut self, offer: Offer) -> Result<(), KvError> {
        validate_blocks(&offer.blocks, self.region_blocks)?;
        if self.entries.contains_key(&offer.key) {
            return Err(KvError::DuplicateOffer(offer.key));
        }
        if self.entries.len() >= self.limit {
            return Err(KvError::TooManyOffers { limit: self.limit });
        }
        self.entries.insert(
            offer.key,
            Entry {
                offer,
                in_flight: 0,
                withdrawn: false,
            },
        );
        Ok(())
    }

    /// The `count` blocks from position `from`, if the offer stands and the capability is its own. A withdrawn offer
    /// and a key never offered look the same.
    pub fn look_up(
        &self,
        key: TransferKey,
        capability: u128,
        from: u32,
        count: u32,
    ) -> Result<&[BlockIndex], Refusal> {
        let entry = self
            .entries
            .get(&key)
            .filter(|e| !e.withdrawn || planted!(ReadWithoutLease))
            .ok_or(Refusal::NoSuchOffer)?;
        if entry.offer.capability != capability {
            return Err(Refusal::WrongCapability);
        }
        let end = from
            .checked_add(count)
            .filter(|_| count > 0)
            .ok_or(Refusal::OutOfRange)?;
        entry
            .offer
            .blocks
            .get(from as usize..end as usize)
            .ok_or(Refusal::OutOfRange)
    }

    /// Whether an offer under this key may be read.
    pub fn stands(&self, key: TransferKey) -> bool {
        self.entries.get(&key).is_some_and(|e| !e.withdrawn)
    }

    /// Counts one more send in flight. Returns false, and changes nothing, for a key that is not held.
    pub fn pin(&mut self, key: TransferKey) -> bool {
        let pins = if planted!(PinCountedTwice) { 2 } else { 1 };
        self.entries.get_mut(&key).map(|e| e.in_flight += pins).is_some()
    }

    /// Counts one send as ended. True when that was the last of a withdrawn offer: its blocks may be reused, and the
    /// offer has left the table.
    pub fn unpin(&mut self, key: TransferKey) -> bool {
        let Some(entry) = self.entries.get_mut(&key) else {
            return false;
        };
        entry.in_flight = entry.in_flight.saturating_sub(1);
        let last = entry.withdrawn && entry.in_flight == 0;
        if last {
            self.entries.remove(&key);
        }
        last
    }

    /// Takes every pin off, as nothing can be in flight any more; the withdrawn offers that waited for that.
    pub fn unpin_all(&mut self) -> Vec<TransferKey> {
        let waited: Vec<_> = self
            .entries
            .iter()
            .filter(|(_, e)| e.withdrawn)
            .map(|(&key, _)| key)
            .collect();
        self.entries.retain(|_, e| !e.withdrawn);
        for entry in self.entries.values_mut() {
            entry.in_flight = 0;
        }
        waited
    }

    /// Ends an offer; a key that is not held is done at once.
    pub fn withdraw(&mut self, key: TransferKey) -> Withdrawal {
        match self.entries.get_mut(&key) {
            Some(entry) if entry.in_flight > 0 => {
                entry.withdrawn = true;
                Withdrawal::Pending
            }
            Some(entry) if planted!(ReadWithoutLease) => {
                entry.withdrawn = true;
                Withdrawal::Done
            }
            _ => {
                self.entries.remove(&key);
                Withdrawal::Done
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: TransferKey = TransferKey {
        gateway: 7,
        seq: 1,
        generation: 2,
    };

    fn table() -> OfferTable {
        let mut table = OfferTable::new(2, 100);
        table
            .insert(Offer {
                key: KEY,
                capability: 42,
                blocks: vec![5, 6, 9],
            })
            .unwrap();
        table
    }

    fn check(from: u32, count: u32, want: Result<&[u32], Refusal>) {
        assert_eq!(table().look_up(KEY, 42, from, count), want);
    }

    #[test]
    fn a_range_is_inside_the_offer_or_refused() {
        check(0, 3, Ok(&[5, 6, 9]));
        check(2, 1, Ok(&[9]));
        check(0, 4, Err(Refusal::OutOfRange));
        check(0, 0, Err(Refusal::OutOfRange));
        check(u32::MAX, 2, Err(Refusal::OutOfRange));
    }

    #[test]
    fn key_and_capability_must_match() {
        let table = table();
        assert!(table.stands(KEY) && !table.is_empty());
        let older = TransferKey { generation: 1, ..KEY };
        assert!(!table.stands(older));
        assert_eq!(table.look_up(older, 42, 0, 1), Err(Refusal::NoSuchOffer));
        assert_eq!(table.look_up(KEY, 43, 0, 1), Err(Refusal::WrongCapability));
    }

    #[test]
    fn a_withdrawn_offer_is_unreadable_at_once_and_ends_with_its_last_send() {
        let mut table = table();
        assert!(table.pin(KEY) && table.pin(KEY));
        assert_eq!(table.withdraw(KEY), Withdrawal::Pending);
        assert_eq!(table.withdraw(KEY), Withdrawal::Pending);
        assert_eq!(table.look_up(KEY, 42, 0, 1), Err(Refusal::NoSuchOffer));
        assert_eq!((table.len(), table.in_flight()), (1, 2));
        assert!(!table.stands(KEY) && !table.unpin(KEY));
        assert_eq!((table.is_empty(), table.in_flight()), (false, 1));
        assert!(table.unpin(KEY));
        assert!(table.is_empty() && table.in_flight() == 0);
        assert_eq!(table.withdraw(KEY), Withdrawal::Done);
        assert!(!table.pin(KEY) && !table.unpin(KEY));
    }

    #[test]
    fn a_send_that_ends_before_the_withdrawal_leaves_the_offer_standing() {
        let mut table = table();
        table.pin(KEY);
        assert!(!table.unpin(KEY));
        assert!(table.look_up(KEY, 42, 0, 3).is_ok());
        assert_eq!(table.withdraw(KEY), Withdrawal::Done);
        assert!(table.is_empty(), "no place is taken by what is done");
    }

    #[test]
    fn all_pins_come_off_at_once() {
        let mut table = table();
        table.pin(KEY);
        assert_eq!(table.unpin_all(), []);
        table.pin(KEY);
        table.withdraw(KEY);
        assert_eq!(table.unpin_all(), [KEY]);
        assert!(table.is_empty());
    }

    #[test]
    fn inserts_are_bounded_and_checked() {
        let mut table = table();
        let offer = |seq, blocks: &[u32]| Offer {
            key: TransferKey { seq, ..KEY },
            capability: 0,
            blocks: blocks.to_vec(),
        };
        assert_eq!(table.insert(offer(1, &[1])), Err(KvError::DuplicateOffer(KEY)));
        assert!(matches!(table.insert(offer(2, &[])), Err(KvError::BadBlocks(_))));
        assert!(matches!(
            table.insert(offer(2, &[100])),
            Err(KvError::BadBlocks(_))
        ));
        assert!(matches!(
            table.insert(offer(2, &[3, 3])),
            Err(KvError::BadBlocks(_))
        ));
        assert_eq!(table.insert(offer(2, &[3])), Ok(()));
        assert_eq!(
            table.insert(offer(3, &[4])),
            Err(KvError::TooManyOffers { limit: 2 })
        );
    }
}
