//! Many reads between many workers with every fault at once: each ends once, every pin comes off, no byte lands where it
//! must not, and the seed decides all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kv::{KvEvent, KvTransfer, Offer, Read, ReadId, TransferKey};
use rand::Rng;

use super::super::{Config, Death, Faults, Network, Place};
use super::side::{BLOCK_BYTES, BLOCKS, CAPABILITY, Side, key, pass};
use crate::random::{Random, stream};

const WORKERS: u32 = 4;
/// Blocks that nobody has.
const FREE: u8 = 0xf0;

/// Workers whose blocks are reused as soon as the transfer says so.
struct Storm {
    network: Network,
    workers: Vec<Owner>,
    random: Random,
    last: u64,
}

/// A worker's owner: who has which block.
struct Owner {
    side: Side,
    free: BTreeSet<u32>,
    offers: Vec<(TransferKey, Vec<u32>)>,
    leaving: Vec<(TransferKey, Vec<u32>)>,
    reads: Vec<(u64, Vec<u32>)>,
    heard: usize,
    ended: u64,
    well: u64,
}

impl Owner {
    fn new(network: &Network, place: u32) -> Self {
        let side = Side::new(network, Place(place), BLOCK_BYTES);
        (0..BLOCKS).for_each(|block| side.fill(block, FREE));
        Self {
            side,
            free: (0..BLOCKS).collect(),
            offers: Vec::new(),
            leaving: Vec::new(),
            reads: Vec::new(),
            heard: 0,
            ended: 0,
            well: 0,
        }
    }

    fn take(&mut self, count: usize) -> Option<Vec<u32>> {
        let blocks: Vec<_> = self.free.iter().copied().take(count).collect();
        if blocks.len() < count {
            return None;
        }
        for block in &blocks {
            assert!(
                self.side.holds(*block, FREE),
                "block {block} was written to while it was free"
            );
            self.free.remove(block);
        }
        Some(blocks)
    }

    fn give(&mut self, blocks: Vec<u32>) {
        for block in blocks {
            self.side.fill(block, FREE);
            self.free.insert(block);
        }
    }

    fn hear(&mut self) {
        let told = self.side.told();
        for (_, event) in told.into_iter().skip(self.heard) {
            self.heard += 1;
            if let KvEvent::Withdrawn { key } = event {
                let at = self.leaving.iter().position(|(left, _)| *left == key).unwrap();
                let (_, blocks) = self.leaving.swap_remove(at);
                self.give(blocks);
            } else if let KvEvent::ReadEnded { id, result } = event {
                let is_it = |(read, _): &(u64, Vec<u32>)| ReadId(*read) == id;
                let at = self.reads.iter().position(is_it).unwrap();
                let (_, blocks) = self.reads.swap_remove(at);
                if result.is_ok() {
                    self.well += 1;
                    let whole = blocks.iter().all(|block| !self.side.holds(*block, FREE));
                    assert!(whole, "a read that ended well brought nothing");
                }
                self.ended += 1;
                self.give(blocks);
            }
        }
    }
}

impl Storm {
    fn new(seed: u64, share: f64) -> Self {
        let network = Network::new(Config::default(), seed);
        network.set_default_faults(Faults::all(share));
        Self {
            workers: (0..WORKERS).map(|place| Owner::new(&network, place)).collect(),
            network,
            random: stream(seed, "storm"),
            last: 0,
        }
    }

    fn offer(&mut self) {
        let (at, count) = (self.random.random_range(0..4), self.random.random_range(1..9));
        let owner = &mut self.workers[at];
        let Some(blocks) = owner.take(count) else { return };
        self.last += 1;
        for block in &blocks {
            owner
                .side
                .fill(*block, u8::try_from(self.last % 200).unwrap() + 1);
        }
        let offer = Offer {
            key: key(self.last),
            capability: CAPABILITY,
            blocks: blocks.clone(),
        };
        owner.side.transfer.offer(offer).unwrap();
        owner.offers.push((key(self.last), blocks));
    }

    fn read(&mut self) {
        let (from, to) = (self.random.random_range(0..4), self.random.random_range(0..4));
        let Some((key, blocks)) = self.workers[from].offers.last().cloned() else {
            return;
        };
        let source = self.workers[from].side.transfer.address();
        let owner = &mut self.workers[to];
        let Some(into) = owner.take(blocks.len()) else {
            return;
        };
        self.last += 1;
        let read = Read {
            id: ReadId(self.last),
            key,
            capability: CAPABILITY,
            source,
            from: 0,
            into: into.clone(),
        };
        owner.side.transfer.read(read).unwrap();
        owner.reads.push((self.last, into));
    }

    fn act(&mut self) {
        let at: usize = self.random.random_range(0..4);
        let (a, b) = (
            Place(self.random.random_range(0..WORKERS)),
            Place(self.random.random_range(0..WORKERS)),
        );
        match self.random.random_range(0..100) {
            0..30 => self.offer(),
            30..70 => self.read(),
            70..85 => {
                let owner = &mut self.workers[at];
                if !owner.offers.is_empty() {
                    let (key, blocks) = owner.offers.remove(0);
                    owner.leaving.push((key, blocks));
                    owner.side.transfer.withdraw(key);
                }
            }
            85..94 => {
                if let Some((id, _)) = self.workers[at].reads.last() {
                    self.workers[at].side.transfer.cancel(ReadId(*id));
                }
            }
            94 => self.network.cut(a, b),
            95..97 => self.network.heal(a, b),
            97 => self.network.freeze(a),
            98 => self.network.thaw(a),
            _ => {
                let death = if at < 2 { Death::Crash } else { Death::Silent };
                self.network.kill(a, death);
                let place = a.0 as usize;
                self.workers[place] = Owner::new(&self.network, a.0);
            }
        }
    }

    /// Everything comes back once the faults are over.
    async fn settle(&mut self) -> (u64, u64) {
        self.network.calm();
        for owner in &mut self.workers {
            for (key, blocks) in std::mem::take(&mut owner.offers) {
                owner.leaving.push((key, blocks));
                owner.side.transfer.withdraw(key);
            }
        }
        pass(60_000).await;
        for owner in &mut self.workers {
            owner.hear();
            assert_eq!(owner.free.len(), BLOCKS as usize, "every block came back");
            assert!(
                (0..BLOCKS).all(|block| owner.side.holds(block, FREE)),
                "and is untouched"
            );
        }
        assert_eq!(self.network.violations(), Vec::<String>::new());
        assert_eq!(self.network.in_flight(), 0);
        let sum = |of: fn(&Owner) -> u64| self.workers.iter().map(of).sum();
        (sum(|owner| owner.ended), sum(|owner| owner.well))
    }
}

/// A storm of `acts` acts: its fingerprint, how many faults there were, and how many reads ended, and ended well.
async fn storm(seed: u64, acts: u32, share: f64) -> (u64, BTreeMap<&'static str, u64>, u64, u64) {
    let mut storm = Storm::new(seed, share);
    for _ in 0..acts {
        let wait = storm.random.random_range(0..60);
        pass(wait).await;
        storm.workers.iter_mut().for_each(Owner::hear);
        storm.act();
    }
    let (ended, well) = storm.settle().await;
    (storm.network.fingerprint(), storm.network.counts(), ended, well)
}

#[tokio::test(start_paused = true)]
async fn every_read_ends_once_and_every_block_comes_back() {
    let (mut all, mut ended, mut well) = (BTreeMap::new(), 0, 0);
    for seed in 0..20 {
        let (_, counted, reads, good) = storm(seed, 1_000, 0.6).await;
        for (fault, count) in counted {
            *all.entry(fault).or_insert(0) += count;
        }
        ended += reads;
        well += good;
    }
    assert!(
        ended > 500 && well > 50 && well < ended,
        "{well} of {ended} reads ended well"
    );
    assert_eq!(all.len(), 13, "every fault struck: {all:?}");
}

#[tokio::test(start_paused = true)]
async fn the_seed_decides_everything() {
    let first = storm(7, 500, 0.5).await;
    let again = storm(7, 500, 0.5).await;
    let other = storm(8, 500, 0.5).await;
    assert_eq!(first, again);
    assert_ne!(first.0, other.0);
}

#[tokio::test(start_paused = true)]
async fn the_task_ends_with_the_network() {
    let metrics = tokio::runtime::Handle::current().metrics();
    let network = Network::new(Config::default(), 1);
    let side = Side::new(&network, Place(1), BLOCK_BYTES);
    assert_eq!(metrics.num_alive_tasks(), 1);
    drop(network);
    pass(1).await;
    assert_eq!(metrics.num_alive_tasks(), 1, "a transfer is left");
    drop(side);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(metrics.num_alive_tasks(), 0);
}
