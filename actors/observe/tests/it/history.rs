//! What a history keeps, and what it adds up to.

use observe::{Kept, RoomEvent, RoomHistory, RoomWhat, StayEvent, StayWhat, Stream};
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
    }
    let bound = Kept::<RoomEvent>::MILESTONES;
    assert_eq!(history.events().iter().count(), bound);
    assert_eq!(history.events().left_out() as usize, 10_001 - bound);
    // The ten kilobytes that a board speaks of.
    let most = Kept::<RoomEvent>::MILESTONES + Kept::<RoomEvent>::CHUNKS;
    assert!(size_of::<(u32, RoomEvent)>() * most <= 12 << 10);
    assert!(size_of::<(u32, StayEvent)>() * most <= 12 << 10);
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
