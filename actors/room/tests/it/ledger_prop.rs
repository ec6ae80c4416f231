//! The ledger under random operations, against a model that knows only who may touch what.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, prop_oneof};
use proptest::{prop_assert, prop_assert_eq, proptest};

use room::{Ask, Attempt, BlockHash, BlockId, Hold, Ledger};

use crate::host_kit::attempt;

#[derive(Copy, Clone, Debug)]
enum Op {
    Grant {
        seq: u64,
        text: u128,
        blocks: u32,
        shareable: u32,
    },
    Grow {
        seq: u64,
        n: u32,
    },
    Hold {
        seq: u64,
        hold: Hold,
    },
    Release {
        seq: u64,
        hold: Hold,
    },
    Complete {
        seq: u64,
        blocks: u32,
    },
    Close {
        seq: u64,
    },
}

const SEQS: u64 = 8;

fn holds() -> impl Strategy<Value = Hold> {
    prop_oneof![Just(Hold::Engine), Just(Hold::Read), Just(Hold::Offer)]
}

fn ops() -> impl Strategy<Value = Op> {
    let seq = 1..=SEQS;
    prop_oneof![
        (seq.clone(), 0..3_u128, 1..9_u32, 0..9_u32).prop_map(|(seq, text, blocks, shareable)| Op::Grant {
            seq,
            text,
            blocks,
            shareable
        }),
        (seq.clone(), 0..4_u32).prop_map(|(seq, n)| Op::Grow { seq, n }),
        (seq.clone(), holds()).prop_map(|(seq, hold)| Op::Hold { seq, hold }),
        (seq.clone(), holds()).prop_map(|(seq, hold)| Op::Release { seq, hold }),
        (seq.clone(), 0..9_u32).prop_map(|(seq, blocks)| Op::Complete { seq, blocks }),
        seq.prop_map(|seq| Op::Close { seq }),
    ]
}

/// What a lease has by right or by hold, and how many of its leading blocks it only reads.
struct Has {
    blocks: Vec<BlockId>,
    reads: usize,
}

struct Model {
    ledger: Ledger,
    /// The next generation of each room, so that a grant is never refused as stale.
    generations: BTreeMap<u64, u32>,
    has: BTreeMap<Attempt, Has>,
}

impl Model {
    fn current(&self, seq: u64) -> Attempt {
        attempt(seq, self.generations.get(&seq).copied().unwrap_or(0))
    }

    fn run(&mut self, op: Op) {
        match op {
            Op::Grant {
                seq,
                text,
                blocks,
                shareable,
            } => self.grant(seq, text, blocks, shareable),
            Op::Grow { seq, n } => {
                let about = self.current(seq);
                if let Ok(blocks) = self.ledger.grow(about, n) {
                    self.check_fresh(&blocks);
                    if let Some(has) = self.has.get_mut(&about) {
                        has.blocks.extend(blocks);
                    }
                }
            }
            Op::Hold { seq, hold } => drop(self.ledger.hold(self.current(seq), hold)),
            Op::Release { seq, hold } => drop(self.ledger.release(self.current(seq), hold)),
            Op::Complete { seq, blocks } => {
                let about = self.current(seq);
                self.ledger.complete(about, blocks);
                if let Some(has) = self.has.get_mut(&about) {
                    has.reads = has.reads.max(blocks as usize);
                }
            }
            Op::Close { seq } => drop(self.ledger.close(self.current(seq))),
        }
        let ledger = &self.ledger;
        self.has.retain(|about, _| !ledger.blocks(*about).is_empty());
    }

    fn grant(&mut self, seq: u64, text: u128, blocks: u32, shareable: u32) {
        let generation = self.generations.get(&seq).copied().unwrap_or(0) + 1;
        let hashes = (0..u128::from(blocks))
            .map(|i| BlockHash(text * 100 + i))
            .collect();
        let about = attempt(seq, generation);
        let Ok(grant) = self.ledger.grant(
            about,
            &Ask {
                blocks,
                shareable,
                hashes,
            },
        ) else {
            return;
        };
        assert_eq!(grant.blocks.len(), blocks as usize);
        assert!(grant.cached <= shareable.min(blocks));
        let (shared, fresh) = grant.blocks.split_at(grant.cached as usize);
        self.check_fresh(fresh);
        for (other, has) in &self.has {
            let written = has.blocks.iter().skip(has.reads);
            assert!(
                written.clone().all(|block| !shared.contains(block)),
                "{about} shares what {other} writes"
            );
        }
        self.generations.insert(seq, generation);
        self.has.insert(
            about,
            Has {
                reads: grant.cached as usize,
                blocks: grant.blocks,
            },
        );
    }

    /// The canary: what is given to be written is in nobody's reach.
    fn check_fresh(&self, fresh: &[BlockId]) {
        for (other, has) in &self.has {
            assert!(
                fresh.iter().all(|block| !has.blocks.contains(block)),
                "{other} still has one of {fresh:?}"
            );
        }
    }
}

proptest! {
    #[test]
    fn blocks_are_conserved_and_never_given_twice(ops in vec(ops(), 0..300)) {
        let mut model = Model { ledger: Ledger::new(8, 64), generations: BTreeMap::new(), has: BTreeMap::new() };
        for op in ops {
            model.run(op);
            prop_assert!(model.ledger.occupancy().adds_up());
            prop_assert_eq!(model.ledger.audit(), Ok(()));
        }
        let left: Vec<Attempt> = model.has.keys().copied().collect();
        for about in left {
            model.ledger.close(about);
            for hold in Hold::ALL {
                model.ledger.release(about, hold);
            }
        }
        let now = model.ledger.occupancy();
        prop_assert!(now.is_quiescent(), "INV-08: {now:?}");
        prop_assert_eq!(model.ledger.grant(attempt(99, 1), &Ask { blocks: 8, ..Ask::default() }).map(|grant| grant.cached), Ok(0));
    }
}
