//! Processes die, stop, withdraw and cancel in mid-transfer. Everything ends, and no foreign byte is ever taken for
//! good.

use std::{
    sync::{Arc, mpsc::sync_channel},
    thread,
    time::{Duration, Instant},
};

use kv::{BlockIndex, EventSink, Fault, Faulty, KvError, KvEvent, KvTransfer, Read, ReadError, ReadId};
use kv_ucx::{UcxConfig, UcxTransfer};
use rustix::process::Signal;

use crate::{
    memory::FastMemory,
    peer::Peer,
    side::{CAPABILITY, HANG, NO_PROGRESS_MS, Side, alone, key, ucx},
};

const BLOCKS: u32 = 512;
const BLOCK_BYTES: usize = 64 << 10;
const KILLS: u64 = 8;

fn all() -> Vec<BlockIndex> {
    (0..BLOCKS).collect()
}

/// Waits for `round` different moments of a transfer.
fn some_while(round: u64) {
    thread::sleep(Duration::from_micros(round * round * 700));
}

fn check_source_killed(tls: &str) {
    let side = Side::new(tls, 2 * BLOCKS, BLOCK_BYTES);
    let mut healthy = Peer::start(tls, BLOCKS, BLOCK_BYTES);
    let other: Vec<_> = (BLOCKS..2 * BLOCKS).collect();
    let mut lost = 0;
    for round in 0..KILLS {
        let mut peer = Peer::start(tls, BLOCKS, BLOCK_BYTES);
        peer.offer(1, &all());
        // Connected before, so that the kill meets bytes and not a handshake.
        side.arrives(&peer.address, 1, &[0]);
        healthy.offer(100 + round, &all());
        let ids = [
            side.start(&peer.address, 1, 0, &all()[..300]),
            side.start(&peer.address, 1, 300, &all()[300..]),
        ];
        let undisturbed = side.start(&healthy.address, 100 + round, 0, &other);
        some_while(round);
        peer.kill();
        let results = ids.map(|id| side.end(id));
        lost += results.iter().filter(|result| result.is_err()).count();
        if results[0].is_ok() {
            side.check(1, &all()[..300], &all()[..300]);
        }
        let _ = side.end(undisturbed).unwrap();
        side.check(100 + round, &all(), &other);
        healthy.withdraw(100 + round);
    }
    assert!(lost > 0, "no kill came in mid-transfer");
    let mut fresh = Peer::start(tls, BLOCKS, BLOCK_BYTES);
    fresh.offer(1, &all());
    side.arrives(&fresh.address, 1, &all());
    side.check(1, &all(), &all());
}

#[test]
fn a_killed_source_ends_its_reads_and_nothing_else() {
    let _alone = alone();
    check_source_killed("tcp");
    check_source_killed("shm");
}

fn check_reader_killed(tls: &str) {
    let side = Side::new(tls, BLOCKS, BLOCK_BYTES);
    let address = side.transfer.address();
    for round in 0..KILLS {
        side.fill(round, &all());
        side.offer(round, &all());
        let mut peer = Peer::start(tls, BLOCKS, BLOCK_BYTES);
        peer.read(&address, round, &all());
        some_while(round);
        peer.kill();
        side.withdraw(round);
        side.withdrawn(round);
    }
    side.settle();
    assert_eq!(side.transfer.totals().offers_open, 0);
    side.fill(99, &all());
    side.offer(99, &all());
    let reader = Side::new(tls, BLOCKS, BLOCK_BYTES);
    reader.arrives(&side.transfer.address(), 99, &all());
    reader.check(99, &all(), &all());
}

#[test]
fn a_killed_reader_gives_the_offer_back() {
    let _alone = alone();
    check_reader_killed("tcp");
    check_reader_killed("shm");
}

fn check_source_stopped(tls: &str) {
    let side = Side::new(tls, BLOCKS, BLOCK_BYTES);
    let mut peer = Peer::start(tls, BLOCKS, BLOCK_BYTES);
    peer.offer(1, &all());
    side.arrives(&peer.address, 1, &[0]);
    peer.signal(Signal::STOP);
    let id = side.start(&peer.address, 1, 0, &all());
    let why = side.end(id).unwrap_err();
    assert!(
        matches!(
            why,
            ReadError::NoProgress { ms: NO_PROGRESS_MS } | ReadError::SourceLost(_)
        ),
        "{why}"
    );
    // The blocks are this side's again: nothing may land in them, whatever the source does when it wakes.
    side.fill(77, &all());
    peer.signal(Signal::CONT);
    peer.settle();
    side.check(77, &all(), &all());
    side.arrives(&peer.address, 1, &all());
    side.check(1, &all(), &all());
}

#[test]
fn a_stopped_source_is_given_up_and_can_write_nothing_later() {
    let _alone = alone();
    check_source_stopped("tcp");
    check_source_stopped("shm");
}

fn check_stopped_holds_up_nobody(tls: &str) {
    let side = Side::new(tls, 2 * BLOCKS, BLOCK_BYTES);
    side.fill(5, &all());
    side.offer(5, &all());
    let other: Vec<_> = (BLOCKS..2 * BLOCKS).collect();
    let mut healthy = Peer::start(tls, BLOCKS, BLOCK_BYTES);
    healthy.offer(2, &all());
    let mut stopped = Peer::start(tls, BLOCKS, BLOCK_BYTES);
    stopped.offer(1, &all());
    for round in 0..2 {
        let id = side.start(&stopped.address, 1, 0, &all());
        some_while(round);
        stopped.signal(Signal::STOP);
        // Reading from others, and being read by others, goes on before the stopped one is given up, and after.
        side.arrives(&healthy.address, 2, &other);
        let reader = Side::new(tls, BLOCKS, BLOCK_BYTES);
        reader.arrives(&side.transfer.address(), 5, &all());
        let ended = side.end(id);
        side.arrives(&healthy.address, 2, &other);
        stopped.signal(Signal::CONT);
        if ended.is_err() {
            stopped.settle();
        }
    }
    side.check(2, &all(), &other);
    side.arrives(&stopped.address, 1, &all());
    side.check(1, &all(), &all());
}

#[test]
fn a_stopped_source_holds_up_nobody_else() {
    let _alone = alone();
    check_stopped_holds_up_nobody("tcp");
    check_stopped_holds_up_nobody("shm");
}

fn check_reader_stopped(tls: &str) {
    let side = Side::new(tls, BLOCKS, BLOCK_BYTES);
    side.fill(1, &all());
    side.offer(1, &all());
    let mut peer = Peer::start(tls, BLOCKS, BLOCK_BYTES);
    peer.read(&side.transfer.address(), 1, &all());
    peer.signal(Signal::STOP);
    side.withdraw(1);
    side.withdrawn(1);
    peer.signal(Signal::CONT);
    peer.settle();
}

#[test]
fn a_stopped_reader_cannot_hold_an_offer() {
    let _alone = alone();
    check_reader_stopped("tcp");
    check_reader_stopped("shm");
}

fn check_withdrawn(tls: &str) {
    let side = Side::new(tls, BLOCKS, BLOCK_BYTES);
    let mut peer = Peer::start(tls, BLOCKS, BLOCK_BYTES);
    for round in 0..KILLS {
        peer.offer(round, &all());
        let id = side.start(&peer.address, round, 0, &all());
        some_while(round);
        peer.withdraw_and_reuse(round, &all());
        let result = side.end(id);
        peer.expect("reused");
        match result {
            Ok(_) => side.check(round, &all(), &all()),
            Err(why) => assert!(matches!(why, ReadError::Refused(_)), "{why}"),
        }
    }
    side.settle();
}

#[test]
fn a_withdrawal_in_mid_read_never_mixes_old_and_new() {
    let _alone = alone();
    check_withdrawn("tcp");
    check_withdrawn("shm");
}

fn check_cancelled_midway(tls: &str) {
    let side = Side::new(tls, BLOCKS, BLOCK_BYTES);
    let mut peer = Peer::start(tls, BLOCKS, BLOCK_BYTES);
    peer.offer(1, &all());
    let mut cancelled = 0;
    for round in 0..24 {
        let id = side.start(&peer.address, 1, 0, &all());
        some_while(round % 8);
        side.transfer.cancel(id);
        match side.end(id) {
            Ok(_) => side.check(1, &all(), &all()),
            Err(why) => {
                assert_eq!(why, ReadError::Cancelled);
                cancelled += 1;
            }
        }
        // The blocks are free again: what the source still sends must not land in them.
        side.fill(round + 100, &all());
        peer.settle();
        side.check(round + 100, &all(), &all());
    }
    assert!(cancelled > 0, "no cancellation came in time");
}

#[test]
fn after_a_cancellation_has_ended_no_byte_lands() {
    let _alone = alone();
    check_cancelled_midway("tcp");
    check_cancelled_midway("shm");
}

/// Its thread dies as it tells the end of a read, and would again with each: the owner hears of every end, and then of the death.
#[test]
fn a_thread_that_dies_is_told() {
    let (tell, told) = sync_channel(64);
    let memory = Arc::new(FastMemory::new(8, 4096));
    let sink: EventSink = Arc::new(move |event| tell.send(event).unwrap());
    let config = UcxConfig::default();
    let made = Faulty::new(memory.clone(), sink, |sink| {
        UcxTransfer::start(ucx(), config, memory.clone(), sink)
    });
    let transfer = made.unwrap();
    let mut peer = Peer::start("tcp", 8, 4096);
    peer.offer(1, &[0, 1]);
    transfer.on_every(Some(Fault::Panic));
    let read = |id, into| Read {
        id: ReadId(id),
        key: key(1),
        capability: CAPABILITY,
        source: peer.address.clone(),
        from: 0,
        into: vec![into],
    };
    transfer.read(read(1, 0)).unwrap();
    // Accepted or not: nobody may be left waiting.
    let second = transfer.read(read(2, 1));
    let mut ended = Vec::new();
    loop {
        match told.recv_timeout(HANG).expect("the death is told") {
            KvEvent::ReadEnded { id, .. } => ended.push(id.0),
            KvEvent::Withdrawn { .. } => {}
            KvEvent::Down { .. } => break,
        }
    }
    ended.sort_unstable();
    assert_eq!(ended, if second.is_ok() { vec![1, 2] } else { vec![1] });
    assert_eq!(transfer.read(read(3, 2)), Err(KvError::Stopped));
}

fn check_cancels(tls: &str, reads: u32) {
    let side = Side::new(tls, 64, 4096);
    let mut peer = Peer::start(tls, 64, 4096);
    let blocks: Vec<_> = (0..64).collect();
    peer.offer(1, &blocks);
    let mut cancelled = 0;
    let mut open = Vec::new();
    for i in 0..reads {
        let id = side.start(&peer.address, 1, 0, &[i % 64]);
        side.transfer.cancel(id);
        open.push(id);
        if open.len() == 64 {
            cancelled += open
                .drain(..)
                .filter(|&id| side.end(id) == Err(ReadError::Cancelled))
                .count();
        }
    }
    for id in open {
        let _ = side.end(id);
    }
    assert!(cancelled > 0, "no cancellation came in time");
    side.settle();
    peer.settle();
    side.arrives(&peer.address, 1, &blocks);
    side.check(1, &blocks, &blocks);
}

/// Each read is cancelled at another moment of it: from before it is asked for to after it has come.
fn check_cancels_at_offsets(tls: &str, reads: u32) {
    let side = Side::new(tls, 64, 4096);
    let mut peer = Peer::start(tls, 64, 4096);
    let blocks: Vec<_> = (0..64).collect();
    peer.offer(1, &blocks);
    // The first one connects.
    side.arrives(&peer.address, 1, &blocks);
    let started = Instant::now();
    side.arrives(&peer.address, 1, &blocks);
    let takes = started.elapsed();
    let open = |pid: u32| std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    let pids = [std::process::id(), peer.pid()];
    let before = pids.map(open);
    let (mut cancelled, mut came) = (0, 0);
    for i in 0..reads {
        let id = side.start(&peer.address, 1, 0, &blocks);
        // Steps of a large odd number: all moments, in no order.
        let until = Instant::now() + takes.mul_f64(f64::from(i * 7_919 % 1_201) / 1_000.0);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        side.transfer.cancel(id);
        match side.end(id) {
            Ok(_) => came += 1,
            Err(ReadError::Cancelled) => cancelled += 1,
            Err(other) => panic!("{tls}: {other}"),
        }
    }
    println!("{tls}: of {reads} reads of {takes:?}, {cancelled} were cancelled and {came} had come");
    assert!(cancelled > 0, "no cancellation came in time");
    side.settle();
    peer.settle();
    assert_eq!(pids.map(open), before, "descriptors of both processes");
    side.arrives(&peer.address, 1, &blocks);
    side.check(1, &blocks, &blocks);
}

#[test]
fn ten_thousand_reads_cancelled_at_any_moment_leave_nothing_behind() {
    let _alone = alone();
    check_cancels_at_offsets("tcp", 5_000);
    check_cancels_at_offsets("shm", 5_000);
}

#[test]
fn ten_thousand_cancelled_reads_leave_nothing_behind() {
    let _alone = alone();
    check_cancels("tcp", 5_000);
    check_cancels("shm", 5_000);
}

#[test]
fn a_source_that_is_not_there_is_lost() {
    let _alone = alone();
    let side = Side::new("tcp", 4, 4096);
    let nobody = {
        let gone = Side::new("tcp", 4, 4096);
        gone.transfer.address()
    };
    let id = side.start(&nobody, 1, 0, &[0]);
    let why = side.end(id).unwrap_err();
    assert!(
        matches!(why, ReadError::SourceLost(_) | ReadError::NoProgress { .. }),
        "{why}"
    );
}

#[test]
fn a_dropped_transfer_ends_its_reads() {
    let _alone = alone();
    let mut peer = Peer::start("tcp", BLOCKS, BLOCK_BYTES);
    peer.offer(1, &all());
    let side = Side::new("tcp", BLOCKS, BLOCK_BYTES);
    let id = side.start(&peer.address, 1, 0, &all());
    let told = side.stop();
    assert!(told.contains(&id));
}
