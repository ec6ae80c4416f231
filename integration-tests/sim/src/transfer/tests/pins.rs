//! Pins hold at both ends, and whoever breaks one is found.

use std::time::Duration;

use kv::{KvTransfer, Offer, ReadError, ReadId};

use super::super::{Faults, Network};
use super::side::{CAPABILITY, LONG, Pair, READER, key, pass};

/// Bytes of the next owner of a block.
const NEXT: u8 = 0x77;

/// Every forced close is slow and dirty.
fn dirty(network: &Network) {
    let faults = Faults {
        slow_close: 1.0,
        late_bytes: 1.0,
        ..Faults::NONE
    };
    network.set_default_faults(faults);
}

/// Cancels at a time of the transfer's life; the blocks are reused as soon as their end is told.
async fn check_cancel(seed: u64, at_ms: u64) -> u64 {
    let pair = Pair::new(seed);
    dirty(&pair.network);
    pair.start(8, at_ms).await;
    let done = pair.reader.end(1).is_some();
    pair.reader.transfer.cancel(ReadId(1));
    pair.source.transfer.withdraw(key(1));
    assert!(
        done || pair.reader.end(1).is_none(),
        "not told before the endpoint is closed"
    );
    let (mut reused, mut freed) = (false, false);
    for _ in 0..600 {
        pass(5).await;
        if !reused && let Some((_, result)) = pair.reader.end(1) {
            assert!(done == result.is_ok() && (done || result == Err(ReadError::Cancelled)));
            (24..32).for_each(|block| pair.reader.fill(block, NEXT));
            reused = true;
        }
        if !freed && pair.source.withdrawn(key(1)).is_some() {
            (0..8).for_each(|block| pair.source.fill(block, NEXT));
            freed = true;
        }
    }
    assert!(reused && freed);
    assert!(
        (24..32).all(|block| pair.reader.holds(block, NEXT)),
        "a byte landed after the end"
    );
    pair.check_clean();
    pair.network.counts().values().sum()
}

#[tokio::test(start_paused = true)]
async fn after_a_cancellation_bytes_land_until_its_end_and_no_longer() {
    let mut faults = 0;
    for seed in 0..5 {
        for at_ms in [0, 1, 3, 8, 14, 19, 30] {
            faults += check_cancel(seed, at_ms).await;
        }
    }
    assert!(faults > 50, "late bytes and slow closes: {faults}");
}

#[tokio::test(start_paused = true)]
async fn a_write_to_a_block_that_is_being_sent_is_found() {
    let pair = Pair::new(1);
    pair.start(8, 3).await;
    pair.source.transfer.withdraw(key(1));
    // An owner that does not wait for the end of the withdrawal.
    pair.source.fill(0, NEXT);
    tokio::time::sleep(LONG).await;
    assert!(matches!(
        pair.reader.end(1).unwrap().1,
        Err(ReadError::Corrupt { block: 31 })
    ));
    assert!(!pair.network.violations().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_write_to_a_block_that_is_being_read_is_found() {
    for block in [31, 24] {
        let pair = Pair::new(1);
        pair.start(8, 8).await;
        pair.reader.transfer.cancel(ReadId(1));
        // An owner that takes the cancellation for the end.
        pair.reader.fill(block, NEXT);
        tokio::time::sleep(LONG).await;
        assert!(!pair.network.violations().is_empty(), "block {block}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_read_ends_as_cancelled_once() {
    let pair = Pair::new(1);
    pair.start(8, 4).await;
    pair.reader.transfer.cancel(ReadId(1));
    pair.reader.transfer.cancel(ReadId(1));
    pass(1).await;
    pair.network.kill(super::side::SOURCE, super::super::Death::Crash);
    tokio::time::sleep(LONG).await;
    let (at, result) = pair.reader.end(1).unwrap();
    assert_eq!(result, Err(ReadError::Cancelled));
    assert!(at > Duration::from_millis(4));
    assert_eq!(pair.network.in_flight(), 0);
    let again = pair.read(1, 1, 8);
    pair.reader.transfer.read(again).unwrap();
    pair.network.kill(READER, super::super::Death::Silent);
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_a_standing_offer_is_found() {
    let pair = Pair::new(1);
    let offer = Offer {
        key: key(1),
        capability: CAPABILITY,
        blocks: vec![0],
    };
    // An account that has an offer which its owner never made.
    let given = pair.network.with(|world| {
        let source = world.members.values_mut().next().unwrap();
        source.account.offers.insert(offer)
    });
    given.unwrap();
    pair.reader.transfer.read(pair.read(1, 1, 1)).unwrap();
    tokio::time::sleep(LONG).await;
    assert!(pair.reader.end(1).unwrap().1.is_ok());
    assert_eq!(pair.network.violations().len(), 1);
}
