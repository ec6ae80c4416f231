//! The desk between tenants: whose turn it is, and who makes room.

use std::collections::BTreeMap;

use proptest::prelude::*;
use room::{
    Attempt, Bid, Credit, Desk, DeskLimits, Failure, Generation, Priority, Share, Tenant, Verdict, WorkerSpec,
};

use crate::desk_kit::{M1, attempt, bid, role_of, spec, verdicts};
use crate::room_kit::{cases, ms};

fn share(tenant: u64, weight: u16) -> Share {
    let tenant = Tenant(tenant);
    Share { tenant, weight }
}

fn of(share: Share, seq: u64, positions: u32) -> Bid {
    Bid {
        share,
        ..bid(seq, positions)
    }
}

/// A desk with one worker that serves one room at a time.
fn narrow(limits: DeskLimits) -> Desk {
    let mut desk = Desk::new(limits, ms(0));
    let one = WorkerSpec {
        slots: 1,
        ..spec(role_of(M1))
    };
    desk.worker_up(ms(0), M1, one);
    desk
}

/// Each is served and gone before the next is granted: in this order.
fn served(desk: &mut Desk, most: usize) -> Vec<u64> {
    let mut order = Vec::new();
    while order.len() < most {
        let [Verdict::Granted { attempt, .. }] = verdicts(desk, 1)[..] else {
            break;
        };
        desk.give_back(attempt, M1, Credit::All);
        order.push(attempt.room.seq);
    }
    order
}

#[test]
fn a_thousand_rooms_of_one_hold_up_anothers_by_one() {
    let mut desk = narrow(DeskLimits::default());
    for seq in 0..1_000 {
        desk.enqueue(of(share(1, 1), seq, 100)).unwrap();
    }
    assert_eq!(served(&mut desk, 3), [0, 1, 2]);
    desk.enqueue(of(share(2, 1), 5_000, 100)).unwrap();
    let next = served(&mut desk, 2);
    assert!(next.contains(&5_000), "{next:?}");
    assert_eq!(desk.waiting(), 1_001 - 5);
}

/// How many rooms each of two has had when so many were granted.
#[track_caller]
fn check(one: (Share, u32), other: (Share, u32), granted: usize, expected: (usize, usize)) {
    let mut desk = narrow(DeskLimits::default());
    for seq in 0..100 {
        desk.enqueue(of(one.0, seq, one.1)).unwrap();
        desk.enqueue(of(other.0, 1_000 + seq, other.1)).unwrap();
    }
    let order = served(&mut desk, granted);
    let ones = order.iter().filter(|seq| **seq < 1_000).count();
    assert_eq!((ones, order.len() - ones), expected);
    let sorted = |wanted: bool| {
        let mut of = order.iter().filter(|seq| (**seq < 1_000) == wanted);
        let mut last = of.next();
        of.all(|seq| last.replace(seq) < Some(seq))
    };
    assert!(sorted(true) && sorted(false), "each by arrival");
}

#[test]
fn turns_are_by_tokens_and_by_weight() {
    check((share(1, 1), 100), (share(2, 1), 100), 40, (20, 20));
    check((share(1, 1), 100), (share(2, 3), 100), 40, (10, 30));
    // With the 16 tokens of their answers.
    check((share(1, 1), 104), (share(2, 1), 464), 40, (32, 8));
}

/// Who was away has saved up nothing, and owes nothing.
#[test]
fn a_turn_is_not_saved_up() {
    let mut desk = narrow(DeskLimits::default());
    for seq in 0..10 {
        desk.enqueue(of(share(1, 1), seq, 100)).unwrap();
    }
    assert_eq!(served(&mut desk, 10).len(), 10);
    for seq in 10..20 {
        desk.enqueue(of(share(1, 1), seq, 100)).unwrap();
        desk.enqueue(of(share(2, 1), 100 + seq, 100)).unwrap();
    }
    let order = served(&mut desk, 20);
    for pair in order.chunks(2) {
        assert!((pair[0] < 100) != (pair[1] < 100), "{order:?}");
    }
}

#[test]
fn priority_goes_before_turns() {
    let mut desk = narrow(DeskLimits::default());
    for seq in 0..4 {
        desk.enqueue(of(share(1, 1), seq, 100)).unwrap();
    }
    for seq in 10..14 {
        let urgent = Bid {
            priority: Priority(1),
            ..of(share(2, 1), seq, 100)
        };
        desk.enqueue(urgent).unwrap();
    }
    assert_eq!(served(&mut desk, 8), [10, 11, 12, 13, 0, 1, 2, 3]);
}

/// A room whose attempt failed has paid: it waits for no turn, however far ahead its tenant is.
#[test]
fn a_later_attempt_waits_for_no_turn() {
    let mut desk = narrow(DeskLimits::default());
    for seq in 0..10 {
        desk.enqueue(of(share(1, 1), seq, 400)).unwrap();
    }
    desk.enqueue(of(share(2, 1), 100, 10)).unwrap();
    assert_eq!(served(&mut desk, 2), [0, 100]);
    for seq in 101..110 {
        desk.enqueue(of(share(2, 1), seq, 10)).unwrap();
    }
    let again = Attempt {
        generation: Generation(2),
        ..attempt(0)
    };
    let again = Bid {
        attempt: again,
        begun: true,
        ..of(share(1, 1), 0, 400)
    };
    desk.enqueue(again).unwrap();
    assert_eq!(served(&mut desk, 2), [0, 101]);
}

#[test]
fn whoever_has_most_makes_room_in_a_full_queue() {
    let limits = DeskLimits {
        queue_rooms: 4,
        ..DeskLimits::default()
    };
    let mut desk = Desk::new(limits, ms(0));
    for seq in 0..4 {
        desk.enqueue(of(share(1, 1), seq, 100)).unwrap();
    }
    let full = Err(Failure::QueueFull);
    assert_eq!(desk.enqueue(of(share(1, 1), 9, 100)), full);
    let ousted = |desk: &mut Desk, seq| {
        let verdict = Verdict::Refused {
            attempt: attempt(seq),
            failure: Failure::QueueFull,
        };
        assert_eq!(verdicts(desk, 1), [verdict]);
    };
    desk.enqueue(of(share(2, 1), 10, 100)).unwrap();
    ousted(&mut desk, 3);
    desk.enqueue(of(share(2, 1), 11, 100)).unwrap();
    ousted(&mut desk, 2);
    assert_eq!(desk.enqueue(of(share(2, 1), 12, 100)), full, "they have the same");
    assert_eq!(desk.enqueue(of(share(1, 1), 2, 100)), full);
    // By weight: three times as much is no more.
    desk.enqueue(of(share(3, 3), 20, 100)).unwrap();
    ousted(&mut desk, 1);
    assert_eq!(desk.waiting(), 4);
    // One that leaves before it is told is not told.
    desk.enqueue(of(share(3, 3), 21, 100)).unwrap();
    desk.leave(attempt(11));
    assert_eq!((verdicts(&mut desk, 1), desk.waiting()), (Vec::new(), 4));
}

proptest! {
    #![proptest_config(cases(200))]

    /// While two tenants wait, what each was granted by its weight is never further apart than one room of each.
    #[test]
    fn nobody_gets_ahead_by_more_than_a_room(
        weights in (1..9_u16, 1..9_u16),
        sizes in proptest::collection::vec((1..500_u32, 1..500_u32), 40),
    ) {
        let mut desk = narrow(DeskLimits::default());
        let shares = [share(1, weights.0), share(2, weights.1)];
        let mut tokens = BTreeMap::new();
        for (seq, (one, other)) in (0..).zip(&sizes) {
            for (place, size) in [one, other].into_iter().enumerate() {
                let seq = seq + 1_000 * place as u64;
                tokens.insert(seq, f64::from(size + 16));
                desk.enqueue(of(shares[place], seq, *size)).unwrap();
            }
        }
        let largest = 516.0;
        let weights = [f64::from(weights.0), f64::from(weights.1)];
        let bound = largest / weights[0] + largest / weights[1];
        let (mut had, mut left) = ([0.0, 0.0], [sizes.len(); 2]);
        while left.iter().all(|left| *left > 0) {
            let order = served(&mut desk, 1);
            let place = usize::from(order[0] >= 1_000);
            had[place] += tokens[&order[0]] / weights[place];
            left[place] -= 1;
            prop_assert!((had[0] - had[1]).abs() <= bound + 1e-6, "{had:?}");
        }
    }
}
