//! What is left of a transfer that was dropped: nothing.

use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use kv::{HeapMemory, InProcess, KvEvent, KvTransfer, ReadError, ReadId, SourceAddress};

use crate::odd::{OddReader, is_written};
use crate::world::{BLOCK, BLOCKS, HANG, World};

#[test]
fn every_read_of_a_dropped_reader_has_ended() {
    let world = World::new(true);
    world.offer(&(0..BLOCKS).collect::<Vec<_>>());
    let all: Vec<_> = (0..BLOCKS).collect();
    for id in 0..50 {
        world.read(id, &all);
    }
    drop(world.reader);
    let told = world.told.so_far();
    assert_eq!(told.len(), 50);
    for (event, id) in told.iter().zip(0..) {
        assert!(
            matches!(event, KvEvent::ReadEnded { id: ended, result: Ok(_) | Err(ReadError::Cancelled) } if *ended == ReadId(id)),
            "{event:?}"
        );
    }
}

/// The blocks of a reader belong to somebody else once it is dropped: nothing may land in them.
#[test]
fn dropping_waits_for_the_block_under_way_and_cancels_the_rest() {
    let world = World::new(false);
    let (odd, release) = OddReader::half_way(&world);
    odd.reader.read(world.request(1, &[6, 7])).unwrap();
    let (source, told, memory) = (odd.reader.address(), odd.told.clone(), odd.memory.clone());
    let dropping = thread::spawn(move || drop(odd.reader));
    wait_until_lost(&world, &source, || assert!(!dropping.is_finished()));
    // Time to end for a drop that does not wait.
    thread::sleep(Duration::from_millis(20));
    assert!(!dropping.is_finished() && told.is_empty());
    drop(release);
    dropping.join().unwrap();
    let cancelled = |id| KvEvent::ReadEnded {
        id: ReadId(id),
        result: Err(ReadError::Cancelled),
    };
    assert_eq!(told.so_far(), [cancelled(0), cancelled(1)]);
    let written = |block| is_written(memory.as_ref(), block);
    assert_eq!([4, 5, 6, 7].map(written), [true, false, false, false]);
}

/// Until nobody of this address is on the hub.
fn wait_until_lost(world: &World, source: &SourceAddress, meanwhile: impl Fn()) {
    let began = Instant::now();
    for id in 100.. {
        let mut read = world.request(id, &[0]);
        read.source = source.clone();
        world.reader.read(read).unwrap();
        if let Err(ReadError::SourceLost(_)) = world.told.end_of(id) {
            return;
        }
        meanwhile();
        assert!(began.elapsed() < HANG, "it never left");
        thread::yield_now();
    }
}

/// Whoever hears an event may be the last to hold the transfer.
#[test]
fn a_transfer_can_be_dropped_by_its_own_event() {
    let world = World::new(false);
    world.offer(&[1]);
    let own = Arc::new(Mutex::new(None::<InProcess>));
    let (dropped, after_drop) = sync_channel(1);
    let held = own.clone();
    let sink = Arc::new(move |_| {
        drop(held.lock().unwrap().take());
        dropped.send(()).unwrap();
    });
    let reader = InProcess::spawn(&world.hub, Arc::new(HeapMemory::new(BLOCKS, BLOCK)), sink).unwrap();
    let mut guard = own.lock().unwrap();
    guard.insert(reader).read(world.request(0, &[4])).unwrap();
    drop(guard);
    after_drop.recv_timeout(HANG).unwrap();
}
