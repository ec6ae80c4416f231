//! Policies, as the desk uses them.

use std::sync::Arc;

use room::{
    BlockHash, ByTime, CacheChange, Credit, Desk, DeskLimits, Failure, Hints, LongestPrefix, NodeId, Pace,
    Policy, Role, RoundRobin, Time, Verdict, Weights, WorkerSpec,
};

use crate::desk_kit::{D1, D2, M1, P1, P2, attempt, bid, role_of};
use crate::room_kit::ms;

/// Blocks of 16 positions; enough of everything.
fn spec(role: Role) -> WorkerSpec {
    WorkerSpec {
        role,
        blocks: 10_000,
        block_tokens: 16,
        slots: 8,
    }
}

fn desk(policy: impl Policy + 'static, nodes: &[NodeId]) -> Desk {
    let mut desk = Desk::with_policy(DeskLimits::default(), Box::new(policy), ms(0));
    for node in nodes {
        desk.worker_up(ms(0), *node, spec(role_of(*node)));
    }
    desk
}

/// A millisecond for each position of a prompt; steps of 10 ms and a microsecond for each position of context; a tenth of a millisecond
/// to move a position.
fn pace() -> Pace {
    let mut pace = Pace::default();
    for n in [10, 1_000] {
        pace.ran(n, 0, u64::from(n) * 1_000);
        pace.ran(0, u64::from(n), 10_000 + u64::from(n));
        pace.pulled(n, u64::from(n) * 100);
    }
    pace
}

fn paced(nodes: &[NodeId], weights: Weights) -> Desk {
    let mut desk = desk(ByTime::new(weights), nodes);
    for node in nodes {
        desk.paced(*node, pace());
    }
    desk
}

/// With no prompts at decode workers.
fn apart() -> Weights {
    Weights {
        decode_computes: false,
        ..Weights::default()
    }
}

fn named(prefix: u128, blocks: u32) -> Hints {
    Hints {
        hashes: (0..u128::from(blocks))
            .map(|block| BlockHash(prefix * 1_000 + block))
            .collect(),
        first_token_by: None,
    }
}

fn has(desk: &mut Desk, node: NodeId, hints: &Hints) {
    for (seq, hash) in (0..).zip(hints.hashes.iter()) {
        let stored = CacheChange {
            seq,
            hash: *hash,
            stored: true,
        };
        desk.cache_changed(node, stored);
    }
}

fn ask(desk: &mut Desk, now: Time, seq: u64, positions: u32, hints: Hints) -> Option<Verdict> {
    desk.enqueue_with(bid(seq, positions), hints).unwrap();
    desk.poll_verdict(now)
}

fn route(verdict: Option<Verdict>) -> (NodeId, NodeId) {
    match verdict {
        Some(Verdict::Granted { route, .. }) => (route.prefill, route.decode),
        other => panic!("{other:?}"),
    }
}

fn placed(desk: &mut Desk, seq: u64, positions: u32, hints: Hints) -> (NodeId, NodeId) {
    route(ask(desk, ms(0), seq, positions, hints))
}

#[test]
fn round_robin_takes_one_after_the_other() {
    let mut desk = desk(RoundRobin::default(), &[P1, P2, D1, D2]);
    let routes: Vec<_> = (0..4)
        .map(|seq| placed(&mut desk, seq, 16, Hints::default()))
        .collect();
    assert_eq!(routes, [(P1, D1), (P2, D2), (P1, D1), (P2, D2)]);
}

#[test]
fn the_longest_prefix_is_found_at_both_ends() {
    let mut desk = desk(LongestPrefix, &[P1, P2, D1, D2]);
    let known = named(1, 4);
    has(&mut desk, P2, &known);
    has(&mut desk, D2, &known);
    assert_eq!(placed(&mut desk, 0, 100, known.clone()), (P2, D2));
    assert_eq!(placed(&mut desk, 1, 100, known), (P2, D2));
    // Of what nobody has, the least loaded.
    assert_eq!(placed(&mut desk, 2, 100, named(2, 4)), (P1, D1));
}

#[test]
fn a_prefix_is_worth_what_it_saves() {
    let mut desk = paced(&[P1, P2, D1], apart());
    let known = named(1, 30);
    has(&mut desk, P1, &known);
    // 500 positions, 480 of them there: goes there though something is queued already, as long as that is less.
    assert_eq!(placed(&mut desk, 0, 100, Hints::default()), (P1, D1));
    assert_eq!(placed(&mut desk, 1, 500, known.clone()), (P1, D1));
    // With more in the queue than it saves, the other one is faster.
    for seq in 2..4 {
        desk.enqueue(bid(seq, 1_500)).unwrap();
        desk.poll_verdict(ms(0)).unwrap();
    }
    assert_eq!(
        placed(&mut desk, 4, 500, known.clone()).0,
        P1,
        "1,500 in each queue"
    );
    desk.enqueue(bid(5, 1_500)).unwrap();
    desk.give_back(attempt(3), P2, Credit::All);
    desk.give_back(attempt(2), P2, Credit::All);
    assert_eq!(desk.poll_verdict(ms(0)).map(|v| route(Some(v)).0), Some(P2));
}

#[test]
fn what_is_queued_passes_with_time() {
    let mut desk = paced(
        &[P1, P2, D1],
        Weights {
            lately: 0.0,
            ..apart()
        },
    );
    assert_eq!(placed(&mut desk, 0, 100, Hints::default()).0, P1);
    assert_eq!(placed(&mut desk, 1, 400, Hints::default()).0, P2);
    // After 90 ms 10 ms are left at P1 and 310 at P2.
    assert_eq!(route(ask(&mut desk, ms(90), 2, 350, Hints::default())).0, P1);
    // 360 at P1, and 310 at P2.
    assert_eq!(route(ask(&mut desk, ms(90), 3, 10, Hints::default())).0, P2);
    // What is given back is not queued.
    desk.give_back(attempt(2), P1, Credit::Compute);
    assert_eq!(route(ask(&mut desk, ms(90), 4, 10, Hints::default())).0, P1);
}

#[test]
fn answers_go_where_they_cost_the_least() {
    let mut desk = paced(&[P1, D1, D2], apart());
    assert_eq!(placed(&mut desk, 0, 5_000, Hints::default()).1, D1);
    // Two small ones are less context than the one large.
    assert_eq!(placed(&mut desk, 1, 100, Hints::default()).1, D2);
    assert_eq!(placed(&mut desk, 2, 100, Hints::default()).1, D2);
}

#[test]
fn a_short_prompt_is_computed_where_it_is_answered() {
    let mut desk = paced(&[P1, D1], Weights::default());
    // Nobody is disturbed at D1, and there is nothing to move.
    assert_eq!(placed(&mut desk, 0, 100, Hints::default()), (D1, D1));
    // Two answers there would stand still for as long as a long prompt is computed: dearer than moving it.
    assert_eq!(placed(&mut desk, 1, 50, Hints::default()).1, D1);
    assert_eq!(placed(&mut desk, 2, 4_000, Hints::default()), (P1, D1));
}

#[test]
fn a_mixed_worker_is_used_where_there_are_no_pairs() {
    for policy in [
        Box::new(RoundRobin::default()) as Box<dyn Policy>,
        Box::new(LongestPrefix),
        Box::new(ByTime::default()),
    ] {
        let mut desk = Desk::with_policy(DeskLimits::default(), policy, ms(0));
        desk.worker_up(ms(0), M1, spec(Role::Mixed));
        assert_eq!(placed(&mut desk, 0, 100, Hints::default()), (M1, M1));
    }
}

#[test]
fn who_would_be_late_is_refused_at_once() {
    let by = |at: u64, hints: Hints| Hints {
        first_token_by: Some(ms(at)),
        ..hints
    };
    let mut desk = paced(&[P1, D1], apart());
    assert_eq!(placed(&mut desk, 0, 500, by(500, Hints::default())), (P1, D1));
    // 500 ms are queued.
    let refused = |seq| Verdict::Refused {
        attempt: attempt(seq),
        failure: Failure::NoCredit,
    };
    assert_eq!(
        ask(&mut desk, ms(0), 1, 100, by(599, Hints::default())),
        Some(refused(1))
    );
    assert_eq!(placed(&mut desk, 2, 100, by(601, Hints::default())), (P1, D1));
    // With everything promised, one that could be in time waits, and one that never could does not.
    for seq in 3..5 {
        assert_eq!(placed(&mut desk, seq, 10, Hints::default()), (P1, D1));
    }
    assert_eq!(ask(&mut desk, ms(0), 5, 100, by(200, Hints::default())), None);
    assert_eq!(
        ask(&mut desk, ms(0), 6, 300, by(200, Hints::default())),
        Some(refused(6))
    );
    // Its time has come.
    desk.give_back(attempt(0), P1, Credit::All);
    desk.advertise(
        ms(150),
        D1,
        room::Advert {
            available_blocks: 9_000,
            free_slots: 4,
            draining: false,
        },
    );
    assert_eq!(desk.poll_verdict(ms(150)), Some(refused(5)));
}

#[test]
fn without_measurements_nobody_is_refused() {
    let mut desk = desk(ByTime::default(), &[P1, D1]);
    let hints = Hints {
        hashes: Arc::default(),
        first_token_by: Some(ms(1)),
    };
    assert!(matches!(
        ask(&mut desk, ms(0), 0, 5_000, hints),
        Some(Verdict::Granted { .. })
    ));
}

#[test]
fn a_worker_that_is_gone_takes_its_queue_with_it() {
    let mut desk = paced(&[P1, P2, D1], apart());
    assert_eq!(placed(&mut desk, 0, 1_000, Hints::default()).0, P1);
    desk.worker_down(ms(0), P1);
    desk.worker_up(ms(0), P1, spec(Role::Prefill));
    desk.paced(P1, pace());
    assert_eq!(placed(&mut desk, 1, 1_000, Hints::default()).0, P1);
}
