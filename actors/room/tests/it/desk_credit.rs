//! Credit at the desk: what workers have, what is promised of it, and which of them takes a room.

use std::collections::BTreeSet;

use room::{Advert, Bid, Credit, DeskLimits, Failure, NodeId, Role, Verdict, WorkerSpec};

use crate::desk_kit::{D1, D2, DRAINING, M1, P1, P2, attempt, bid, desk, granted, route_of, spec, verdicts};
use crate::room_kit::ms;

#[test]
fn slots_bound_what_is_granted_and_come_back() {
    let mut desk = desk(&[M1]);
    for seq in 0..6 {
        desk.enqueue(bid(seq, 16)).unwrap();
    }
    assert_eq!(granted(&mut desk), [0, 1, 2, 3]);
    desk.give_back(attempt(1), M1, Credit::Compute);
    assert_eq!(granted(&mut desk), [0; 0], "its slot is still taken");
    desk.give_back(attempt(1), M1, Credit::All);
    desk.give_back(attempt(1), M1, Credit::All);
    assert_eq!(granted(&mut desk), [4], "given back twice, granted once");
}

#[test]
fn prefills_under_way_are_bounded() {
    let mut desk = desk(&[D1, D2]);
    desk.worker_up(
        ms(0),
        P1,
        WorkerSpec {
            slots: 100,
            ..spec(Role::Prefill)
        },
    );
    for seq in 0..6 {
        desk.enqueue(bid(seq, 16)).unwrap();
    }
    assert_eq!(granted(&mut desk), [0, 1, 2, 3]);
    desk.give_back(attempt(0), P1, Credit::Compute);
    assert_eq!(granted(&mut desk), [4]);
}

#[test]
fn an_advertisement_counts_against_all_but_what_it_cannot_know() {
    let advert = |available_blocks| Advert {
        available_blocks,
        free_slots: 4,
        draining: false,
    };
    let check = |advertised_at, available, expected| {
        let mut desk = desk(&[M1]);
        route_of(&mut desk, bid(0, 320)); // 21 blocks, at 1 ms
        desk.advertise(ms(advertised_at), M1, advert(available));
        desk.enqueue(bid(1, 320)).unwrap();
        assert_eq!(
            verdicts(&mut desk, 1).len(),
            expected,
            "{available} at {advertised_at}"
        );
    };
    // Just after the promise, the advertisement is taken not to know of it.
    check(2, 41, 0);
    check(2, 42, 1);
    // Later it is: from this moment on.
    let settled = 1 + DeskLimits::default().settle.as_millis();
    check(settled - 1, 41, 0);
    check(settled, 21, 1);
    check(900, 20, 0);
    check(900, 21, 1);
    // Whatever is advertised, the pool less the promises is the bound.
    check(900, 1_000, 1);
}

#[test]
fn a_draining_worker_takes_nothing_new() {
    let mut desk = desk(&[M1]);
    desk.advertise(ms(1), M1, DRAINING);
    desk.enqueue(bid(0, 16)).unwrap();
    assert_eq!(granted(&mut desk), [0; 0]);
    let refused = Verdict::Refused {
        attempt: attempt(0),
        failure: Failure::NoWorker,
    };
    assert_eq!(verdicts(&mut desk, 1_001), [refused], "as if it were not there");
}

#[test]
fn what_never_fits_is_refused_at_once() {
    let mut desk = desk(&[P1, D1]);
    assert_eq!(desk.longest_sequence(), Some(1_600));
    assert_eq!(desk.enqueue(bid(0, 1_584)), Ok(()));
    // With its whole answer it would need a block more than the pool has.
    assert_eq!(desk.enqueue(bid(1, 1_585)), Err(Failure::TooLarge));
    // Nobody knows without workers; it is found out when there are some.
    let mut desk = self::desk(&[]);
    assert_eq!(desk.longest_sequence(), None);
    assert_eq!(desk.enqueue(bid(3, 5_000)), Ok(()));
    desk.worker_up(ms(1), M1, spec(Role::Mixed));
    let refused = Verdict::Refused {
        attempt: attempt(3),
        failure: Failure::TooLarge,
    };
    assert_eq!(verdicts(&mut desk, 1), [refused]);
}

/// An answer that is evicted or migrated near its end is computed again up to there.
#[test]
fn what_could_not_be_computed_again_is_too_large() {
    let mut desk = desk(&[D1]);
    let small = WorkerSpec {
        blocks: 10,
        ..spec(Role::Prefill)
    };
    desk.worker_up(ms(0), P1, small);
    assert_eq!(desk.longest_sequence(), Some(160));
    assert_eq!(desk.enqueue(bid(0, 144)), Ok(()));
    assert_eq!(desk.enqueue(bid(1, 145)), Err(Failure::TooLarge));
}

/// Load is what is under way, before it is what is free.
#[test]
fn the_least_loaded_way_is_taken() {
    let mut desk = desk(&[P1, D1]);
    for (node, role) in [(P2, Role::Prefill), (D2, Role::Decode)] {
        let blocks = 1_000;
        desk.worker_up(ms(0), node, WorkerSpec { blocks, ..spec(role) });
    }
    let routes: Vec<_> = (0..3).map(|seq| route_of(&mut desk, bid(seq, 16))).collect();
    let taken: Vec<_> = routes.iter().map(|route| (route.prefill, route.decode)).collect();
    assert_eq!(taken, [(P2, D2), (P1, D1), (P2, D2)]);
}

#[test]
fn a_prefill_worker_takes_no_more_than_it_has_slots() {
    let mut desk = desk(&[D1]);
    desk.worker_up(
        ms(0),
        P1,
        WorkerSpec {
            slots: 2,
            ..spec(Role::Prefill)
        },
    );
    for seq in 0..4 {
        desk.enqueue(bid(seq, 16)).unwrap();
    }
    assert_eq!(granted(&mut desk), [0, 1]);
}

#[test]
fn workers_that_failed_a_room_are_avoided_where_others_can_do_it() {
    let check = |up: &[NodeId], avoid: &[NodeId], expected: (NodeId, NodeId)| {
        let avoid = avoid.iter().copied().collect();
        let route = route_of(&mut desk(up), Bid { avoid, ..bid(0, 16) });
        assert_eq!((route.prefill, route.decode), expected, "{up:?}");
    };
    check(&[P1, P2, D1], &[P1], (P2, D1));
    check(&[P1, P2, D1], &[P2], (P1, D1));
    // Part by part: the only decode worker is taken again, the other prefill worker is not.
    check(&[P1, P2, D1], &[P1, D1], (P2, D1));
    check(&[P1, D1], &[P1, D1], (P1, D1));
    // A mixed worker is another way.
    check(&[P1, D1, M1], &[D1], (M1, M1));
}

#[test]
fn an_avoided_worker_is_not_taken_while_another_is_only_busy() {
    let mut desk = desk(&[P1, D1, D2]);
    desk.advertise(
        ms(1),
        D2,
        Advert {
            available_blocks: 0,
            free_slots: 0,
            draining: false,
        },
    );
    desk.enqueue(Bid {
        avoid: BTreeSet::from([D1]),
        ..bid(0, 16)
    })
    .unwrap();
    assert_eq!(granted(&mut desk), [0; 0]);
    desk.worker_down(ms(2), D2);
    assert_eq!(granted(&mut desk), [0]);
}
