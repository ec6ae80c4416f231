//! What is shown and counted of rooms agrees with what happened to them.

use room::{AbortBy, Generation, Input, Limits, NodeId, Report, Room, RoomId, RoomSpec, Time};

use super::{Board, Counts, OTHER, RoomView, TRANSPORTS};
use crate::testing::{facts, job};

#[test]
fn what_changes_nothing_is_counted_once() {
    let now = Time::default();
    let id = RoomId {
        gateway: NodeId(1),
        seq: 1,
    };
    let spec = RoomSpec {
        positions: 1,
        max_new: 1,
        deadline: Time { micros: 1 },
        priority: room::Priority(0),
        share: room::Share::default(),
    };
    let job = job(vec![5], 1);
    let mut room = Room::new(id, spec, &Limits::default(), now);
    let board = Board::default();
    let history = observe::RoomHistory::new(facts(id));
    board.opened(RoomView::new(&room, &job, now), history);
    let stray = Input::FromWorker {
        worker: NodeId(7),
        generation: Generation::FIRST,
        report: Report::Published,
    };
    for input in [stray, Input::Abort(AbortBy::ClientGone), stray] {
        room.handle_input(now, input);
        board.show(id, &room, &mut []);
        board.show(id, &room, &mut []);
    }
    assert_eq!(board.counts().stale_inputs, 2);
}

#[test]
fn what_is_told_late_is_not_kept_as_earlier() {
    let board = Board::default();
    let id = RoomId {
        gateway: NodeId(1),
        seq: 1,
    };
    let at = |ms: u64| Time { micros: ms * 1_000 };
    let spec = RoomSpec {
        positions: 1,
        max_new: 1,
        deadline: at(9),
        priority: room::Priority(0),
        share: room::Share::default(),
    };
    let room = Room::new(id, spec, &Limits::default(), at(0));
    let view = RoomView::new(&room, &job(vec![5], 1), at(0));
    board.opened(view, observe::RoomHistory::new(facts(id)));
    let fired = |_: &_| observe::RoomWhat::TimerFired {
        phase: room::PhaseKind::Queued,
    };
    for (looked_at_ms, kept_at_ms) in [(5, 5), (3, 5), (6, 6)] {
        let (event, _) = board.keep(id, at(looked_at_ms), fired).unwrap();
        assert_eq!(event.at, at(kept_at_ms));
    }
    let (event, history) = board.ended(id, None, at(4)).unwrap();
    assert_eq!((event.at, history.latest()), (at(6), at(6)));
    assert!(board.keep(id, at(7), fired).is_none());
}

#[test]
fn a_worker_cannot_make_up_transports_without_end() {
    let mut counts = Counts::default();
    for n in 0..100 {
        counts.moved(&format!("transport-{n}"), u64::MAX, u32::MAX);
    }
    counts.moved("transport-0", 1, 1);
    let pulled = counts.pulled;
    assert_eq!(pulled.len(), TRANSPORTS + 1);
    assert_eq!(pulled[OTHER].2, 100 - TRANSPORTS as u64);
    assert_eq!(pulled["transport-0"], (u64::MAX, u64::from(u32::MAX) + 1, 2));
}
