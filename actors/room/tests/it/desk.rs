//! The desk: order, and what it refuses.

use std::collections::BTreeSet;

use proptest::prelude::*;
use room::{
    Advert, Attempt, Bid, Credit, Desk, DeskLimits, Failure, Generation, NodeId, Priority, Role, Verdict,
    WorkerSpec,
};

use crate::desk_kit::{
    D1, D2, DRAINING, M1, M2, P1, P2, attempt, bid, desk, granted, role_of, route_of, spec, verdicts,
};
use crate::room_kit::{cases, ms};

#[test]
fn priority_then_arrival() {
    let mut desk = desk(&[P1]);
    for seq in [3, 1, 2] {
        desk.enqueue(bid(seq, 16)).unwrap();
    }
    desk.enqueue(Bid {
        priority: Priority(1),
        ..bid(4, 16)
    })
    .unwrap();
    assert_eq!(granted(&mut desk), [0; 0], "no decode worker");
    desk.worker_up(ms(1), D1, spec(Role::Decode));
    assert_eq!(granted(&mut desk), [4, 1, 2, 3]);
}

#[test]
fn leaving_gives_back_what_was_granted_in_the_meantime() {
    let mut desk = desk(&[P1, D1]);
    for seq in 0..5 {
        desk.enqueue(bid(seq, 16)).unwrap();
    }
    assert_eq!(granted(&mut desk).len(), 4);
    desk.leave(attempt(2));
    assert_eq!(granted(&mut desk), [4]);
    for seq in 0..5 {
        desk.leave(attempt(seq));
    }
    assert!(
        desk.workers()
            .iter()
            .all(|w| (w.attempts, w.promised_blocks, w.prefills) == (0, 0, 0))
    );
}

#[test]
fn an_old_attempt_that_leaves_does_not_take_the_next_one_along() {
    let mut desk = desk(&[M1]);
    let next = Attempt {
        generation: Generation(2),
        ..attempt(0)
    };
    let second = Bid {
        attempt: next,
        ..bid(0, 16)
    };
    desk.enqueue(second).unwrap();
    desk.leave(attempt(0));
    assert_eq!(desk.waiting(), 1);
    desk.leave(next);
    assert_eq!(desk.waiting(), 0);
}

#[test]
fn an_answer_that_has_begun_waits_longer_for_an_absent_role() {
    let refused = |seq| Verdict::Refused {
        attempt: attempt(seq),
        failure: Failure::NoWorker,
    };
    let mut desk = desk(&[P1, D1]);
    desk.worker_down(ms(5_000), D1);
    let begun = |seq| Bid {
        begun: true,
        ..bid(seq, 16)
    };
    desk.enqueue(begun(0)).unwrap();
    desk.enqueue(bid(1, 16)).unwrap();
    desk.enqueue(begun(2)).unwrap();
    assert_eq!(desk.poll_timeout(), Some(ms(6_000)));
    assert_eq!(verdicts(&mut desk, 6_000), [refused(1)]);
    assert_eq!(desk.poll_timeout(), Some(ms(35_000)));
    assert_eq!(verdicts(&mut desk, 34_999), []);
    // Back in time.
    desk.worker_up(ms(34_999), D2, spec(Role::Decode));
    assert_eq!(granted(&mut desk), [0, 2]);
    desk.worker_down(ms(40_000), D2);
    desk.enqueue(begun(3)).unwrap();
    assert_eq!(verdicts(&mut desk, 70_000), [refused(3)]);
    assert_eq!(desk.poll_timeout(), None);
}

#[test]
fn an_absent_role_is_refused_after_the_grace() {
    let refused = |seq| Verdict::Refused {
        attempt: attempt(seq),
        failure: Failure::NoWorker,
    };
    let mut desk = desk(&[P1, D1]);
    desk.worker_down(ms(5_000), P1);
    desk.enqueue(bid(0, 16)).unwrap();
    desk.enqueue(bid(1, 16)).unwrap();
    desk.worker_up(ms(5_500), D2, spec(Role::Decode)); // which is not what is missing
    assert_eq!(desk.poll_timeout(), Some(ms(6_000)));
    assert_eq!(verdicts(&mut desk, 5_999), []);
    assert_eq!(verdicts(&mut desk, 6_000), [refused(0), refused(1)]);
    // Those that come later do not wait again.
    desk.enqueue(bid(2, 16)).unwrap();
    assert_eq!(verdicts(&mut desk, 6_001), [refused(2)]);
    assert_eq!(desk.poll_timeout(), None);
    // A worker that is back in time is all they need.
    desk.worker_up(ms(6_002), P2, spec(Role::Prefill));
    desk.worker_down(ms(6_003), P2);
    desk.enqueue(bid(3, 16)).unwrap();
    assert_eq!(verdicts(&mut desk, 6_900), []);
    desk.worker_up(ms(6_901), P2, spec(Role::Prefill));
    assert_eq!(verdicts(&mut desk, 7_100).len(), 1);
}

#[test]
fn the_queue_is_bounded_and_retries_have_their_own_part() {
    let limits = DeskLimits {
        queue_rooms: 2,
        ..DeskLimits::default()
    };
    let mut desk = Desk::new(limits, ms(0));
    let retry = |seq| {
        let attempt = Attempt {
            generation: Generation(2),
            ..attempt(seq)
        };
        Bid {
            attempt,
            ..bid(seq, 16)
        }
    };
    let results: Vec<_> = [bid(0, 1), bid(1, 1), bid(2, 1), retry(3), retry(4), retry(5)]
        .into_iter()
        .map(|bid| desk.enqueue(bid).is_ok())
        .collect();
    assert_eq!(results, [true, true, false, true, true, false]);
    // A second bid of a room takes the place of its first.
    assert_eq!(desk.enqueue(retry(1)), Ok(()));
    assert_eq!(desk.waiting(), 4);
}

#[test]
fn small_rooms_pass_a_large_one_but_not_for_ever() {
    let limits = DeskLimits {
        max_passed: 3,
        prefills_per_worker: 100,
        ..DeskLimits::default()
    };
    let mut desk = Desk::new(limits, ms(0));
    desk.worker_up(
        ms(0),
        M1,
        WorkerSpec {
            slots: 100,
            ..spec(Role::Mixed)
        },
    );
    route_of(&mut desk, bid(0, 800));
    desk.enqueue(bid(1, 1_000)).unwrap();
    for seq in 2..10 {
        desk.enqueue(bid(seq, 16)).unwrap();
    }
    assert_eq!(granted(&mut desk), [2, 3, 4], "then they wait for the large one");
    desk.give_back(attempt(0), M1, Credit::All);
    assert_eq!(granted(&mut desk), [1, 5, 6, 7, 8, 9]);
}

/// What could only go to a worker that takes nothing new is passed for as long as it waits.
#[test]
fn nobody_waits_for_a_room_that_could_not_be_served_anyhow() {
    let limits = DeskLimits {
        max_passed: 1,
        ..DeskLimits::default()
    };
    let mut desk = Desk::new(limits, ms(0));
    desk.worker_up(ms(0), M1, spec(Role::Mixed));
    let large = WorkerSpec {
        blocks: 1_000,
        ..spec(Role::Mixed)
    };
    desk.worker_up(ms(0), M2, large);
    desk.advertise(ms(0), M2, DRAINING);
    desk.enqueue(bid(0, 5_000)).unwrap();
    for seq in 1..5 {
        desk.enqueue(bid(seq, 16)).unwrap();
    }
    assert_eq!(granted(&mut desk), [1, 2, 3, 4]);
}

#[test]
fn a_room_that_would_hold_up_others_is_not_choosy() {
    let limits = DeskLimits {
        max_passed: 1,
        ..DeskLimits::default()
    };
    let mut desk = Desk::new(limits, ms(0));
    for node in [M1, M2] {
        desk.worker_up(ms(0), node, spec(Role::Mixed));
    }
    let full = Advert {
        available_blocks: 0,
        ..DRAINING
    };
    desk.advertise(
        ms(1),
        M2,
        Advert {
            draining: false,
            ..full
        },
    );
    let avoid = BTreeSet::from([M1]);
    desk.enqueue(Bid { avoid, ..bid(0, 16) }).unwrap();
    assert_eq!(granted(&mut desk), [0; 0], "nobody is held up");
    for seq in 1..3 {
        desk.enqueue(bid(seq, 16)).unwrap();
    }
    assert_eq!(granted(&mut desk), [1, 0, 2]);
}

#[test]
fn so_many_are_looked_at_in_one_search() {
    let limits = DeskLimits {
        scan_rooms: 2,
        ..DeskLimits::default()
    };
    let mut desk = Desk::new(limits, ms(0));
    desk.worker_up(ms(0), M1, spec(Role::Mixed));
    route_of(&mut desk, bid(0, 800));
    for seq in 1..3 {
        desk.enqueue(bid(seq, 1_000)).unwrap();
    }
    desk.enqueue(bid(3, 16)).unwrap();
    assert_eq!(granted(&mut desk), [0; 0]);
    desk.leave(attempt(1));
    assert_eq!(granted(&mut desk), [3]);
}

#[derive(Clone, Debug)]
enum Op {
    Enqueue(u64, u32, u8),
    Leave(u64),
    GiveBack(u64, usize, bool),
    Up(usize),
    Down(usize),
    Advertise(usize, u32, u32, bool),
}

const NODES: [NodeId; 5] = [P1, P2, D1, D2, M1];

fn op() -> impl Strategy<Value = Op> {
    let node = 0..NODES.len();
    prop_oneof![
        6 => (0..40u64, 1..2_000u32, 0..3u8).prop_map(|(s, p, u)| Op::Enqueue(s, p, u)),
        2 => (0..40u64).prop_map(Op::Leave),
        4 => (0..40u64, node.clone(), any::<bool>()).prop_map(|(s, n, all)| Op::GiveBack(s, n, all)),
        2 => node.clone().prop_map(Op::Up),
        1 => node.clone().prop_map(Op::Down),
        2 => (node, 0..120u32, 0..5u32, any::<bool>()).prop_map(|(n, b, s, d)| Op::Advertise(n, b, s, d)),
    ]
}

fn check_credit(desk: &Desk, limits: &DeskLimits) {
    for worker in desk.workers() {
        assert!(worker.promised_blocks <= worker.spec.blocks, "{worker:?}");
        assert!(worker.prefills <= limits.prefills_per_worker, "{worker:?}");
        let slots = usize::try_from(worker.spec.slots).unwrap();
        assert!(
            worker.spec.role == Role::Prefill || worker.attempts <= slots,
            "{worker:?}"
        );
    }
}

proptest! {
    #![proptest_config(cases(500))]

    /// Never more is promised than there is; nobody gets two verdicts; in the end every credit is back (INV-11).
    #[test]
    fn credit_is_neither_overdrawn_nor_lost(ops in proptest::collection::vec(op(), 0..80)) {
        let limits = DeskLimits { queue_rooms: 16, max_passed: 2, ..DeskLimits::default() };
        let mut desk = Desk::new(limits, ms(0));
        let mut waiting = BTreeSet::new();
        for (step, op) in (1..).zip(&ops) {
            let now = ms(step * 50);
            match *op {
                Op::Enqueue(seq, positions, priority) => {
                    let bid = Bid { priority: Priority(priority), ..bid(seq, positions) };
                    desk.leave(bid.attempt);
                    match desk.enqueue(bid) {
                        Ok(()) => waiting.insert(seq),
                        Err(_) => waiting.remove(&seq),
                    };
                }
                Op::Leave(seq) => {
                    desk.leave(attempt(seq));
                    waiting.remove(&seq);
                }
                Op::GiveBack(seq, node, all) => {
                    let credit = if all { Credit::All } else { Credit::Compute };
                    desk.give_back(attempt(seq), NODES[node], credit);
                }
                Op::Up(node) => desk.worker_up(now, NODES[node], spec(role_of(NODES[node]))),
                Op::Down(node) => desk.worker_down(now, NODES[node]),
                Op::Advertise(node, available_blocks, free_slots, draining) => {
                    desk.advertise(now, NODES[node], Advert { available_blocks, free_slots, draining });
                }
            }
            while let Some(verdict) = desk.poll_verdict(now) {
                let (Verdict::Granted { attempt, .. } | Verdict::Refused { attempt, .. }) = verdict;
                prop_assert!(waiting.remove(&attempt.room.seq), "{verdict:?} of nobody who waits");
                check_credit(&desk, &limits);
            }
            prop_assert_eq!(desk.waiting(), waiting.len());
        }
        for seq in 0..40 {
            desk.leave(attempt(seq));
        }
        prop_assert_eq!(desk.waiting(), 0);
        prop_assert!(desk.workers().iter().all(|w| w.attempts == 0));
    }
}
