//! What a board keeps, and what it gives away for a trace.

use std::sync::Arc;

use observe::{StayEvent, StayFacts, StayWhat, Trace, TraceId};
use room::{Attempt, Generation, Holds, NodeId, RoomId, StayCause, StayPhase, StayTransition, Time};

use super::{REMEMBERED, StayBoard};

const GATEWAY: NodeId = NodeId(9);
const WORKER: NodeId = NodeId(1);

fn attempt(seq: u64) -> Attempt {
    Attempt {
        room: RoomId {
            gateway: GATEWAY,
            seq,
        },
        generation: Generation::FIRST,
    }
}

fn event(attempt: Attempt, what: StayWhat) -> StayEvent {
    StayEvent {
        at: Time::default(),
        worker: WORKER,
        attempt,
        what,
    }
}

fn open(board: &StayBoard, seq: u64, flags: u8) {
    let facts = StayFacts {
        attempt: attempt(seq),
        worker: WORKER,
        name: "w".into(),
        trace: Some(Trace {
            flags,
            ..Trace::new(TraceId::new(5))
        }),
        prompt_tokens: 1,
        positions: 1,
        max_tokens: 1,
        priority: 0,
        opened: Time::default(),
        deadline: Time::default(),
    };
    board.keep(&event(attempt(seq), StayWhat::Opened(Arc::new(facts))));
}

/// Whether the stay's history is given away with its end.
fn end(board: &StayBoard, seq: u64) -> bool {
    let gone = StayTransition {
        at: Time::default(),
        attempt: attempt(seq),
        from: Some(StayPhase::Decoding),
        to: None,
        why: StayCause::Finished,
        holds: Holds::NONE,
    };
    board
        .keep(&event(attempt(seq), StayWhat::Step(gone)))
        .traced
        .is_some()
}

#[test]
fn what_is_sampled_is_given_when_it_ends() {
    let board = StayBoard::default();
    open(&board, 1, Trace::SAMPLED);
    open(&board, 2, 0);
    assert!(end(&board, 1));
    assert!(!end(&board, 2));
}

#[test]
fn what_is_wanted_later_is_given_if_it_is_over_and_else_when_it_is() {
    let board = StayBoard::default();
    for seq in [1, 2, 3] {
        open(&board, seq, 0);
    }
    assert!(!end(&board, 1));
    let given = board.want(GATEWAY, 1);
    assert_eq!(given.len(), 1);
    assert_eq!(given[0].facts().attempt, attempt(1));
    assert!(board.want(GATEWAY, 2).is_empty());
    assert!(end(&board, 2));
    // Another gateway's room of that number is another room.
    assert!(board.want(NodeId(8), 3).is_empty());
    assert!(!end(&board, 3));
}

#[test]
fn what_is_remembered_is_bounded_and_survives_the_worker() {
    let board = StayBoard::default();
    let all = REMEMBERED as u64 + 10;
    for seq in 0..all {
        open(&board, seq, 0);
        end(&board, seq);
    }
    open(&board, all, 0);
    assert_eq!(board.open().len(), 1);
    board.over();
    assert!(board.open().is_empty());
    let ended = board.lately_ended();
    assert_eq!(ended.len(), REMEMBERED);
    assert_eq!(
        ended.last().map(|history| history.facts().attempt),
        Some(attempt(all))
    );
    // Its last phase is where the worker left it.
    assert_eq!(ended.last().and_then(|history| history.ended()), None);
}

#[test]
fn of_an_attempt_that_is_not_here_nothing_is_kept() {
    let board = StayBoard::default();
    let kept = board.keep(&event(attempt(1), StayWhat::Withdrawn));
    assert!(kept.facts.is_none());
    assert!(board.open().is_empty() && board.lately_ended().is_empty());
}
