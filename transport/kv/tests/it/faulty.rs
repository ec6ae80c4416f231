//! Scripted faults hit the read they name and no other.

use kv::{Fault, KvEvent, KvTransfer, Offer, ReadError, ReadId};

use crate::world::{CAPABILITY, KEY, World};

fn scripted(nth: u64, fault: Fault) -> World {
    let world = World::new(false);
    world.offer(&[1]);
    world.reader.on_read(nth, fault);
    world
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
fn a_held_start_moves_nothing_until_released() {
    let world = scripted(0, Fault::HoldStart);
    world.read(0, &[5]);
    assert!(world.told.is_empty() && !world.holds(5, 1));
    world.reader.release();
    assert!(world.told.end_of(0).is_ok() && world.holds(5, 1));
}

#[test]
fn a_held_start_can_be_cancelled() {
    let world = scripted(0, Fault::HoldStart);
    world.read(0, &[5]);
    world.reader.cancel(ReadId(0));
    assert_eq!(world.told.end_of(0), Err(ReadError::Cancelled));
    world.reader.release();
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
fn a_corrupt_block_ends_well_and_is_wrong() {
    let world = scripted(0, Fault::Corrupt);
    world.read(0, &[5]);
    assert!(world.told.end_of(0).is_ok() && !world.holds(5, 1));
    world.read(1, &[5]);
    assert!(world.told.end_of(1).is_ok() && world.holds(5, 1));
}

#[test]
fn a_held_withdrawal_is_told_when_released() {
    let world = World::new(false);
    world
        .reader
        .offer(Offer {
            key: KEY,
            capability: CAPABILITY,
            blocks: vec![1],
        })
        .unwrap();
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
