//! What a history keeps, and what it adds up to.

use observe::{
    Gone, Kept, LinkEnd, NodeEvent, NodeWhat, Recorder, RoomEvent, RoomHistory, RoomWhat, StayEvent,
    StayWhat, Stream,
};
use room::{Finish, Happening, Holds, Outcome, PhaseKind, Span, StayCause, StayPhase, StayTransition, Why};

use crate::kit::{self, PREFILL, at, at_worker, delivered, event, facts, step};

#[test]
fn a_room_adds_up_to_what_happened_to_it() {
    let outcome = Outcome::Completed(Finish::Stop);
    let history = kit::ended(0, Some(1_400), outcome, 2_000);
    let state = history.state();
    assert_eq!(
        (state.phase, state.ended_in),
        (PhaseKind::Ended, Some(PhaseKind::Reserving))
    );
    assert_eq!(state.outcome, Some((outcome, at(2_000))));
    assert_eq!(state.ended, Some(at(2_005)));
    assert_eq!(state.queued, Span::from_millis(10));
    // Counted from when the door took the request in.
    assert_eq!(
        state.to_first_token(history.facts()),
        Some(Span::from_millis(500))
    );
    assert_eq!(state.to_outcome(history.facts()), Some(Span::from_millis(1_100)));
    let events: Vec<_> = history.events().iter().collect();
    assert!(matches!(events[0].what, RoomWhat::Opened(_)), "{events:?}");
    assert!(
        matches!(events[events.len() - 1].what, RoomWhat::Ended { .. }),
        "{events:?}"
    );
    assert_eq!(events.len(), 7);
}

#[test]
fn another_attempt_is_counted_and_the_first_outcome_stands() {
    let mut history = RoomHistory::new(facts(0));
    let retry = Why::Retry(room::AttemptError::WorkerLost);
    for what in [
        step(PhaseKind::Queued, PhaseKind::Reserving, Why::Admitted, 10),
        RoomWhat::Room(Happening::LegOpened { worker: PREFILL }),
        RoomWhat::Room(Happening::LegOpened { worker: PREFILL }),
    ] {
        history.push(&event(1_010, 1, what));
    }
    history.push(&event(
        1_100,
        2,
        step(PhaseKind::Reserving, PhaseKind::Queued, retry, 90),
    ));
    history.push(&event(
        1_130,
        2,
        step(PhaseKind::Queued, PhaseKind::Reserving, Why::Admitted, 30),
    ));
    let state = history.state();
    assert_eq!((state.attempts, state.generation.0), (2, 2));
    assert_eq!(state.queued, Span::from_millis(40));
    assert_eq!(state.workers.iter().collect::<Vec<_>>(), [PREFILL]);
    let (first, second) = (
        Outcome::Failed(room::Failure::OwnerLost),
        Outcome::Completed(Finish::Stop),
    );
    history.push(&event(
        1_200,
        2,
        RoomWhat::Answered {
            outcome: first,
            delivered: 0,
        },
    ));
    history.push(&event(1_300, 2, RoomWhat::Ended { outcome: second }));
    assert_eq!(history.state().outcome, Some((first, at(1_200))));
}

#[test]
fn tokens_are_summed_up_and_a_long_wait_for_one_is_kept() {
    let mut history = RoomHistory::new(facts(0));
    let gaps: Vec<_> = [
        (1_100, 0, 1),
        (1_120, 1, 2),
        (1_140, 3, 2),
        (3_140, 5, 1),
        (3_150, 6, 1),
    ]
    .map(|(ms, from, count)| history.push(&event(ms, 1, delivered(from, count))))
    .into();
    let ms = Span::from_millis;
    assert_eq!(
        gaps,
        [None, Some(ms(20)), Some(ms(20)), Some(ms(2_000)), Some(ms(10))]
    );
    let stream = history.state().stream;
    assert_eq!((stream.batches, stream.tokens), (5, 7));
    assert_eq!(
        (stream.longest_gap, stream.longest_until),
        (ms(2_000), Some(at(3_140)))
    );
    assert!(stream.longest_gap >= Stream::STALL);
    let kept: Vec<_> = history.events().iter().map(|event| event.at).collect();
    // Its opening, its first token, and the one that was waited for.
    assert_eq!(kept, [at(1_000), at(1_100), at(3_140)]);
}

#[test]
fn a_long_prompt_pushes_out_no_phase() {
    let mut history = RoomHistory::new(facts(0));
    for chunk in 1..=1_000 {
        let computed = Happening::Computed {
            worker: PREFILL,
            positions: chunk,
            of: 1_000,
        };
        history.push(&event(1_000 + u64::from(chunk), 1, RoomWhat::Room(computed)));
    }
    history.push(&event(
        3_000,
        1,
        step(PhaseKind::Prefilling, PhaseKind::Pulling, Why::Published, 1),
    ));
    let events: Vec<_> = history.events().iter().collect();
    assert_eq!(events.len(), 2 + Kept::<RoomEvent>::CHUNKS);
    assert_eq!(
        history.events().left_out() as usize,
        1_000 - Kept::<RoomEvent>::CHUNKS
    );
    // In order, the first and the last of them.
    assert!(events.is_sorted_by_key(|event| event.at));
    assert_eq!(
        (events[1].at, events[events.len() - 2].at),
        (at(1_001), at(2_000))
    );
    assert_eq!(events[events.len() - 1].at, at(3_000));
}

#[test]
fn a_history_is_bounded_whatever_happens() {
    let mut history = RoomHistory::new(facts(0));
    for n in 0..10_000 {
        let phase = PhaseKind::Decoding;
        history.push(&event(2_000 + n, 1, RoomWhat::TimerFired { phase }));
        history.push(&event(2_000 + n, 1, RoomWhat::Buried { workers: 1 }));
    }
    let (milestones, repeats) = (Kept::<RoomEvent>::MILESTONES, Kept::<RoomEvent>::REPEATS);
    assert_eq!(history.events().iter().count(), milestones + repeats);
    assert_eq!(
        history.events().left_out() as usize,
        20_001 - milestones - repeats
    );
    // The ten kilobytes that a board speaks of.
    let most = milestones + repeats + Kept::<RoomEvent>::CHUNKS;
    assert!(size_of::<(u32, RoomEvent)>() * most <= 12 << 10);
    assert!(size_of::<(u32, StayEvent)>() * most <= 12 << 10);
}

/// A worker hangs and is told again and again to return what it has of one attempt after the other.
fn told_again_and_again() -> RoomHistory {
    let mut history = RoomHistory::new(facts(0));
    let stuck = room::AttemptError::NoProgress(PhaseKind::Prefilling);
    for attempt in 1..=3_u32 {
        let ms = 10_000 * u64::from(attempt);
        let failed = Happening::AttemptFailed {
            worker: PREFILL,
            error: stuck,
            retried: attempt < 3,
        };
        history.push(&event(ms, attempt, RoomWhat::Room(failed)));
        let retry = Why::Retry(stuck);
        let next = step(PhaseKind::Prefilling, PhaseKind::Queued, retry, 10_000);
        history.push(&event(ms, attempt + 1, next));
        for told in 2..=100 {
            let phase = PhaseKind::Prefilling;
            history.push(&event(
                ms + u64::from(told),
                attempt + 1,
                RoomWhat::TimerFired { phase },
            ));
            let again = Happening::ToldAgain {
                worker: PREFILL,
                of: room::Generation(attempt),
                told,
            };
            history.push(&event(ms + u64::from(told), attempt + 1, RoomWhat::Room(again)));
        }
    }
    history
}

#[test]
fn what_is_said_again_and_again_pushes_out_nothing_that_decides() {
    let history = told_again_and_again();
    let events = history.events();
    let count = |is: fn(&Happening) -> bool| {
        let of = |event: &&RoomEvent| matches!(&event.what, RoomWhat::Room(happening) if is(happening));
        events.iter().filter(of).count()
    };
    assert_eq!(count(|what| matches!(what, Happening::AttemptFailed { .. })), 3);
    assert_eq!(count(|what| matches!(what, Happening::Transition(_))), 3);
    let repeats = Kept::<RoomEvent>::REPEATS;
    assert_eq!(events.left_out() as usize, 3 * 2 * 99 - repeats);
    assert_eq!(events.iter().count(), 1 + 6 + repeats);
}

#[test]
fn where_something_is_left_out_is_known() {
    let history = told_again_and_again();
    let events = history.events().with_gaps();
    let gaps: Vec<(u32, u64)> = events
        .iter()
        .filter(|(gap, _)| *gap > 0)
        .map(|(gap, event)| (*gap, event.at.micros / 1_000))
        .collect();
    // Each attempt has 198 repetitions: of the first eight are kept, of the second none, and of the third the last eight.
    assert_eq!(gaps, [(190, 20_000), (198, 30_000), (190, 30_097)]);
    assert_eq!(
        gaps.iter().map(|(gap, _)| gap).sum::<u32>(),
        history.events().left_out()
    );
}

fn linked(recorder: &Recorder, worker: room::NodeId, name: &str) {
    let what = NodeWhat::WorkerLinked {
        worker,
        name: name.into(),
        role: room::Role::Prefill,
        blocks: 1,
        block_tokens: 1,
        slots: 1,
    };
    recorder.node(&NodeEvent { at: at(900), what });
}

#[test]
fn a_history_keeps_the_names_of_its_workers_when_nobody_else_does() {
    let recorder = Recorder::default();
    let mut history = RoomHistory::new(facts(0)).with_roster(recorder.roster().clone());
    linked(&recorder, PREFILL, "prefill-0");
    let opened = |worker| RoomWhat::Room(Happening::LegOpened { worker });
    history.push(&event(1_010, 1, opened(PREFILL)));
    // So many others come that it is forgotten.
    for n in 0..2_000 {
        linked(&recorder, room::NodeId(100 + n), &format!("w{n}"));
    }
    assert_eq!(recorder.roster().name(PREFILL), None);
    assert_eq!(history.name(PREFILL).map(|name| &**name), Some("prefill-0"));
    assert_eq!(history.name(room::NodeId(2)), None);
    // And it is bounded itself.
    for n in 0..2_000 {
        history.push(&event(1_020, 1, opened(room::NodeId(100 + n))));
    }
    assert_eq!(history.names().len(), 64);
}

#[test]
fn an_attempt_that_failed_is_remembered_as_it_was_then() {
    let recorder = Recorder::default();
    linked(&recorder, PREFILL, "prefill-0");
    let mut history = RoomHistory::new(facts(0)).with_roster(recorder.roster().clone());
    let error = room::AttemptError::NoProgress(PhaseKind::Prefilling);
    let failed = |retried| {
        RoomWhat::Room(Happening::AttemptFailed {
            worker: PREFILL,
            error,
            retried,
        })
    };
    let computed = Happening::Computed {
        worker: PREFILL,
        positions: 4,
        of: 10,
    };
    for (ms, what) in [
        (
            1_010,
            step(PhaseKind::Queued, PhaseKind::Reserving, Why::Admitted, 10),
        ),
        (
            1_020,
            step(PhaseKind::Reserving, PhaseKind::Prefilling, Why::Reserved, 10),
        ),
        (1_100, RoomWhat::Room(computed)),
    ] {
        history.push(&event(ms, 1, what));
    }
    recorder.roster().heard(PREFILL, at(10_900));
    history.push(&event(11_020, 1, failed(true)));
    let was = history.state().failed.expect("it failed");
    assert_eq!((was.attempt.0, was.worker, was.error), (1, PREFILL, error));
    assert_eq!(
        (was.phase, was.in_phase),
        (PhaseKind::Prefilling, Span::from_millis(10_000))
    );
    assert_eq!((was.computed, was.positions, was.delivered), (4, 10, 0));
    assert_eq!(was.silent, Some(Span::from_millis(120)));
    // The next one begins with nothing.
    let next = step(
        PhaseKind::Prefilling,
        PhaseKind::Queued,
        Why::Retry(error),
        10_000,
    );
    history.push(&event(11_020, 2, next));
    history.push(&event(12_000, 2, failed(false)));
    let was = history.state().failed.expect("it failed again");
    assert_eq!((was.attempt.0, was.computed, was.positions), (2, 0, 10));
    assert_eq!((history.state().faults, history.failed().count()), (2, 2));
}

#[test]
fn a_stay_ends_with_its_last_step_and_a_repeated_stop_is_no_new_phase() {
    let mut history = kit::stay();
    let step = |ms, from, to, why| {
        let (attempt, holds) = (kit::ATTEMPT, Holds::NONE);
        let (at, what) = (
            at(ms),
            StayTransition {
                at: at(ms),
                attempt,
                from,
                to,
                why,
                holds,
            },
        );
        assert_eq!(at, what.at);
        at_worker(ms, StayWhat::Step(what))
    };
    let closing = Some(StayPhase::Closing);
    history.push(&step(0, None, Some(StayPhase::Reserved), StayCause::Owner));
    history.push(&step(
        10,
        Some(StayPhase::Reserved),
        closing,
        StayCause::ClosedByOwner,
    ));
    history.push(&step(900, closing, closing, StayCause::ProofOverdue));
    assert_eq!(history.phase(), Some((StayPhase::Closing, at(10))));
    assert_eq!(history.ended(), None);
    history.push(&step(950, closing, None, StayCause::Proven));
    assert_eq!((history.phase(), history.ended()), (None, Some(at(950))));
    assert_eq!(history.events().iter().count(), 5);
}

#[test]
fn a_worker_that_is_gone_has_when_and_how_until_one_of_its_name_is_back() {
    let recorder = Recorder::default();
    let gone = || recorder.roster().gone();
    linked(&recorder, PREFILL, "prefill-0");
    assert_eq!(gone(), []);
    let what = NodeWhat::WorkerUnlinked {
        worker: PREFILL,
        name: "prefill-0".into(),
        end: LinkEnd::Loss,
        why: "silent for 3001 ms".into(),
    };
    recorder.node(&NodeEvent { at: at(5_000), what });
    let lost = Gone {
        name: "prefill-0".into(),
        at: at(5_000),
        why: "silent for 3001 ms".into(),
    };
    assert_eq!(gone(), [lost]);
    linked(&recorder, room::NodeId(PREFILL.0 + 1), "prefill-0");
    assert_eq!(gone(), []);
}
