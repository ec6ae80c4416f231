//! Lives of rooms: retries, migrations, deadlines.

use room::{
    AttemptError, Command, Failure, Finish, Generation, Happening, Input, Limits, Order, Outcome, PhaseKind,
    Refusal, Report, Room, RoomSpec, Span, WaitsFor,
};

use crate::room_kit::{
    DECODE, LIVE, MIXED, PAIR, PREFILL, ROOM, SPEC, advance, answers, commands, from, idle, ms, new_room,
    room_in, tell, token,
};

#[test]
fn the_request_deadline_ends_every_phase_on_time() {
    for phase in LIVE {
        let mut limits = Limits::default();
        let long = Span::from_millis(3_600_000);
        (limits.queue, limits.reserve, limits.prefill_stall) = (long, long, long);
        (limits.pull, limits.token_stall) = (long, long);
        let mut room = Room::new(ROOM, SPEC, &limits, ms(0));
        advance(&mut room, phase, PAIR, ms(0));
        commands(&mut room);
        let said = idle(&mut room, SPEC.deadline);
        let answer = (SPEC.deadline, Command::Answer(Outcome::Expired(phase)));
        assert_eq!(
            said.iter().find(|(_, c)| matches!(c, Command::Answer(_))),
            Some(&answer)
        );
    }
}

#[test]
fn no_credit_before_the_queue_deadline() {
    let mut room = new_room();
    let said = idle(&mut room, ms(10_000));
    assert_eq!(room.outcome(), Some(Outcome::Failed(Failure::NoCredit)));
    assert_eq!(said.last().map(|(at, _)| *at), Some(ms(10_000)));
    assert_eq!(room.phase(), PhaseKind::Ended, "nothing was started");
}

#[test]
fn silence_in_a_phase_fails_the_attempt_and_blames_its_speaker() {
    for (phase, blamed) in [
        (PhaseKind::Reserving, DECODE),
        (PhaseKind::Prefilling, PREFILL),
        (PhaseKind::Pulling, DECODE),
        (PhaseKind::Decoding, DECODE),
    ] {
        let mut room = room_in(phase, PAIR);
        let at = room.deadline().unwrap();
        room.handle_timeout(at);
        let failed = std::iter::from_fn(|| room.poll_event()).find_map(|event| match event.what {
            Happening::AttemptFailed {
                worker,
                error,
                retried,
            } => Some((worker, error, retried)),
            _ => None,
        });
        assert_eq!(failed, Some((blamed, AttemptError::NoProgress(phase), true)));
        assert_eq!(
            (room.phase(), room.generation()),
            (PhaseKind::Queued, Generation(2))
        );
    }
}

#[test]
fn progress_moves_the_deadline_and_repetition_does_not() {
    let mut room = room_in(PhaseKind::Prefilling, PAIR);
    let armed = room.deadline().unwrap();
    tell(&mut room, ms(1_000), PREFILL, Report::Progress { positions: 16 });
    assert_eq!(room.deadline(), Some(armed + Span::from_millis(1_000)));
    tell(&mut room, ms(2_000), PREFILL, Report::Progress { positions: 16 });
    assert_eq!(room.deadline(), Some(armed + Span::from_millis(1_000)));
    let waits = WaitsFor::Prompt {
        worker: PREFILL,
        computed: 16,
        positions: 100,
    };
    assert_eq!(room.waits_for(), waits);
}

/// So many times at most is a deadline moved by progress.
#[test]
fn there_is_no_more_progress_than_there_are_positions() {
    let mut room = room_in(PhaseKind::Prefilling, PAIR);
    tell(&mut room, ms(1), PREFILL, Report::Progress { positions: 9_999 });
    let armed = room.deadline();
    tell(&mut room, ms(2), PREFILL, Report::Progress { positions: 10_000 });
    assert_eq!((room.deadline(), room.stale_inputs()), (armed, 1));
}

#[test]
fn a_migrated_answer_goes_on_where_it_was() {
    let mut room = room_in(PhaseKind::Decoding, PAIR);
    tell(&mut room, ms(1), DECODE, Report::Tokens { from: 1, count: 3 });
    room.handle_input(ms(2), Input::WorkerLost { worker: DECODE });
    let said = commands(&mut room);
    let bid = said
        .iter()
        .find_map(|c| {
            if let Command::Enqueue(bid) = c {
                Some(bid)
            } else {
                None
            }
        })
        .unwrap();
    assert_eq!((bid.positions, bid.max_positions, bid.arrived), (104, 108, ms(0)));
    assert!(bid.avoid.contains(&DECODE));

    advance(&mut room, PhaseKind::Prefilling, MIXED, ms(3));
    let said = commands(&mut room);
    let sizes = said.iter().filter_map(|c| match c {
        Command::Send {
            order: Order::Prefill { work, .. } | Order::Reserve(work),
            ..
        } => Some((work.positions, work.delivered, work.max_positions)),
        _ => None,
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [(104, 4, 108), (104, 4, 108)]);
    assert_eq!(room.delivered(), 4);
}

#[test]
fn repeated_tokens_are_cut_off_and_missing_ones_fail_the_attempt() {
    let check = |from, count, expected: &[Command], generation| {
        let mut room = room_in(PhaseKind::Decoding, PAIR);
        tell(&mut room, ms(1), DECODE, Report::Tokens { from: 1, count: 2 });
        commands(&mut room);
        tell(&mut room, ms(2), DECODE, Report::Tokens { from, count });
        let said = commands(&mut room);
        let delivered: Vec<_> = said
            .into_iter()
            .filter(|c| matches!(c, Command::Deliver { .. }))
            .collect();
        assert_eq!(delivered, expected, "from {from}, {count}");
        assert_eq!(room.generation(), Generation(generation), "from {from}, {count}");
    };
    check(3, 1, &[Command::Deliver { skip: 0, take: 1 }], 1);
    check(1, 3, &[Command::Deliver { skip: 2, take: 1 }], 1);
    check(0, 2, &[], 1);
    check(3, 40, &[Command::Deliver { skip: 0, take: 5 }], 1);
    check(u32::MAX, u32::MAX, &[], 2);
    check(4, 1, &[], 2);
}

#[test]
fn never_success_over_a_gap() {
    let mut room = room_in(PhaseKind::Decoding, PAIR);
    tell(
        &mut room,
        ms(1),
        DECODE,
        Report::Finished {
            finish: Finish::Stop,
            total: 3,
        },
    );
    assert_eq!((room.outcome(), room.generation()), (None, Generation(2)));
}

#[test]
fn what_was_cut_off_ended_by_its_length() {
    let mut room = room_in(PhaseKind::Decoding, PAIR);
    tell(&mut room, ms(1), DECODE, Report::Tokens { from: 1, count: 9 });
    let finish = Finish::Stop;
    tell(&mut room, ms(1), DECODE, Report::Finished { finish, total: 10 });
    assert_eq!(room.outcome(), Some(Outcome::Completed(Finish::Length)));
}

#[test]
fn whole_but_for_the_word_that_it_is() {
    let mut room = room_in(PhaseKind::Decoding, PAIR);
    tell(&mut room, ms(1), DECODE, Report::Tokens { from: 1, count: 7 });
    room.handle_input(ms(2), Input::WorkerLost { worker: DECODE });
    assert_eq!(room.outcome(), Some(Outcome::Completed(Finish::Length)));
}

#[test]
fn an_answer_of_nothing_is_not_whole() {
    let spec = RoomSpec { max_new: 0, ..SPEC };
    let mut room = Room::new(ROOM, spec, &Limits::default(), ms(0));
    room.handle_timeout(SPEC.deadline);
    assert_eq!(room.outcome(), Some(Outcome::Expired(PhaseKind::Queued)));
}

#[test]
fn what_fails_after_the_deadline_has_expired() {
    let mut room = room_in(PhaseKind::Decoding, PAIR);
    let failed = Report::Failed(AttemptError::EngineFailed);
    tell(&mut room, SPEC.deadline, DECODE, failed);
    assert_eq!(room.outcome(), Some(Outcome::Expired(PhaseKind::Decoding)));
}

#[test]
fn a_draining_worker_is_avoided_and_no_fault() {
    let mut room = room_in(PhaseKind::Reserving, PAIR);
    tell(&mut room, ms(1), DECODE, Report::Refused(Refusal::Draining));
    let said = idle(&mut room, ms(1_000));
    let asks = |c: &Command| matches!(c, Command::Enqueue(bid) if bid.avoid.contains(&DECODE));
    assert!(said.iter().any(|(_, c)| asks(c)), "{said:?}");
}

#[test]
fn faults_are_bounded() {
    let mut room = new_room();
    let max = Limits::default().max_faults;
    for fault in 1..=max {
        advance(&mut room, PhaseKind::Reserving, PAIR, ms(0));
        tell(
            &mut room,
            ms(0),
            DECODE,
            Report::Failed(AttemptError::EngineFailed),
        );
        assert_eq!(room.outcome().is_some(), fault == max, "fault {fault}");
    }
    let failure = Failure::Attempts(AttemptError::EngineFailed);
    assert_eq!(answers(&commands(&mut room)), [Outcome::Failed(failure)]);
}

#[test]
fn a_grant_that_is_refused_does_not_stop_the_clock_of_the_queue() {
    let mut room = new_room();
    let mut now = ms(0);
    let mut pauses = Vec::new();
    let answered = loop {
        advance(&mut room, PhaseKind::Reserving, PAIR, now);
        tell(&mut room, now, DECODE, Report::Refused(Refusal::NoBlocks));
        let WaitsFor::Pause { until } = room.waits_for() else {
            panic!("no pause")
        };
        pauses.push((until - now).as_millis());
        assert!(
            !commands(&mut room)
                .iter()
                .any(|c| matches!(c, Command::Enqueue(bid)
            if bid.attempt.generation == room.generation()))
        );
        now = until;
        let said = idle(&mut room, now);
        if let Some((at, _)) = said.iter().find(|(_, c)| matches!(c, Command::Answer(_))) {
            break *at;
        }
    };
    assert_eq!(pauses[..8], [25, 50, 100, 200, 400, 800, 1_000, 1_000]);
    assert_eq!(room.outcome(), Some(Outcome::Failed(Failure::NoCredit)));
    assert_eq!(answered, ms(10_000), "the queue's deadline");
}

/// A grant that came to nothing by a fault was one: the clock starts anew.
#[test]
fn a_wait_for_credit_after_a_fault_is_its_own_and_names_the_fault() {
    for (phase, worker) in [(PhaseKind::Reserving, DECODE), (PhaseKind::Prefilling, PREFILL)] {
        let mut room = room_in(phase, PAIR);
        let failed = Report::Failed(AttemptError::EngineFailed);
        tell(&mut room, ms(5_000), worker, failed);
        let said = idle(&mut room, ms(15_000));
        let failure = Failure::Attempts(AttemptError::EngineFailed);
        let answer = Command::Answer(Outcome::Failed(failure));
        assert!(said.contains(&(ms(15_000), answer)), "{phase}: {said:?}");
    }
}

#[test]
fn the_desk_is_told_whether_the_answer_has_begun() {
    let begun = |room: &mut Room| {
        commands(room).into_iter().find_map(|command| match command {
            Command::Enqueue(bid) => Some(bid.begun),
            _ => None,
        })
    };
    let mut room = new_room();
    assert_eq!(begun(&mut room), Some(false));
    for (phase, worker, has_begun) in [
        (PhaseKind::Prefilling, PREFILL, false),
        (PhaseKind::Decoding, DECODE, true),
    ] {
        advance(&mut room, phase, PAIR, ms(1));
        tell(
            &mut room,
            ms(1),
            worker,
            Report::Failed(AttemptError::EngineFailed),
        );
        assert_eq!(begun(&mut room), Some(has_begun), "{phase}");
    }
}

#[test]
fn an_answer_that_has_begun_waits_for_credit_as_long_as_the_request_may_take() {
    let mut room = room_in(PhaseKind::Decoding, PAIR);
    tell(&mut room, ms(1), DECODE, Report::Tokens { from: 1, count: 2 });
    tell(&mut room, ms(2), DECODE, Report::Failed(AttemptError::Evicted));
    let first = Limits::default().requeue_first;
    let until = ms(2) + first;
    assert_eq!(room.waits_for(), WaitsFor::Pause { until });

    // Whoever computes a prompt anew for one token each time pauses for longer and longer; whoever got on does not.
    let (mut at, mut pauses) = (until, Vec::new());
    for gets_on in [false, false, true] {
        idle(&mut room, at);
        advance(&mut room, PhaseKind::Decoding, PAIR, at);
        if gets_on {
            let next = token(room.delivered());
            tell(&mut room, at, DECODE, next);
        }
        tell(&mut room, at, DECODE, Report::Failed(AttemptError::Evicted));
        let WaitsFor::Pause { until } = room.waits_for() else {
            panic!("no pause")
        };
        pauses.push(until - at);
        at = until;
    }
    assert_eq!(pauses, [first.doubled(), first.doubled().doubled(), first]);

    let said = idle(&mut room, SPEC.deadline);
    let answer = said.iter().find(|(_, c)| matches!(c, Command::Answer(_)));
    let expired = Command::Answer(Outcome::Expired(PhaseKind::Queued));
    assert_eq!(answer, Some(&(SPEC.deadline, expired)));
}

#[test]
fn a_stop_string_completes_what_was_delivered() {
    let mut room = room_in(PhaseKind::Prefilling, PAIR);
    room.handle_input(ms(1), Input::StopStringFound);
    assert_eq!(room.outcome(), None, "nothing was delivered");
    tell(&mut room, ms(1), PREFILL, token(0));
    room.handle_input(ms(1), Input::StopStringFound);
    let late = from(
        &room,
        DECODE,
        Report::Finished {
            finish: Finish::Length,
            total: 8,
        },
    );
    room.handle_input(ms(2), late);
    assert_eq!(answers(&commands(&mut room)), [Outcome::Completed(Finish::Stop)]);
}

/// The same numbers come of the same tokens everywhere: what has no next token at two workers is not tried at all of them.
#[test]
fn a_room_without_a_next_token_is_tried_once_elsewhere() {
    for route in [PAIR, MIXED] {
        let mut room = room_in(PhaseKind::Decoding, route);
        let failed = Report::Failed(AttemptError::NoToken);
        tell(&mut room, ms(1), DECODE, failed);
        let avoids = commands(&mut room).into_iter().find_map(|command| match command {
            Command::Enqueue(bid) => Some(bid.avoid.contains(&DECODE)),
            _ => None,
        });
        assert_eq!((room.generation(), avoids), (Generation(2), Some(true)));
        advance(&mut room, PhaseKind::Decoding, route, ms(2));
        tell(&mut room, ms(3), DECODE, failed);
        let failure = Failure::Attempts(AttemptError::NoToken);
        assert_eq!(room.outcome(), Some(Outcome::Failed(failure)));
    }
}
