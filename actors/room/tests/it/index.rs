//! The index of prefixes: fed in order, in gaps, and by a real ledger.

use proptest::prelude::*;
use room::{Ask, Attempt, BlockHash, CacheChange, Generation, Ledger, NodeId, PrefixIndex, RoomId, Taken};

use crate::room_kit::GATEWAY;

const A: NodeId = NodeId(11);
const B: NodeId = NodeId(12);

fn change(seq: u64, hash: u128, stored: bool) -> CacheChange {
    CacheChange {
        seq,
        hash: BlockHash(hash),
        stored,
    }
}

fn hashes(of: &[u128]) -> Vec<BlockHash> {
    of.iter().copied().map(BlockHash).collect()
}

fn overlaps(index: &PrefixIndex, of: &[u128]) -> Vec<(NodeId, u32)> {
    index.overlaps(&hashes(of)).into_iter().collect()
}

fn index() -> PrefixIndex {
    let mut index = PrefixIndex::default();
    index.worker_up(A, 4);
    index.worker_up(B, 4);
    index
}

#[test]
fn an_overlap_is_a_run_from_the_first_block() {
    let mut index = index();
    for (seq, hash) in (0..).zip([1, 2, 3]) {
        assert_eq!(index.apply(A, change(seq, hash, true)), Taken::Yes);
    }
    index.apply(B, change(0, 1, true));
    index.apply(B, change(1, 3, true));
    assert_eq!(overlaps(&index, &[1, 2, 3, 4]), [(A, 3), (B, 1)]);
    assert_eq!(overlaps(&index, &[2, 3]), [(A, 2)]);
    assert_eq!(overlaps(&index, &[9, 1]), []);
    index.apply(A, change(3, 1, false));
    assert_eq!(overlaps(&index, &[1, 2, 3]), [(B, 1)]);
    index.worker_down(B);
    assert_eq!(overlaps(&index, &[1]), []);
    assert_eq!(index.apply(B, change(2, 1, true)), Taken::No, "it is gone");
}

#[test]
fn a_gap_is_said_once_and_mended_by_a_list() {
    let mut index = index();
    index.apply(A, change(0, 1, true));
    assert_eq!(index.apply(A, change(0, 1, true)), Taken::No, "known");
    assert_eq!(index.apply(A, change(2, 3, true)), Taken::Gap);
    assert_eq!(
        index.apply(A, change(3, 4, true)),
        Taken::No,
        "a list is waited for"
    );
    assert_eq!(overlaps(&index, &[1]), [(A, 1)], "what is known stays");
    index.list(A, 5, &hashes(&[7, 8]));
    assert_eq!(
        (overlaps(&index, &[1]), overlaps(&index, &[7, 8])),
        (vec![], vec![(A, 2)])
    );
    assert_eq!(
        index.apply(A, change(4, 7, false)),
        Taken::No,
        "in the list already"
    );
    assert_eq!(index.apply(A, change(5, 7, false)), Taken::Yes);
    assert_eq!(overlaps(&index, &[8]), [(A, 1)]);
}

#[test]
fn nobody_has_more_contents_than_blocks() {
    let mut index = index();
    for seq in 0..4 {
        index.apply(A, change(seq, u128::from(seq), true));
    }
    assert_eq!(index.apply(A, change(4, 99, true)), Taken::Gap);
    index.list(A, 5, &hashes(&[1, 2, 3, 4, 5, 6]));
    assert_eq!(index.len(), 4);
}

fn attempt(seq: u64) -> Attempt {
    let room = RoomId {
        gateway: GATEWAY,
        seq,
    };
    Attempt {
        room,
        generation: Generation::FIRST,
    }
}

proptest! {
    /// Whatever a ledger does, and however little of its feed is kept, the index has what the ledger has.
    #[test]
    fn the_index_follows_a_ledger(
        prompts in proptest::collection::vec((0_u128..4, 1_u32..6), 1..40),
        kept in 1_usize..12,
    ) {
        let mut ledger = Ledger::new(8, 64);
        ledger.follow(kept);
        let mut index = PrefixIndex::default();
        index.worker_up(A, 8);
        for (seq, (prefix, blocks)) in (0..).zip(prompts) {
            let ask = Ask {
                blocks,
                shareable: blocks - 1,
                hashes: (0..u128::from(blocks)).map(|block| BlockHash(prefix * 100 + block)).collect(),
            };
            if ledger.grant(attempt(seq), &ask).is_ok() {
                ledger.complete(attempt(seq), blocks);
                ledger.close(attempt(seq));
            }
            while let Some(change) = ledger.poll_change() {
                if index.apply(A, change) == Taken::Gap {
                    let (next, hashes) = ledger.contents();
                    index.list(A, next, &hashes);
                }
            }
            let (_, contents) = ledger.contents();
            prop_assert_eq!(index.len(), contents.len());
            for hash in contents {
                prop_assert_eq!(index.overlaps(&[hash]).into_iter().collect::<Vec<_>>(), vec![(A, 1)]);
            }
        }
    }
}
