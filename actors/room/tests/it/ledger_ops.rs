//! The ledger, one rule at a time.

use room::{Ask, BlockHash, BlockId, Closed, Hold, Ledger, Refusal};

use crate::host_kit::attempt;

fn ask(blocks: u32, names: &[u128]) -> Ask {
    let hashes: Vec<_> = names.iter().copied().map(BlockHash).collect();
    Ask {
        blocks,
        shareable: blocks,
        hashes,
    }
}

fn check(ledger: &Ledger, expected: [u32; 4]) {
    let now = ledger.occupancy();
    assert_eq!(
        [now.free, now.leased, now.cached, now.quarantined],
        expected,
        "free, leased, cached, quarantined"
    );
    ledger.audit().unwrap();
}

/// A pool of four blocks in which 1#1 has left the blocks 0 and 1 as cache.
fn with_cache() -> Ledger {
    let mut ledger = Ledger::new(4, 16);
    ledger.grant(attempt(1, 1), &ask(3, &[10, 11])).unwrap();
    ledger.complete(attempt(1, 1), 2);
    assert_eq!(ledger.close(attempt(1, 1)), Closed::Returned);
    check(&ledger, [2, 0, 2, 0]);
    ledger
}

#[test]
fn shared_blocks_come_back_with_the_last_lease() {
    let mut ledger = with_cache();
    let second = ledger.grant(attempt(2, 1), &ask(3, &[10, 11])).unwrap();
    let third = ledger.grant(attempt(3, 1), &ask(2, &[10, 11])).unwrap();
    assert_eq!((second.cached, third.cached), (2, 2));
    assert_eq!(second.blocks[..2], third.blocks[..]);
    ledger.close(attempt(2, 1));
    check(&ledger, [2, 2, 0, 0]);
    ledger.close(attempt(3, 1));
    check(&ledger, [2, 0, 2, 0]);
}

#[test]
fn only_a_leading_run_is_shared() {
    let mut ledger = with_cache();
    assert_eq!(ledger.grant(attempt(2, 1), &ask(2, &[99, 11])).unwrap().cached, 0);
    let half = Ask {
        shareable: 1,
        ..ask(2, &[10, 11])
    };
    assert_eq!(ledger.grant(attempt(3, 1), &half).unwrap().cached, 1);
}

#[test]
fn the_tail_of_a_prefix_is_evicted_before_its_head() {
    check_tail_first(with_cache());

    let mut ledger = with_cache();
    ledger.grant(attempt(1, 2), &ask(2, &[10, 11])).unwrap();
    assert!(ledger.hold(attempt(1, 2), Hold::Offer));
    ledger.close(attempt(1, 2));
    ledger.release(attempt(1, 2), Hold::Offer);
    check_tail_first(ledger);
}

fn check_tail_first(mut ledger: Ledger) {
    ledger.grant(attempt(2, 1), &ask(3, &[])).unwrap();
    check(&ledger, [0, 3, 1, 0]);
    let shared = ledger.grant(attempt(3, 1), &ask(1, &[10])).unwrap();
    assert_eq!((shared.blocks, shared.cached), (vec![BlockId(0)], 1));
}

#[test]
fn cache_that_is_shared_makes_no_room() {
    let mut ledger = with_cache();
    assert_eq!(ledger.grant(attempt(2, 1), &ask(4, &[10, 11])).unwrap().cached, 2);
    check(&ledger, [0, 4, 0, 0]);
    assert_eq!(
        ledger.grant(attempt(3, 1), &ask(1, &[])).unwrap_err(),
        Refusal::NoBlocks
    );
}

#[test]
fn a_held_block_is_nobodys_until_the_last_proof() {
    let mut ledger = Ledger::new(2, 16);
    let held = ledger.grant(attempt(1, 1), &ask(2, &[10])).unwrap();
    assert!(ledger.hold(attempt(1, 1), Hold::Engine));
    assert!(ledger.hold(attempt(1, 1), Hold::Offer));
    assert_eq!(ledger.close(attempt(1, 1)), Closed::Quarantined);
    check(&ledger, [0, 0, 0, 2]);
    assert_eq!(
        ledger.grant(attempt(2, 1), &ask(1, &[])).unwrap_err(),
        Refusal::NoBlocks
    );
    assert_eq!(ledger.returning(attempt(1, 1)), 2);
    assert!(ledger.release(attempt(1, 1), Hold::Engine));
    assert!(
        !ledger.release(attempt(1, 1), Hold::Engine),
        "the same proof twice"
    );
    check(&ledger, [0, 0, 0, 2]);
    assert!(ledger.release(attempt(1, 1), Hold::Offer));
    check(&ledger, [2, 0, 0, 0]);
    assert_eq!(
        ledger.grant(attempt(2, 1), &ask(2, &[])).unwrap().blocks,
        held.blocks
    );
}

/// Who holds it only reads it, so it can be read by others too; but it cannot be emptied.
#[test]
fn a_held_block_with_a_name_is_shared() {
    let mut ledger = Ledger::new(3, 16);
    ledger.grant(attempt(1, 1), &ask(2, &[10])).unwrap();
    ledger.complete(attempt(1, 1), 1);
    assert!(ledger.hold(attempt(1, 1), Hold::Offer));
    ledger.close(attempt(1, 1));
    check(&ledger, [1, 0, 0, 2]);
    let shared = ledger.grant(attempt(2, 1), &ask(2, &[10])).unwrap();
    assert_eq!((shared.blocks[0], shared.cached), (BlockId(0), 1));
    check(&ledger, [0, 2, 0, 1]);
    ledger.close(attempt(2, 1));
    check(&ledger, [1, 0, 0, 2]);
    ledger.release(attempt(1, 1), Hold::Offer);
    check(&ledger, [2, 0, 1, 0]);
}

#[test]
fn a_last_proof_returns_what_nobody_else_has() {
    let mut ledger = with_cache();
    for seq in 2..=3 {
        ledger.grant(attempt(seq, 1), &ask(3, &[10, 11])).unwrap();
        assert!(ledger.hold(attempt(seq, 1), Hold::Engine));
        assert_eq!(ledger.returning(attempt(seq, 1)), 0, "it is open");
    }
    ledger.close(attempt(2, 1));
    assert_eq!(ledger.returning(attempt(2, 1)), 1, "two are leased to another");
    ledger.close(attempt(3, 1));
    assert_eq!(ledger.returning(attempt(2, 1)), 1, "two are held by another");
    ledger.release(attempt(2, 1), Hold::Engine);
    assert_eq!(ledger.returning(attempt(3, 1)), 3);
}

#[test]
fn a_closed_lease_can_neither_grow_nor_be_held_nor_name_its_contents() {
    let mut ledger = Ledger::new(4, 16);
    ledger.grant(attempt(1, 1), &ask(1, &[10])).unwrap();
    assert!(ledger.hold(attempt(1, 1), Hold::Read));
    ledger.close(attempt(1, 1));
    assert_eq!(ledger.grow(attempt(1, 1), 1).unwrap_err(), Refusal::Stale);
    assert!(!ledger.hold(attempt(1, 1), Hold::Engine));
    ledger.complete(attempt(1, 1), 1);
    assert_eq!(ledger.close(attempt(1, 1)), Closed::Unknown);
    ledger.release(attempt(1, 1), Hold::Read);
    check(&ledger, [4, 0, 0, 0]);
}

#[test]
fn a_second_copy_of_the_same_contents_is_freed() {
    let mut ledger = Ledger::new(4, 16);
    for seq in 1..=2 {
        ledger.grant(attempt(seq, 1), &ask(2, &[10, 11])).unwrap();
    }
    for seq in 1..=2 {
        ledger.complete(attempt(seq, 1), 2);
    }
    for seq in 1..=2 {
        ledger.close(attempt(seq, 1));
    }
    check(&ledger, [2, 0, 2, 0]);
}

/// Nobody finds it any more, whoever shares it keeps it, and what is not named yet will not be.
#[test]
fn what_is_distrusted_is_no_cache() {
    let mut ledger = with_cache();
    for seq in 2..=3 {
        assert_eq!(
            ledger
                .grant(attempt(seq, 1), &ask(3, &[10, 11, 12]))
                .unwrap()
                .cached,
            2
        );
    }
    ledger.distrust(attempt(9, 9));
    ledger.distrust(attempt(2, 1));
    ledger.complete(attempt(2, 1), 3);
    check(&ledger, [0, 4, 0, 0]);
    ledger.close(attempt(2, 1));
    check(&ledger, [1, 3, 0, 0]);
    assert_eq!(ledger.grant(attempt(4, 1), &ask(1, &[10])).unwrap().cached, 0);
    ledger.close(attempt(3, 1));
    check(&ledger, [3, 1, 0, 0]);
}

#[test]
fn a_generation_is_leased_once() {
    let mut ledger = Ledger::new(4, 2);
    ledger.grant(attempt(1, 2), &ask(1, &[])).unwrap();
    for generation in 1..=2 {
        assert_eq!(
            ledger.grant(attempt(1, generation), &ask(1, &[])).unwrap_err(),
            Refusal::Stale
        );
    }
    ledger.close(attempt(1, 2));
    assert!(ledger.is_stale(attempt(1, 2)) && !ledger.is_stale(attempt(1, 3)));
    for seq in 2..=3 {
        ledger.grant(attempt(seq, 1), &ask(1, &[])).unwrap();
    }
    assert!(
        !ledger.is_stale(attempt(1, 2)),
        "two rooms are remembered, and this is the third"
    );
}

#[test]
fn more_than_the_pool_is_too_large_and_changes_nothing() {
    let mut ledger = Ledger::new(4, 16);
    assert_eq!(
        ledger.grant(attempt(1, 1), &ask(5, &[])).unwrap_err(),
        Refusal::TooLarge
    );
    ledger.grant(attempt(1, 1), &ask(3, &[])).unwrap();
    assert_eq!(ledger.grow(attempt(1, 1), 2).unwrap_err(), Refusal::TooLarge);
    assert_eq!(ledger.grow(attempt(1, 1), 1).unwrap(), [BlockId(3)]);
    check(&ledger, [0, 4, 0, 0]);
}
