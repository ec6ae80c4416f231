//! Each fault does what it says.

use std::time::Duration;

use kv::{KvTransfer, ReadError, ReadStats, Refusal};

use super::super::{Fault, Faults, Place};
use super::side::{LONG, Pair, READER, SOURCE, key, pass};

type End = Result<ReadStats, ReadError>;

/// One read of 8 blocks with a fault, the next without: the first ends as wanted, the second well, and all comes back.
async fn check(fault: Fault, want: impl FnOnce(Duration, &End) -> bool) {
    let pair = Pair::new(1);
    pair.network.on_read(READER, 0, fault);
    pair.start(8, 0).await;
    tokio::time::sleep(LONG).await;
    let (at, result) = pair.reader.end(1).unwrap();
    assert!(want(at, &result), "{fault:?}: at {at:?}: {result:?}");
    assert_eq!(pair.network.counts().get(fault.name()), Some(&1), "{fault:?}");
    if result.is_ok() {
        assert!(pair.arrived(8), "{fault:?}");
    }
    if !matches!(fault, Fault::WithdrawEarly) {
        pair.reader.transfer.read(pair.read(2, 1, 8)).unwrap();
        tokio::time::sleep(LONG).await;
        assert!(pair.reader.end(2).unwrap().1.is_ok(), "{fault:?}: the next read");
        assert!(pair.arrived(8));
    }
    pair.source.transfer.withdraw(key(1));
    assert!(pair.source.withdrawn(key(1)).is_some(), "{fault:?}");
    pair.check_clean();
}

fn lost(result: &End) -> bool {
    matches!(result, Err(ReadError::SourceLost(_)))
}

#[tokio::test(start_paused = true)]
async fn reads_fail_at_once_or_half_way() {
    check(Fault::Fail, |at, end| lost(end) && at < Duration::from_millis(3)).await;
    check(Fault::FailHalfway, |at, end| {
        lost(end) && at > Duration::from_millis(3)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn reads_are_late_or_slow() {
    let second = Duration::from_secs(1);
    check(Fault::Late(second), |at, end| end.is_ok() && at > second).await;
    check(Fault::Late(second * 5), |at, end| {
        *end == Err(ReadError::NoProgress { ms: 2_000 }) && at < second * 3
    })
    .await;
    check(Fault::Slow(50), |at, end| end.is_ok() && at > second / 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_corrupt_block_fails_closed() {
    check(Fault::Corrupt, |_, end| {
        *end == Err(ReadError::Corrupt { block: 31 })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_asks_with_the_wrong_name_gets_nothing() {
    check(Fault::WrongCapability, |_, end| {
        *end == Err(ReadError::Refused(Refusal::WrongCapability))
    })
    .await;
    check(Fault::StaleGeneration, |_, end| {
        *end == Err(ReadError::Refused(Refusal::NoSuchOffer))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_early_withdrawal_fails_what_has_not_been_sent() {
    check(Fault::WithdrawEarly, |_, end| {
        end.is_ok() || *end == Err(ReadError::Refused(Refusal::NoSuchOffer))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_owner_hears_of_its_own_withdrawals_only() {
    let pair = Pair::new(1);
    pair.network.on_read(READER, 0, Fault::WithdrawEarly);
    pair.start(8, 6).await;
    assert_eq!(pair.source.transfer.totals().sends_open, 1, "the pin holds");
    tokio::time::sleep(LONG).await;
    assert_eq!(pair.source.told(), []);
    pair.source.transfer.withdraw(key(1));
    assert!(pair.source.withdrawn(key(1)).is_some());
    pair.check_clean();
}

#[tokio::test(start_paused = true)]
async fn a_send_that_completes_with_nothing_delivered_ends_by_the_readers_deadline() {
    let pair = Pair::new(1);
    pair.network.on_read(READER, 0, Fault::LoseSend);
    pair.start(8, 1_000).await;
    assert_eq!(pair.source.transfer.totals().sends_open, 0, "the source is done");
    assert_eq!(pair.reader.end(1), None, "the reader cannot know");
    tokio::time::sleep(LONG).await;
    let (at, result) = pair.reader.end(1).unwrap();
    assert_eq!(result, Err(ReadError::NoProgress { ms: 2_000 }));
    assert!(
        at > Duration::from_secs(2) && at < Duration::from_secs(3),
        "{at:?}"
    );
    pair.check_clean();
}

#[tokio::test(start_paused = true)]
async fn a_late_completion_holds_the_pin_and_not_the_read() {
    let pair = Pair::new(1);
    pair.network
        .on_read(READER, 0, Fault::LateCompletion(Duration::from_millis(700)));
    pair.start(4, 4).await;
    pair.source.transfer.withdraw(key(1));
    pass(500).await;
    assert!(pair.reader.end(1).unwrap().1.is_ok());
    pair.source.transfer.withdraw(key(1));
    assert_eq!(pair.source.withdrawn(key(1)), None);
    tokio::time::sleep(LONG).await;
    assert!(pair.source.withdrawn(key(1)).unwrap() > Duration::from_millis(700));
    pair.check_clean();
}

#[tokio::test(start_paused = true)]
async fn the_kth_read_fails_and_no_other() {
    let pair = Pair::new(1);
    pair.network.on_read(READER, 2, Fault::Fail);
    pair.offer(1, 4);
    for id in 0..4 {
        pair.reader.transfer.read(pair.read(id, 1, 4)).unwrap();
        tokio::time::sleep(LONG).await;
        assert_eq!(pair.reader.end(id).unwrap().1.is_err(), id == 2, "read {id}");
    }
    pair.check_clean();
}

/// Whether a read fails where these places always fail, in turn set and unset.
async fn check_places(set: &[Place], unset: &[Place], fails: bool) {
    let pair = Pair::new(1);
    let always = Faults {
        fail: 1.0,
        ..Faults::NONE
    };
    set.iter()
        .for_each(|&place| pair.network.set_faults(place, always));
    unset
        .iter()
        .for_each(|&place| pair.network.set_faults(place, Faults::NONE));
    pair.start(4, 1_000).await;
    assert_eq!(pair.reader.end(1).unwrap().1.is_err(), fails, "{set:?} {unset:?}");
}

#[tokio::test(start_paused = true)]
async fn faults_of_either_place_strike() {
    check_places(&[READER], &[], true).await;
    check_places(&[SOURCE], &[], true).await;
    check_places(&[SOURCE], &[READER], true).await;
    check_places(&[SOURCE, READER], &[SOURCE, READER], false).await;
    check_places(&[Place(9)], &[], false).await;
}
