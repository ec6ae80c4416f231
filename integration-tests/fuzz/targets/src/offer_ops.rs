//! Lists of operations on a source's table of offers, against a model of it.

use std::collections::BTreeMap;

use kv::{KvError, Offer, OfferTable, Refusal, TransferKey, Withdrawal};

/// Offers that the table may hold.
const LIMIT: usize = 4;
/// Blocks of the region.
const BLOCKS: u32 = 32;

/// Every four bytes are one operation.
///
/// # Panics
/// Where something can be read that does not stand, or with another capability, or other blocks than were offered; the last send of a
/// withdrawn offer is not told exactly once; or there are more offers than allowed.
pub fn offer_ops(data: &[u8]) {
    let mut model = Model {
        table: OfferTable::new(LIMIT, BLOCKS),
        offers: BTreeMap::new(),
    };
    for op in data.chunks_exact(4).take(2_000) {
        model.run([op[0], op[1], op[2], op[3]]);
        model.check();
    }
    model.end();
}

struct Standing {
    offer: Offer,
    in_flight: u64,
    withdrawn: bool,
}

struct Model {
    table: OfferTable,
    offers: BTreeMap<TransferKey, Standing>,
}

fn key(byte: u8) -> TransferKey {
    TransferKey {
        gateway: 1,
        seq: u64::from(byte % 6),
        generation: u32::from(byte / 6 % 2),
    }
}

impl Model {
    fn run(&mut self, [kind, who, a, b]: [u8; 4]) {
        let key = key(who);
        match kind % 8 {
            0 | 1 => self.insert(key, a, b),
            2 | 3 => self.look_up(key, a, b),
            4 => {
                let standing = self.offers.get_mut(&key);
                assert_eq!(self.table.pin(key), standing.is_some());
                standing.into_iter().for_each(|standing| standing.in_flight += 1);
            }
            5 => self.unpin(key),
            6 => self.withdraw(key),
            _ if a == 0 => self.unpin_all(),
            _ => self.unpin(key),
        }
    }

    fn insert(&mut self, key: TransferKey, a: u8, b: u8) {
        let blocks: Vec<u32> = (0..u32::from(a % 5))
            .map(|at| u32::from(b) % 40 + at * u32::from(a >> 6))
            .collect();
        let mut distinct = blocks.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let good =
            !blocks.is_empty() && distinct.len() == blocks.len() && blocks.iter().all(|at| *at < BLOCKS);
        let offer = Offer {
            key,
            capability: u128::from(b % 3),
            blocks,
        };
        let inserted = self.table.insert(offer.clone());
        match inserted {
            Ok(()) => {
                assert!(
                    good && !self.offers.contains_key(&key) && self.offers.len() < LIMIT,
                    "{offer:?}"
                );
                let standing = Standing {
                    offer,
                    in_flight: 0,
                    withdrawn: false,
                };
                self.offers.insert(key, standing);
            }
            Err(KvError::BadBlocks(_)) => assert!(!good, "{offer:?}"),
            Err(KvError::DuplicateOffer(_)) => assert!(self.offers.contains_key(&key)),
            Err(KvError::TooManyOffers { .. }) => assert_eq!(self.offers.len(), LIMIT),
            Err(error) => panic!("{error}"),
        }
    }

    fn look_up(&self, key: TransferKey, a: u8, b: u8) {
        let (from, count) = (u32::from(a % 7), u32::from(a / 7 % 7));
        let from = if a > 250 { u32::MAX } else { from };
        let capability = u128::from(b % 3);
        let found = self.table.look_up(key, capability, from, count);
        let standing = self.offers.get(&key).filter(|standing| !standing.withdrawn);
        let Some(standing) = standing else {
            return assert_eq!(found, Err(Refusal::NoSuchOffer));
        };
        if standing.offer.capability != capability {
            return assert_eq!(found, Err(Refusal::WrongCapability));
        }
        let wanted: Vec<u32> = standing
            .offer
            .blocks
            .iter()
            .skip(from as usize)
            .take(count as usize)
            .copied()
            .collect();
        if count > 0 && wanted.len() == count as usize {
            assert_eq!(found, Ok(&wanted[..]));
        } else {
            assert_eq!(found, Err(Refusal::OutOfRange));
        }
    }

    fn unpin(&mut self, key: TransferKey) {
        let last = self.table.unpin(key);
        let Some(standing) = self.offers.get_mut(&key) else {
            return assert!(!last);
        };
        standing.in_flight = standing.in_flight.saturating_sub(1);
        assert_eq!(last, standing.withdrawn && standing.in_flight == 0, "{key}");
        if last {
            self.offers.remove(&key);
        }
    }

    fn withdraw(&mut self, key: TransferKey) {
        let withdrawal = self.table.withdraw(key);
        match self.offers.get_mut(&key) {
            Some(standing) if standing.in_flight > 0 => {
                assert_eq!(withdrawal, Withdrawal::Pending, "{key}");
                standing.withdrawn = true;
            }
            _ => {
                assert_eq!(withdrawal, Withdrawal::Done, "{key}");
                self.offers.remove(&key);
            }
        }
    }

    fn unpin_all(&mut self) {
        let waited = self.table.unpin_all();
        let withdrawn = self.offers.iter().filter(|(_, standing)| standing.withdrawn);
        assert_eq!(waited, withdrawn.map(|(key, _)| *key).collect::<Vec<_>>());
        self.offers.retain(|_, standing| !standing.withdrawn);
        self.offers
            .values_mut()
            .for_each(|standing| standing.in_flight = 0);
    }

    fn check(&self) {
        assert_eq!(
            (self.table.len(), self.table.is_empty()),
            (self.offers.len(), self.offers.is_empty())
        );
        let in_flight: u64 = self.offers.values().map(|standing| standing.in_flight).sum();
        assert_eq!(self.table.in_flight(), in_flight);
        for (key, standing) in &self.offers {
            assert_eq!(self.table.stands(*key), !standing.withdrawn, "{key}");
        }
    }

    /// All is withdrawn and every send ends: nothing is held.
    fn end(mut self) {
        for (key, standing) in std::mem::take(&mut self.offers) {
            let mut gone = self.table.withdraw(key) == Withdrawal::Done;
            for _ in 0..standing.in_flight {
                assert!(!gone, "{key}: told twice");
                gone = self.table.unpin(key);
            }
            assert!(gone, "{key} is never told");
        }
        assert!(self.table.is_empty());
    }
}
