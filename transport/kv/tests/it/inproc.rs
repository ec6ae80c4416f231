//! The in-process transfer: what arrives, what is refused, how it ends.

use std::sync::Arc;

use kv::{
    Fault, HeapMemory, InProcess, KvError, KvEvent, KvTransfer, ReadError, ReadId, ReadStats, Refusal,
    SourceAddress, TransferKey,
};

use crate::odd::{OddReader, is_written};
use crate::world::{BLOCK, BLOCKS, CAPABILITY, KEY, Told, World};

fn check_move(threads: bool, source: &[u32], into: &[u32], descriptors: u32) {
    let world = World::new(threads);
    world.offer(source);
    world.read(1, into);
    let bytes = (into.len() * BLOCK) as u64;
    assert_eq!(
        world.told.end_of(1),
        Ok(ReadStats {
            bytes,
            descriptors,
            transport: "in-process"
        })
    );
    assert!(source.iter().zip(into).all(|(&from, &to)| world.holds(to, from)));
    let (r, s) = (world.reader.totals(), world.source.totals());
    assert_eq!(
        (r.reads_in, r.bytes_in, r.descriptors_in, r.reads_open),
        (1, bytes, u64::from(descriptors), 0)
    );
    assert_eq!(
        (s.reads_out, s.bytes_out, s.descriptors_out, s.sends_open),
        (1, bytes, u64::from(descriptors), 0)
    );
}

#[test]
fn blocks_arrive_each_in_its_place_and_neighbours_together() {
    for threads in [false, true] {
        check_move(threads, &[1, 2, 3], &[7, 8, 9], 1);
        check_move(threads, &[1, 2, 9], &[7, 8, 3], 2);
        check_move(threads, &[9, 8, 7], &[1, 2, 3], 3);
    }
}

fn check_refused(change: impl FnOnce(&mut kv::Read), want: Refusal) {
    let world = World::new(false);
    world.offer(&[1, 2]);
    let mut read = world.request(1, &[5, 6]);
    change(&mut read);
    world.reader.read(read).unwrap();
    assert_eq!(world.told.end_of(1), Err(ReadError::Refused(want)));
    assert!(!world.holds(5, 1), "a refused read moved something");
    assert_eq!(
        (world.source.totals().refused, world.reader.totals().failed),
        (1, 1)
    );
}

#[test]
fn what_is_not_offered_is_refused() {
    check_refused(
        |read| read.key = TransferKey { generation: 2, ..KEY },
        Refusal::NoSuchOffer,
    );
    check_refused(|read| read.capability = CAPABILITY + 1, Refusal::WrongCapability);
    check_refused(|read| read.from = 1, Refusal::OutOfRange);
}

#[test]
fn another_block_size_is_refused() {
    let world = World::new(false);
    world.offer(&[1]);
    let told = Told::new(false);
    let other = InProcess::inline(&world.hub, Arc::new(HeapMemory::new(4, BLOCK * 2)), told.sink());
    other.read(world.request(9, &[0])).unwrap();
    assert_eq!(told.end_of(9), Err(ReadError::Refused(Refusal::Layout)));
}

#[test]
fn a_withdrawn_offer_is_gone_and_said_so_once() {
    let world = World::new(false);
    world.offer(&[1]);
    world.source.withdraw(KEY);
    assert_eq!(world.source_told.next(), KvEvent::Withdrawn { key: KEY });
    assert!(world.source_told.is_empty());
    world.read(1, &[5]);
    assert_eq!(
        world.told.end_of(1),
        Err(ReadError::Refused(Refusal::NoSuchOffer))
    );
    world.source.withdraw(KEY);
    assert_eq!(
        world.source_told.next(),
        KvEvent::Withdrawn { key: KEY },
        "an unknown key is withdrawn at once"
    );
}

#[test]
fn a_source_that_left_is_lost() {
    let world = World::new(false);
    let read = world.request(1, &[5]);
    drop(world.source);
    world.reader.read(read).unwrap();
    assert!(matches!(world.told.end_of(1), Err(ReadError::SourceLost(_))));
}

#[test]
fn a_read_that_cannot_be_is_not_accepted() {
    let world = World::new(false);
    let check = |change: &dyn Fn(&mut kv::Read), want: fn(&KvError) -> bool| {
        let mut read = world.request(1, &[5]);
        change(&mut read);
        let error = world.reader.read(read).unwrap_err();
        assert!(want(&error), "{error}");
    };
    check(&|read| read.into = vec![], |e| matches!(e, KvError::BadBlocks(_)));
    check(&|read| read.into = vec![BLOCKS], |e| {
        matches!(e, KvError::BadBlocks(_))
    });
    check(&|read| read.into = vec![1, 1], |e| {
        matches!(e, KvError::BadBlocks(_))
    });
    check(&|read| read.source = SourceAddress(b"ucx:1".to_vec()), |e| {
        matches!(e, KvError::BadAddress(_))
    });
    check(&|read| read.source = SourceAddress(vec![b'x'; 300]), |e| {
        matches!(e, KvError::BadAddress(_))
    });
    assert!(world.told.is_empty(), "what is not accepted has no end");
}

#[test]
fn cancelling_what_has_ended_or_never_was_is_harmless() {
    let world = World::new(true);
    world.offer(&[1]);
    world.read(1, &[5]);
    assert!(world.told.end_of(1).is_ok());
    world.reader.cancel(ReadId(1));
    world.reader.cancel(ReadId(99));
    world.read(2, &[6]);
    assert!(world.told.end_of(2).is_ok());
}

#[test]
fn a_withdrawal_waits_for_the_copy_under_way_and_lets_no_other_begin() {
    let world = World::new(false);
    let (odd, release) = OddReader::half_way(&world);
    world.source.withdraw(KEY);
    world.source.withdraw(KEY);
    assert!(world.source_told.is_empty(), "the source's blocks are being read");
    let totals = world.source.totals();
    assert_eq!((totals.sends_open, totals.offers_open), (1, 1));
    world.read(7, &[5]);
    assert_eq!(
        world.told.end_of(7),
        Err(ReadError::Refused(Refusal::NoSuchOffer))
    );
    drop(release);
    assert!(odd.told.end_of(0).is_ok());
    assert_eq!(world.source_told.next(), KvEvent::Withdrawn { key: KEY });
    let totals = world.source.totals();
    assert_eq!((totals.sends_open, totals.offers_open), (0, 0));
    assert!(world.source_told.is_empty(), "said once");
}

#[test]
fn a_cancelled_copy_goes_no_further() {
    let world = World::new(false);
    let (odd, release) = OddReader::half_way(&world);
    odd.reader.cancel(ReadId(0));
    assert!(odd.told.is_empty(), "bytes may still land");
    drop(release);
    assert_eq!(odd.told.end_of(0), Err(ReadError::Cancelled));
    let written = |block| is_written(odd.memory.as_ref(), block);
    assert_eq!((written(4), written(5)), (true, false));
    assert_eq!(world.source.totals().sends_open, 0);
}

#[test]
fn a_copy_whose_source_leaves_meanwhile_ends_well() {
    let world = World::new(false);
    let (odd, release) = OddReader::half_way(&world);
    drop(world.source);
    drop(release);
    assert!(odd.told.end_of(0).is_ok());
    assert!(is_written(odd.memory.as_ref(), 5));
}

#[test]
fn what_cannot_land_is_told_from_what_did() {
    let world = World::new(false);
    world.offer(&[1]);
    let odd = OddReader::new(&world, || false);
    odd.reader.read(world.request(3, &[4])).unwrap();
    assert_eq!(odd.told.end_of(3), Err(ReadError::Corrupt { block: 4 }));
}

#[test]
fn a_copy_that_panics_ends_its_read_and_nothing_else() {
    let world = World::new(false);
    world.offer(&[1]);
    let odd = OddReader::new(&world, || panic!("the region"));
    for id in [0, 1] {
        odd.reader.read(world.request(id, &[4])).unwrap();
        assert!(matches!(odd.told.end_of(id), Err(ReadError::Local(_))));
    }
    odd.reader.read(world.request(2, &[5])).unwrap();
    assert!(odd.told.end_of(2).is_ok());
    // No pin is left: a withdrawal is done at once.
    assert_eq!(world.source.totals().sends_open, 0);
    world.source.withdraw(KEY);
    assert_eq!(world.source_told.next(), KvEvent::Withdrawn { key: KEY });
    let totals = odd.reader.totals();
    assert_eq!((totals.failed, totals.reads_in, totals.reads_open), (2, 1, 0));
}

#[test]
fn a_sink_that_panics_stops_no_later_read() {
    let world = World::new(false);
    world.offer(&[1]);
    let told = Told::new(true);
    let good = told.sink();
    let sink = Arc::new(move |event| match event {
        KvEvent::ReadEnded { id: ReadId(0), .. } => panic!("the sink"),
        event => good(event),
    });
    let memory = Arc::new(HeapMemory::new(BLOCKS, BLOCK));
    let reader = InProcess::spawn(&world.hub, memory, sink).unwrap();
    reader.read(world.request(0, &[4])).unwrap();
    reader.read(world.request(1, &[5])).unwrap();
    assert!(told.end_of(1).is_ok());
}

#[test]
fn an_address_from_a_peer_is_shown_on_one_line() {
    let address = SourceAddress(b"inproc:1\nall is well".to_vec());
    assert_eq!(
        format!("{address:?}"),
        r#"SourceAddress("inproc:1\nall is well")"#
    );
}

#[test]
fn a_held_end_holds_up_no_other_read() {
    let world = World::new(true);
    world.offer(&[1]);
    world.reader.on_read(0, Fault::HoldEnd);
    world.read(1, &[5]);
    world.read(2, &[6]);
    assert!(world.told.end_of(2).is_ok());
    world.reader.release();
    assert!(world.told.end_of(1).is_ok());
}
