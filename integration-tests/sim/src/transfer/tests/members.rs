//! Paths that are cut, members that freeze or die.

use std::{thread, time::Duration};

use kv::{KvError, KvEvent, KvTransfer, ReadError};

use super::super::Death;
use super::side::{BLOCK_BYTES, LONG, Pair, READER, SOURCE, Side, key, pass};

const LIMIT: Duration = Duration::from_secs(2);
const NO_PROGRESS: ReadError = ReadError::NoProgress { ms: 2_000 };

/// Cuts mid-way and never heals: each end gives up by itself.
async fn check_cut(to_reader: bool, to_source: bool) {
    let pair = Pair::new(1);
    pair.start(8, 4).await;
    for (cut, from, to) in [(to_reader, SOURCE, READER), (to_source, READER, SOURCE)] {
        if cut {
            pair.network.cut(from, to);
        }
    }
    pair.source.transfer.withdraw(key(1));
    tokio::time::sleep(LONG).await;
    let (_, result) = pair.reader.end(1).unwrap();
    assert!(result.is_ok() || result == Err(NO_PROGRESS) || matches!(result, Err(ReadError::SourceLost(_))));
    assert!(!to_reader || result == Err(NO_PROGRESS));
    let freed = pair.source.withdrawn(key(1)).unwrap();
    assert!(freed > LIMIT && freed < LIMIT * 2, "{freed:?}");
    let before = (pair.reader.told(), pair.source.told());
    pair.network.calm();
    tokio::time::sleep(LONG).await;
    assert_eq!(
        before,
        (pair.reader.told(), pair.source.told()),
        "healing is no news"
    );
    pair.check_clean();
}

#[tokio::test(start_paused = true)]
async fn a_path_that_is_cut_is_given_up_at_both_ends() {
    check_cut(true, true).await;
    check_cut(true, false).await;
    check_cut(false, true).await;
}

#[tokio::test(start_paused = true)]
async fn a_path_that_heals_in_time_loses_nothing() {
    let pair = Pair::new(1);
    pair.network.cut_both(SOURCE, READER);
    pair.start(8, 700).await;
    pair.network.heal_both(SOURCE, READER);
    pass(4).await;
    pair.network.cut_both(SOURCE, READER);
    pass(700).await;
    pair.network.heal_both(SOURCE, READER);
    tokio::time::sleep(LONG).await;
    assert!(pair.reader.end(1).unwrap().1.is_ok());
    assert!(pair.arrived(8));
    pair.check_clean();
}

#[tokio::test(start_paused = true)]
async fn a_frozen_source_is_given_up_and_keeps_its_pin_until_it_thaws() {
    let pair = Pair::new(1);
    pair.start(24, 4).await;
    pair.network.freeze(SOURCE);
    tokio::time::sleep(LONG).await;
    assert_eq!(pair.reader.end(1).unwrap().1, Err(NO_PROGRESS));
    assert_eq!(pair.source.transfer.totals().sends_open, 1);
    pair.source.transfer.withdraw(key(1));
    assert_eq!(pair.source.withdrawn(key(1)), None);
    pair.network.thaw(SOURCE);
    pass(200).await;
    assert!(pair.source.withdrawn(key(1)).is_some());
    pair.check_clean();
}

#[tokio::test(start_paused = true)]
async fn a_frozen_reader_is_told_nothing_and_holds_nobody_up() {
    let pair = Pair::new(1);
    pair.start(4, 4).await;
    pair.network.freeze(READER);
    pair.source.transfer.withdraw(key(1));
    tokio::time::sleep(LONG).await;
    assert_eq!(pair.reader.told(), []);
    assert!(pair.source.withdrawn(key(1)).unwrap() < LIMIT * 2);
    pair.network.thaw(READER);
    tokio::time::sleep(LONG).await;
    let (_, result) = pair.reader.end(1).unwrap();
    assert!(matches!(result, Err(ReadError::SourceLost(_))), "{result:?}");
    pair.check_clean();
}

#[tokio::test(start_paused = true)]
async fn a_short_freeze_is_no_failure() {
    for place in [SOURCE, READER] {
        let pair = Pair::new(1);
        pair.start(24, 4).await;
        pair.network.freeze(place);
        pass(1_500).await;
        pair.network.thaw(place);
        tokio::time::sleep(LONG).await;
        assert!(pair.reader.end(1).unwrap().1.is_ok(), "{place:?}");
        pair.check_clean();
    }
}

async fn check_source_dies(death: Death, wait: Duration) {
    let pair = Pair::new(1);
    pair.start(24, 4).await;
    pair.network.kill(SOURCE, death);
    tokio::time::sleep(LONG).await;
    let (at, result) = pair.reader.end(1).unwrap();
    assert!(
        result.is_err() && at > wait && at < wait + Duration::from_millis(500),
        "{at:?}: {result:?}"
    );
    assert_eq!(pair.source.told(), [], "the dead hear nothing");
    // Its address is of an incarnation that is no more.
    let again = Side::new(&pair.network, SOURCE, BLOCK_BYTES);
    assert_ne!(again.transfer.address(), pair.source.transfer.address());
    pair.reader.transfer.read(pair.read(2, 1, 8)).unwrap();
    pass(10).await;
    assert!(matches!(
        pair.reader.end(2).unwrap().1,
        Err(ReadError::SourceLost(_))
    ));
    assert!(matches!(
        pair.source.transfer.read(pair.read(3, 1, 1)),
        Err(KvError::Stopped)
    ));
    assert_eq!(pair.network.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_dies_is_lost_soon_or_by_the_deadline() {
    check_source_dies(Death::Crash, Duration::from_millis(20)).await;
    check_source_dies(Death::Silent, LIMIT).await;
}

async fn check_reader_dies(death: Death, wait: Duration) {
    let pair = Pair::new(1);
    pair.start(24, 4).await;
    pair.network.kill(READER, death);
    pair.source.transfer.withdraw(key(1));
    let landed: Vec<_> = (0..32).map(|block| pair.reader.holds(block, 0)).collect();
    tokio::time::sleep(LONG).await;
    let freed = pair.source.withdrawn(key(1)).unwrap();
    assert!(
        freed > wait && freed < wait + Duration::from_millis(500),
        "{freed:?}"
    );
    assert_eq!(pair.reader.told(), [], "the dead hear nothing");
    let after: Vec<_> = (0..32).map(|block| pair.reader.holds(block, 0)).collect();
    assert_eq!(landed, after, "nothing lands with the dead");
    assert_eq!(
        (pair.network.in_flight(), pair.network.violations().len()),
        (0, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_dies_gives_its_pins_back_soon_or_by_the_deadline() {
    check_reader_dies(Death::Crash, Duration::from_millis(20)).await;
    check_reader_dies(Death::Silent, LIMIT).await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_lost_refuses_nothing() {
    let pair = Pair::new(1);
    pair.network.kill(SOURCE, Death::Silent);
    pair.reader.transfer.read(pair.read(1, 1, 1)).unwrap();
    tokio::time::sleep(LONG).await;
    assert_eq!(pair.reader.end(1).unwrap().1, Err(NO_PROGRESS));
}

#[tokio::test(start_paused = true)]
async fn an_end_in_order_tells_all_it_owes() {
    let Pair {
        network,
        source,
        reader,
        ..
    } = {
        let pair = Pair::new(1);
        pair.start(24, 4).await;
        pair.source.transfer.withdraw(key(1));
        pair
    };
    let Side { transfer, memory, .. } = reader;
    let told = Side::new(&network, super::super::Place(9), BLOCK_BYTES);
    // Not on a thread of the runtime.
    thread::spawn(move || drop(transfer)).join().unwrap();
    tokio::time::sleep(LONG).await;
    assert!(source.withdrawn(key(1)).is_some());
    assert_eq!((network.in_flight(), told.told().len()), (0, 0));
    drop((source, memory));
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_dies_tells_all_it_owes_and_then_that_it_is_down() {
    for place in [SOURCE, READER] {
        let pair = Pair::new(1);
        pair.start(24, 4).await;
        pair.source.transfer.withdraw(key(1));
        pair.network.break_down(place);
        let broken = if place == SOURCE {
            &pair.source
        } else {
            &pair.reader
        };
        assert_eq!(broken.told().len(), 2);
        assert!(matches!(broken.told()[1].1, KvEvent::Down { .. }));
        let again = pair.read(2, 1, 1);
        assert!(matches!(broken.transfer.read(again), Err(KvError::Stopped)));
        tokio::time::sleep(LONG).await;
        assert!(pair.source.withdrawn(key(1)).is_some());
        assert!(pair.reader.end(1).unwrap().1.is_err());
        pair.check_clean();
    }
}
