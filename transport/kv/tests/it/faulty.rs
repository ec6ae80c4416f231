//! Scripted faults hit the read they name and no other, and everything else passes.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kv::{
    EventSink, Fault, Faulty, HeapMemory, KvError, KvEvent, KvMemory, KvTransfer, Offer, Read, ReadError,
    ReadId, ReadStats, Refusal, SourceAddress, Totals, TransferKey,
};

use crate::world::{BLOCK, BLOCKS, CAPABILITY, KEY, Told, World};

fn scripted(nth: u64, fault: Fault) -> World {
    let world = World::new(false);
    world.offer(&[1, 2]);
    world.reader.on_read(nth, fault);
    world
}

fn offer(generation: u32, capability: u128) -> Offer {
    Offer {
        key: TransferKey { generation, ..KEY },
        capability,
        blocks: vec![1],
    }
}

#[test]
fn the_named_read_fails_and_the_next_does_not() {
    let world = scripted(1, Fault::Fail(ReadError::NoProgress { ms: 5 }));
    for id in 0..3 {
        world.read(id, &[5]);
    }
    assert!(world.told.end_of(0).is_ok());
    assert_eq!(world.told.end_of(1), Err(ReadError::NoProgress { ms: 5 }));
    assert!(world.told.end_of(2).is_ok());
}

#[test]
fn every_read_fails_that_has_no_fault_of_its_own_until_none_does() {
    let world = scripted(1, Fault::Fail(ReadError::Cancelled));
    let fails = ReadError::NoProgress { ms: 5 };
    world.reader.on_every(Some(Fault::Fail(fails.clone())));
    for id in 0..3 {
        world.read(id, &[5]);
    }
    assert_eq!(world.told.end_of(0), Err(fails.clone()));
    assert_eq!(world.told.end_of(1), Err(ReadError::Cancelled));
    assert_eq!(world.told.end_of(2), Err(fails));
    world.reader.on_every(None);
    world.read(3, &[5]);
    assert!(world.told.end_of(3).is_ok());
}

#[test]
fn the_next_read_can_be_named() {
    let world = scripted(0, Fault::HoldStart);
    assert_eq!(world.reader.reads_seen(), 0);
    world.read(0, &[4]);
    world.read(1, &[5]);
    assert!(world.told.end_of(1).is_ok());
    let next = world.reader.reads_seen();
    assert_eq!(next, 2, "what is held is counted");
    world.reader.on_read(next, Fault::Fail(ReadError::Cancelled));
    world.read(2, &[6]);
    assert_eq!(world.told.end_of(2), Err(ReadError::Cancelled));
}

#[test]
fn a_held_start_moves_nothing_until_released() {
    let world = scripted(0, Fault::HoldStart);
    world.read(0, &[5]);
    assert!(world.told.is_empty() && !world.holds(5, 1));
    world.reader.release();
    assert!(world.told.end_of(0).is_ok() && world.holds(5, 1));
    world.reader.release();
    assert!(world.told.is_empty(), "started once");
}

#[test]
fn a_held_start_that_cannot_be_ends_when_released() {
    let world = scripted(0, Fault::HoldStart);
    world.read(0, &[5, 5]);
    world.reader.release();
    match world.told.end_of(0) {
        Err(ReadError::Local(why)) => assert!(why.contains("twice"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_held_start_can_be_cancelled_and_others_stay_held() {
    let world = World::new(false);
    world.offer(&[1]);
    world.reader.on_every(Some(Fault::HoldStart));
    for (id, block) in [(0, 4), (1, 5), (2, 6)] {
        world.read(id, &[block]);
    }
    world.reader.cancel(ReadId(1));
    assert_eq!(world.told.end_of(1), Err(ReadError::Cancelled));
    assert!(world.told.is_empty());
    world.reader.release();
    assert!(world.told.end_of(0).is_ok() && world.told.end_of(2).is_ok());
    assert!(world.told.is_empty() && !world.holds(5, 1));
}

#[test]
fn a_held_end_has_moved_its_bytes() {
    let world = scripted(0, Fault::HoldEnd);
    world.read(0, &[5]);
    assert!(world.told.is_empty() && world.holds(5, 1));
    world.reader.release();
    assert!(world.told.end_of(0).is_ok());
}

#[test]
fn what_is_not_accepted_leaves_no_fault_behind() {
    let world = scripted(0, Fault::HoldEnd);
    let error = world.reader.read(world.request(0, &[5, 5])).unwrap_err();
    assert!(matches!(error, KvError::BadBlocks(_)), "{error}");
    world.read(0, &[5]);
    assert!(world.told.end_of(0).is_ok());
}

/// Read 0 of one block from position `from` ends well, but one bit of it is wrong; read 1 is as it should be.
fn check_corrupt(from: u32, block: u32) {
    let world = scripted(0, Fault::Corrupt);
    let read = |id, into| Read {
        from,
        ..world.request(id, &[into])
    };
    world.reader.read(read(0, 5)).unwrap();
    assert!(world.told.end_of(0).is_ok() && !world.holds(5, block));
    world.reader.read(read(1, 6)).unwrap();
    assert!(world.told.end_of(1).is_ok() && world.holds(6, block));
    let (wrong, right) = (world.bytes(5), world.bytes(6));
    let wrong_bits = wrong.iter().zip(right).map(|(a, b)| (a ^ b).count_ones());
    assert_eq!(wrong_bits.sum::<u32>(), 1);
}

#[test]
fn a_corrupt_block_ends_well_and_one_bit_is_wrong() {
    // Their first bytes are even and odd.
    check_corrupt(0, 1);
    check_corrupt(1, 2);
}

#[test]
fn what_did_not_arrive_is_not_corrupted() {
    let world = scripted(0, Fault::Corrupt);
    let refused = Read {
        from: 2,
        ..world.request(0, &[5])
    };
    world.reader.read(refused).unwrap();
    assert_eq!(world.told.end_of(0), Err(ReadError::Refused(Refusal::OutOfRange)));
    assert_eq!(world.bytes(5), [0; BLOCK]);
}

/// Reads what is offered with this capability, under the generation before KEY's too.
fn check_forged(fault: Fault, capability: u128) -> Result<ReadStats, ReadError> {
    let world = World::new(false);
    world.source.offer(offer(KEY.generation, capability)).unwrap();
    world.source.offer(offer(KEY.generation - 1, 7)).unwrap();
    let read = |id| Read {
        capability,
        ..world.request(id, &[5])
    };
    world.reader.on_read(0, fault);
    world.reader.read(read(0)).unwrap();
    let forged = world.told.end_of(0);
    assert_eq!(world.bytes(5), [0; BLOCK], "nothing is given for it");
    world.reader.read(read(1)).unwrap();
    assert!(world.told.end_of(1).is_ok());
    forged
}

#[test]
fn a_forged_read_is_refused_and_the_next_is_honest() {
    let refused = Err(ReadError::Refused(Refusal::WrongCapability));
    for capability in [0, 1, 42, u128::MAX] {
        assert_eq!(check_forged(Fault::WrongCapability, capability), refused);
    }
    // The older generation is there, and is another's.
    assert_eq!(check_forged(Fault::StaleGeneration, CAPABILITY), refused);
}

#[test]
fn a_held_withdrawal_is_told_when_released() {
    let world = World::new(false);
    world.reader.offer(offer(KEY.generation, CAPABILITY)).unwrap();
    world.reader.hold_withdrawn(true);
    world.reader.withdraw(KEY);
    assert!(world.told.is_empty());
    world.reader.release();
    assert_eq!(world.told.next(), KvEvent::Withdrawn { key: KEY });
    world.reader.withdraw(KEY);
    assert_eq!(
        world.told.next(),
        KvEvent::Withdrawn { key: KEY },
        "held no longer"
    );
}

#[test]
fn what_it_offers_is_offered() {
    let world = World::new(false);
    world.reader.offer(offer(KEY.generation, CAPABILITY)).unwrap();
    assert_eq!(world.reader.totals().offers_open, 1);
    assert_eq!(
        world.reader.offer(offer(KEY.generation, 1)),
        Err(KvError::DuplicateOffer(KEY))
    );
    let own = Read {
        source: world.reader.address(),
        ..world.request(0, &[5])
    };
    world.reader.read(own).unwrap();
    assert!(world.told.end_of(0).is_ok());
}

#[test]
fn a_transfer_can_seem_down() {
    let world = World::new(false);
    world.reader.seem_down();
    assert!(matches!(world.told.next(), KvEvent::Down { .. }));
    assert!(world.told.is_empty());
}

/// Its reads end at once, or when the test says so; whoever tells so feels a panic of who hears it. No other transfer here lets one through.
struct Telling {
    tell: EventSink,
    at_once: bool,
}

impl Telling {
    fn end(tell: &EventSink, id: ReadId) {
        let stats = ReadStats {
            bytes: 0,
            descriptors: 0,
            transport: "none",
        };
        tell(KvEvent::ReadEnded {
            id,
            result: Ok(stats),
        });
    }
}

impl KvTransfer for Telling {
    fn address(&self) -> SourceAddress {
        SourceAddress(b"telling".to_vec())
    }
    fn offer(&self, _: Offer) -> Result<(), KvError> {
        Err(KvError::Stopped)
    }
    fn withdraw(&self, key: TransferKey) {
        (self.tell)(KvEvent::Withdrawn { key });
    }
    fn read(&self, read: Read) -> Result<(), KvError> {
        if self.at_once {
            Self::end(&self.tell, read.id);
        }
        Ok(())
    }
    fn cancel(&self, _: ReadId) {}
    fn totals(&self) -> Totals {
        Totals::default()
    }
}

#[test]
fn who_tells_an_end_can_die_of_it_and_of_no_other() {
    let told = Told::new(false);
    let memory: Arc<dyn KvMemory> = Arc::new(HeapMemory::new(BLOCKS, BLOCK));
    let telling = |tell| Ok::<_, Infallible>(Telling { tell, at_once: true });
    let Ok(reader) = Faulty::new(memory, told.sink(), telling);
    let world = World::new(false);
    reader.on_read(1, Fault::Panic);
    for id in 0..3 {
        let read = world.request(id, &[5]);
        let died = catch_unwind(AssertUnwindSafe(|| reader.read(read))).is_err();
        assert_eq!(died, id == 1, "read {id}");
        assert!(told.end_of(id).is_ok(), "told first");
    }
}

#[test]
fn an_end_that_comes_after_the_release_is_told() {
    let told = Told::new(false);
    let memory: Arc<dyn KvMemory> = Arc::new(HeapMemory::new(BLOCKS, BLOCK));
    let mut inner = None;
    let Ok(reader) = Faulty::new(memory, told.sink(), |tell| {
        inner = Some(Arc::clone(&tell));
        Ok::<_, Infallible>(Telling { tell, at_once: false })
    });
    let (world, tell) = (World::new(false), inner.unwrap());
    reader.on_every(Some(Fault::HoldEnd));
    for id in 0..2 {
        reader.read(world.request(id, &[5])).unwrap();
    }
    Telling::end(&tell, ReadId(0));
    assert!(told.is_empty(), "held");
    reader.on_every(None);
    reader.release();
    assert!(told.end_of(0).is_ok());
    Telling::end(&tell, ReadId(1));
    assert!(told.end_of(1).is_ok());
}
