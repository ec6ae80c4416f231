//! Reads that nothing disturbs, and those that are refused.

use std::time::Duration;

use kv::{KvError, KvTransfer, Read, ReadError, ReadId, Refusal, SourceAddress, TransferKey};

use super::side::{BLOCK_BYTES, CAPABILITY, LONG, Pair, SOURCE, Side, key, pass};

#[tokio::test(start_paused = true)]
async fn a_read_takes_its_time_and_moves_what_was_offered() {
    let pair = Pair::new(1);
    pair.start(10, 15).await;
    assert_eq!(pair.reader.end(1), None, "it is in flight");
    assert_eq!(pair.source.transfer.totals().sends_open, 1);
    assert!(!pair.arrived(10));
    tokio::time::sleep(LONG).await;
    let (at, result) = pair.reader.end(1).unwrap();
    let stats = result.unwrap();
    assert!(
        at >= Duration::from_millis(22),
        "two messages and ten blocks: {at:?}"
    );
    assert_eq!(
        (stats.bytes, stats.transport),
        (10 * BLOCK_BYTES as u64, "simulated")
    );
    assert!(pair.arrived(10));
    let (out, into) = (pair.source.transfer.totals(), pair.reader.transfer.totals());
    assert_eq!((out.bytes_out, out.reads_out), (stats.bytes, 1));
    assert_eq!((into.bytes_in, into.reads_in), (stats.bytes, 1));
    pair.check_clean();
}

#[tokio::test(start_paused = true)]
async fn two_reads_of_one_path_come_one_after_the_other() {
    let pair = Pair::new(1);
    pair.offer(1, 8);
    pair.reader.transfer.read(pair.read(1, 1, 8)).unwrap();
    let second = Read {
        into: (0..8).collect(),
        ..pair.read(2, 1, 8)
    };
    pair.reader.transfer.read(second).unwrap();
    tokio::time::sleep(LONG).await;
    let (first, second) = (pair.reader.end(1).unwrap(), pair.reader.end(2).unwrap());
    assert!(first.1.is_ok() && second.1.is_ok());
    let last = first.0.max(second.0);
    assert!(last >= Duration::from_millis(34), "sixteen blocks: {last:?}");
    pair.check_clean();
}

#[tokio::test(start_paused = true)]
async fn an_offer_is_withdrawn_when_its_sends_have_completed() {
    let pair = Pair::new(1);
    pair.start(4, 4).await;
    pair.source.transfer.withdraw(key(1));
    assert_eq!(pair.source.withdrawn(key(1)), None);
    let other = pair.read(2, 1, 4);
    pair.reader
        .transfer
        .read(Read {
            into: vec![0, 1, 2, 3],
            ..other
        })
        .unwrap();
    tokio::time::sleep(LONG).await;
    let (ended, result) = pair.reader.end(1).unwrap();
    assert!(result.is_ok(), "what was in flight ends well: {result:?}");
    assert!(pair.source.withdrawn(key(1)).unwrap() >= ended);
    let (_, late) = pair.reader.end(2).unwrap();
    assert_eq!(late, Err(ReadError::Refused(Refusal::NoSuchOffer)));
    pair.source.transfer.withdraw(key(9));
    assert!(
        pair.source.withdrawn(key(9)).is_some(),
        "at once for what is not offered"
    );
    pair.check_clean();
}

#[tokio::test(start_paused = true)]
async fn an_offer_withdrawn_between_pieces_is_sent_no_further() {
    let pair = Pair::new(1);
    pair.start(24, 4).await;
    pair.source.transfer.withdraw(key(1));
    tokio::time::sleep(LONG).await;
    let (_, result) = pair.reader.end(1).unwrap();
    assert_eq!(result, Err(ReadError::Refused(Refusal::NoSuchOffer)));
    assert!(pair.source.withdrawn(key(1)).is_some());
    pair.check_clean();
}

async fn check_refused(change: impl FnOnce(&mut Read), want: Refusal) {
    let pair = Pair::new(1);
    pair.offer(1, 4);
    let mut read = pair.read(1, 1, 4);
    change(&mut read);
    pair.reader.transfer.read(read).unwrap();
    tokio::time::sleep(LONG).await;
    assert_eq!(pair.reader.end(1).unwrap().1, Err(ReadError::Refused(want)));
    assert_eq!(pair.source.transfer.totals().refused, 1);
    assert!((0..4).all(|i| pair.reader.holds(31 - i, 0)), "nothing landed");
    pair.check_clean();
}

#[tokio::test(start_paused = true)]
async fn what_does_not_match_is_refused() {
    let older = TransferKey {
        generation: 2,
        ..key(1)
    };
    check_refused(|read| read.key = older, Refusal::NoSuchOffer).await;
    check_refused(|read| read.key = key(2), Refusal::NoSuchOffer).await;
    check_refused(|read| read.capability = CAPABILITY + 1, Refusal::WrongCapability).await;
    check_refused(|read| read.from = 1, Refusal::OutOfRange).await;
}

#[tokio::test(start_paused = true)]
async fn blocks_of_another_size_are_refused() {
    let pair = Pair::new(1);
    pair.offer(1, 4);
    let other = Side::new(&pair.network, super::super::Place(3), BLOCK_BYTES * 2);
    other.transfer.read(pair.read(1, 1, 4)).unwrap();
    tokio::time::sleep(LONG).await;
    assert_eq!(other.end(1).unwrap().1, Err(ReadError::Refused(Refusal::Layout)));
}

#[tokio::test(start_paused = true)]
async fn a_read_that_cannot_be_is_no_read() {
    let pair = Pair::new(1);
    let nowhere = Read {
        source: SourceAddress(b"ucx:127.0.0.1:1".to_vec()),
        ..pair.read(1, 1, 1)
    };
    assert!(matches!(
        pair.reader.transfer.read(nowhere),
        Err(KvError::BadAddress(_))
    ));
    let twice = Read {
        into: vec![3, 3],
        ..pair.read(1, 1, 1)
    };
    assert!(matches!(
        pair.reader.transfer.read(twice),
        Err(KvError::BadBlocks(_))
    ));
    pair.reader.transfer.cancel(ReadId(1));
    pass(5_000).await;
    assert_eq!(pair.reader.told(), []);
}

#[tokio::test(start_paused = true)]
async fn a_worker_reads_its_own_offer() {
    let pair = Pair::new(1);
    pair.offer(1, 4);
    pair.source.transfer.read(pair.read(1, 1, 4)).unwrap();
    tokio::time::sleep(LONG).await;
    assert!(pair.source.end(1).unwrap().1.is_ok());
    assert!(pair.source.holds(31, 1));
    assert_eq!(
        pair.source.transfer.address(),
        SourceAddress(format!("sim:{}.1", SOURCE.0).into_bytes())
    );
}
