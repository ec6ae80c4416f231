//! The end of rooms: abort, drain, the way to the fence, and what becomes of a dead owner's.

use room::{
    AbortBy, Attempt, AttemptError, Command, Failure, Finish, Generation, Happening, Inherited, Input,
    Limits, NodeId, Order, Outcome, PhaseKind, Proof, Refusal, Report, Room, Span,
};

use crate::room_kit::{
    DECODE, LIVE, MIXED, PAIR, PREFILL, ROOM, SPEC, advance, answers, commands, idle, ms, room_in, tell,
};

#[test]
fn an_abort_is_answered_at_once_and_drained_after() {
    for phase in LIVE {
        for route in [PAIR, MIXED] {
            if phase == PhaseKind::Pulling && route.is_mixed() {
                continue;
            }
            check_abort(room_in(phase, route));
        }
    }
}

fn check_abort(mut room: Room) {
    let phase = room.phase();
    let outcome = Outcome::Aborted(AbortBy::ClientGone);
    room.handle_input(ms(1), Input::Abort(AbortBy::ClientGone));
    let said = commands(&mut room);
    assert_eq!(said[0], Command::Answer(outcome), "{phase}");
    for leg in room.legs() {
        assert_eq!(room.phase(), PhaseKind::Draining, "{phase}");
        assert!(leg.told_to_close.is_some(), "{phase}");
        let closed = Input::FromWorker {
            worker: leg.worker,
            generation: leg.generation,
            report: Report::Closed,
        };
        room.handle_input(ms(2), closed);
    }
    assert_eq!(
        (room.phase(), room.outcome()),
        (PhaseKind::Ended, Some(outcome)),
        "{phase}"
    );
    assert_eq!(room.poll_timeout(), None, "{phase}");
}

#[test]
fn limits_of_zero_keep_nobody_busy() {
    let zero = Span::default();
    let limits = Limits {
        queue: zero,
        reserve: zero,
        close_first: zero,
        close_max: zero,
        drain_overdue: zero,
        drain_fence: zero,
        drain_max: zero,
        ..Limits::default()
    };
    let mut room = Room::new(ROOM, SPEC, &limits, ms(0));
    advance(&mut room, PhaseKind::Reserving, PAIR, ms(0));
    room.handle_input(ms(0), Input::Abort(AbortBy::ClientGone));
    for _ in 0..10 {
        let at = room.poll_timeout().unwrap();
        room.handle_timeout(at);
        assert!(room.poll_timeout() > Some(at), "due again at once");
    }
}

#[test]
fn the_legs_of_a_failed_attempt_are_drained_beside_the_next() {
    let mut room = room_in(PhaseKind::Pulling, PAIR);
    tell(&mut room, ms(1), DECODE, Report::Failed(AttemptError::PullFailed));
    advance(&mut room, PhaseKind::Reserving, MIXED, ms(2));
    let legs: Vec<_> = room
        .legs()
        .iter()
        .map(|leg| (leg.worker, leg.generation.0, leg.told_to_close))
        .collect();
    assert_eq!(
        legs,
        [(PREFILL, 1, Some(1)), (DECODE, 1, Some(1)), (DECODE, 2, None)]
    );

    let old = |report| Input::FromWorker {
        worker: DECODE,
        generation: Generation(1),
        report,
    };
    room.handle_input(ms(3), old(Report::Closed));
    assert_eq!(room.phase(), PhaseKind::Reserving);
    assert_eq!(room.legs().len(), 2);
}

#[test]
fn a_lease_that_is_not_returned_is_reported_then_fenced() {
    let mut room = room_in(PhaseKind::Decoding, MIXED);
    room.handle_input(ms(0), Input::Abort(AbortBy::ClientGone));
    commands(&mut room);
    while room.poll_event().is_some() {}
    let said = idle(&mut room, ms(6_000));
    let closes = said.iter().filter(|(_, c)| {
        matches!(
            c,
            Command::Send {
                order: Order::Close,
                ..
            }
        )
    });
    let at: Vec<_> = closes.map(|(at, _)| (*at - ms(0)).as_millis()).collect();
    assert_eq!(at, [100, 300, 700, 1_500, 3_100, 5_100]);
    let fences = said
        .iter()
        .filter(|(_, c)| *c == Command::Fence { worker: DECODE });
    let at: Vec<_> = fences.map(|(at, _)| (*at - ms(0)).as_millis()).collect();
    assert_eq!(at, [3_000, 6_000]);
    let overdue: Vec<_> = std::iter::from_fn(|| room.poll_event())
        .filter(|event| matches!(event.what, Happening::DrainOverdue { .. }))
        .map(|event| (event.at, event.room))
        .collect();
    assert_eq!(overdue, [(ms(1_000), ROOM)]);
    room.handle_input(ms(6_001), Input::WorkerLost { worker: DECODE });
    assert_eq!(room.phase(), PhaseKind::Ended);
}

#[test]
fn a_worker_that_says_it_is_at_it_is_not_fenced_for_a_while() {
    let mut room = room_in(PhaseKind::Decoding, MIXED);
    room.handle_input(ms(0), Input::Abort(AbortBy::ClientGone));
    commands(&mut room);
    let mut fenced_at = None;
    for tick in 1..200 {
        let now = ms(tick * 250);
        tell(&mut room, now, DECODE, Report::Held);
        let said = idle(&mut room, now);
        fenced_at = said
            .iter()
            .find(|(_, c)| matches!(c, Command::Fence { .. }))
            .map(|(at, _)| *at);
        if fenced_at.is_some() {
            break;
        }
    }
    assert_eq!(fenced_at, Some(ms(30_000)), "not before drain_max, and not never");
    tell(&mut room, ms(30_250), DECODE, Report::Held);
    assert_eq!(
        room.deadline(),
        Some(ms(33_000)),
        "then again, but not at every word"
    );
}

#[test]
fn adopted_rooms_close_what_the_dead_owner_had_open() {
    for answered in [false, true] {
        let outcome = Outcome::Failed(Failure::OwnerLost);
        let legs = vec![
            (PREFILL, Generation(2)),
            (DECODE, Generation(2)),
            (DECODE, Generation(1)),
        ];
        let inherited = Inherited {
            generation: Generation(2),
            legs: legs.clone(),
            outcome,
            answered,
        };
        let mut room = Room::adopt(ROOM, inherited, &Limits::default(), ms(5));
        assert_eq!(room.phase(), PhaseKind::Draining);
        let said = commands(&mut room);
        assert_eq!(answers(&said).len(), usize::from(!answered));
        let attempt = Attempt {
            room: ROOM,
            generation: Generation(2),
        };
        let leaves = Command::LeaveQueue { attempt };
        assert!(
            said.contains(&leaves),
            "it may have waited for credit, or have some"
        );
        let closes = said.iter().filter(|c| {
            matches!(
                c,
                Command::Send {
                    order: Order::Close,
                    ..
                }
            )
        });
        assert_eq!(closes.count(), 3);
        for (worker, generation) in legs {
            room.handle_input(
                ms(6),
                Input::FromWorker {
                    worker,
                    generation,
                    report: Report::NotHeld,
                },
            );
        }
        assert_eq!(commands(&mut room).last(), Some(&Command::End));
    }
}

#[test]
fn an_adopted_room_without_legs_ends_at_once() {
    let outcome = Outcome::Completed(Finish::Stop);
    let inherited = Inherited {
        generation: Generation(1),
        legs: vec![],
        outcome,
        answered: true,
    };
    let mut room = Room::adopt(ROOM, inherited, &Limits::default(), ms(5));
    assert_eq!((room.phase(), room.poll_timeout()), (PhaseKind::Ended, None));
    assert_eq!(commands(&mut room).last(), Some(&Command::End));
}

#[test]
fn a_worker_that_is_lost_before_it_was_asked_leaves_no_leg() {
    let mut room = room_in(PhaseKind::Reserving, PAIR);
    room.handle_input(ms(1), Input::WorkerLost { worker: PREFILL });
    assert_eq!(room.generation(), Generation(2));
    let legs: Vec<NodeId> = room.legs().iter().map(|leg| leg.worker).collect();
    assert_eq!(legs, [DECODE], "only decode was asked");
    assert_eq!(returns(&mut room), []);
}

#[test]
fn it_is_told_how_a_return_is_known() {
    let (reserving, decoding) = (PhaseKind::Reserving, PhaseKind::Decoding);
    let full = Report::Refused(Refusal::NoBlocks);
    for (phase, worker, report, proof) in [
        (reserving, DECODE, full, Proof::Refused),
        // Unasked, by the one that was to go on.
        (decoding, DECODE, Report::Closed, Proof::Closed),
        (decoding, DECODE, Report::NotHeld, Proof::NotHeld),
        // By the one that was told to.
        (decoding, PREFILL, Report::Closed, Proof::Closed),
        (decoding, PREFILL, Report::NotHeld, Proof::NotHeld),
    ] {
        let mut room = room_in(phase, PAIR);
        tell(&mut room, ms(1), worker, report);
        assert_eq!(returns(&mut room), [(worker, proof)], "{phase}: {report:?}");
    }
    let mut room = room_in(decoding, PAIR);
    room.handle_input(ms(1), Input::WorkerLost { worker: DECODE });
    assert_eq!(returns(&mut room), [(DECODE, Proof::Fenced)]);
}

fn returns(room: &mut Room) -> Vec<(NodeId, Proof)> {
    let returned = |what| match what {
        Happening::LegReturned { worker, by, .. } => Some((worker, by)),
        _ => None,
    };
    std::iter::from_fn(|| room.poll_event())
        .filter_map(|event| returned(event.what))
        .collect()
}
