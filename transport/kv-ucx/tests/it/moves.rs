//! What arrives is what was offered, or is refused.

use kv::{BlockIndex, KvTransfer, ReadError, Refusal};

use crate::{
    peer::Peer,
    side::{CAPABILITY, Side, alone, key, ucx},
};

/// Whether `carrier` is what must have carried the bytes. UCX tells since 1.22, as the wheel is.
fn is_carrier(tls: &str, carrier: &str) -> bool {
    match ucx().version().starts_with("1.22") {
        true => carrier == if tls == "tcp" { "ucx-tcp" } else { "ucx-shm" },
        false => carrier.starts_with("ucx"),
    }
}

fn check(tls: &str, block_bytes: usize, source: &[BlockIndex], into: &[BlockIndex], descriptors: u32) {
    let mut peer = Peer::start(tls, 512, block_bytes);
    let side = Side::new(tls, 512, block_bytes);
    peer.offer(1, source);
    let id = side.start(&peer.address, 1, 0, into);
    let stats = side.end(id).unwrap();
    side.check(1, source, into);
    assert_eq!(stats.bytes, (into.len() * block_bytes) as u64);
    assert_eq!(stats.descriptors, descriptors);
    assert!(is_carrier(tls, stats.transport), "{tls}: {}", stats.transport);
    let totals = side.transfer.totals();
    assert_eq!(
        (totals.reads_in, totals.bytes_in, totals.transport),
        (1, stats.bytes, stats.transport)
    );
    peer.settle();
}

fn both(block_bytes: usize, source: &[BlockIndex], into: &[BlockIndex], descriptors: u32) {
    let _alone = alone();
    check("tcp", block_bytes, source, into, descriptors);
    check("shm", block_bytes, source, into, descriptors);
}

#[test]
fn contiguous_blocks_travel_as_one() {
    let source: Vec<_> = (10..200).collect();
    let into: Vec<_> = (300..490).collect();
    both(4 << 10, &source, &into, 1);
}

#[test]
fn a_long_run_is_cut_in_bounded_pieces() {
    let blocks: Vec<_> = (0..512).collect();
    both(64 << 10, &blocks, &blocks, 32);
}

#[test]
fn scattered_blocks_arrive_each_in_its_place() {
    let source: Vec<_> = (0..500).map(|i| (i * 7) % 512).collect();
    let into: Vec<_> = (0..500).map(|i| (i * 11 + 3) % 512).collect();
    both(4 << 10, &source, &into, 500);
}

#[test]
fn single_small_blocks_arrive() {
    both(64, &[3], &[9], 1);
    both(1 << 10, &[3, 4, 9], &[7, 8, 1], 2);
}

#[test]
fn a_part_of_an_offer_can_be_read_and_often() {
    for tls in ["tcp", "shm"] {
        let mut peer = Peer::start(tls, 64, 4096);
        let side = Side::new(tls, 64, 4096);
        let source: Vec<_> = (0..32).rev().collect();
        peer.offer(1, &source);
        let ids: Vec<_> = (0..8)
            .map(|i| side.start(&peer.address, 1, i * 4, &[60 - i, i]))
            .collect();
        for (i, id) in (0..8u32).zip(ids) {
            assert_eq!(side.end(id).unwrap().bytes, 8192);
            side.check(1, &source[i as usize * 4..], &[60 - i, i]);
        }
    }
}

fn check_refused(change: impl FnOnce(&Side, &Peer) -> kv::ReadId, want: Refusal) {
    let mut peer = Peer::start("tcp", 16, 4096);
    let side = Side::new("tcp", 16, 4096);
    peer.offer(1, &[0, 1, 2]);
    let id = change(&side, &peer);
    assert_eq!(side.end(id), Err(ReadError::Refused(want)));
    let good = side.start(&peer.address, 1, 0, &[0, 1, 2]);
    assert!(side.end(good).is_ok(), "a refusal must not harm the endpoint");
}

#[test]
fn what_is_not_offered_is_refused() {
    check_refused(|s, p| s.start(&p.address, 2, 0, &[0]), Refusal::NoSuchOffer);
    let older = kv::TransferKey {
        generation: 0,
        ..key(1)
    };
    check_refused(
        |s, p| s.start_with(&p.address, older, CAPABILITY, 0, &[0]),
        Refusal::NoSuchOffer,
    );
    check_refused(
        |s, p| s.start_with(&p.address, key(1), CAPABILITY ^ 1, 0, &[0]),
        Refusal::WrongCapability,
    );
    check_refused(|s, p| s.start(&p.address, 1, 1, &[0, 1, 2]), Refusal::OutOfRange);
}

#[test]
fn another_block_size_is_refused() {
    let mut peer = Peer::start("tcp", 16, 8192);
    let side = Side::new("tcp", 16, 4096);
    peer.offer(1, &[0]);
    let id = side.start(&peer.address, 1, 0, &[0]);
    assert_eq!(side.end(id), Err(ReadError::Refused(Refusal::Layout)));
}
