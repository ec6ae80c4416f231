//! Rooms whose owners died, whose events were left out, and whose clients have spans.

use std::sync::Arc;

use observe::span::{Status, TraceSpan, Value, of_request};
use observe::{Facts, Keep, RoomHistory, RoomWhat, SpanId, SpanKind, Trace};
use room::{AttemptError, Generation, Happening, Outcome, PhaseKind, Proof, Route, Why};

use super::rooms::{
    DECODE, DONE, alone, check, check_coverage, decoded, leg, names, one, prefilled, push, returned, says,
};
use crate::kit::{self, PREFILL, ROOM, at, facts, step};

#[test]
fn an_owner_that_dies_leaves_a_drain() {
    let lost = Outcome::Failed(room::Failure::OwnerLost);
    let mut history = RoomHistory::new(facts(0));
    push(&mut history, 1, prefilled(1_000, PREFILL));
    push(
        &mut history,
        1,
        vec![
            (
                1_500,
                RoomWhat::OwnerDied {
                    phase: PhaseKind::Pulling,
                    why: "a panic".into(),
                    deaths: 1,
                },
            ),
            (
                1_500,
                RoomWhat::Answered {
                    outcome: lost,
                    delivered: 1,
                },
            ),
            (1_520, returned(PREFILL, 1, Proof::Closed)),
            (1_530, returned(DECODE, 1, Proof::Closed)),
            (
                1_530,
                step(PhaseKind::Draining, PhaseKind::Ended, Why::Returned, 30),
            ),
            (1_530, RoomWhat::Ended { outcome: lost }),
        ],
    );
    let facts = Arc::clone(history.facts());
    let spans = of_request(&[Arc::new(history)], Keep::Failed);
    check(&spans, &[]);
    check_coverage(&spans, &facts, at(1_390), at(1_530));
    assert_eq!(one(&spans, SpanKind::Pull).end, at(1_500));
    assert_eq!(
        names(one(&spans, SpanKind::Drain)),
        ["owner_died", "returned", "returned"]
    );
    assert_eq!(one(&spans, SpanKind::Request).status, Status::Error("owner_lost"));
}

/// A room that was refused two hundred times before it was served.
fn refused_often() -> RoomHistory {
    let mut history = RoomHistory::new(facts(0));
    let error = AttemptError::Refused(room::Refusal::NoBlocks);
    let mut ms = 1_000;
    for generation in 1..=200 {
        let route = Route {
            prefill: PREFILL,
            decode: DECODE,
        };
        push(
            &mut history,
            generation,
            vec![
                (
                    ms + 1,
                    step(PhaseKind::Queued, PhaseKind::Reserving, Why::Admitted, 1),
                ),
                (ms + 1, says(Happening::Routed(route))),
                (ms + 1, leg(DECODE)),
                (
                    ms + 5,
                    says(Happening::AttemptFailed {
                        worker: DECODE,
                        error,
                        retried: true,
                    }),
                ),
                (ms + 5, returned(DECODE, generation, Proof::Refused)),
            ],
        );
        push(
            &mut history,
            generation + 1,
            vec![(
                ms + 5,
                step(PhaseKind::Reserving, PhaseKind::Queued, Why::Retry(error), 4),
            )],
        );
        ms += 5;
    }
    push(&mut history, 201, prefilled(ms, PREFILL));
    // So many that the first which is known after the gap is the last of its attempt.
    let not_sent = RoomWhat::NotSent {
        worker: DECODE,
        why: "its queue is full".into(),
    };
    push(&mut history, 201, vec![(ms + 400, not_sent)]);
    push(&mut history, 201, decoded(ms + 400, PREFILL, 201));
    history
}

/// Of a room that was refused very often, the attempts in the middle are left out; the rest still fits together.
#[test]
fn what_is_left_out_breaks_nothing() {
    let history = refused_often();
    assert!(history.events().left_out() > 0);
    let spans = of_request(&[Arc::new(history)], Keep::Migrated);
    let request = one(&spans, SpanKind::Request);
    assert!(matches!(request.attribute("innkeeper.events_left_out"), Some(Value::Int(n)) if *n > 0));
    assert_eq!(request.attribute("innkeeper.attempts"), Some(&Value::Int(201)));
    // Links may lead to what was left out; all else is as always.
    let whole: Vec<TraceSpan> = spans
        .iter()
        .cloned()
        .map(|mut span| {
            span.links.clear();
            span
        })
        .collect();
    check(&whole, &[]);
    // Nothing is said to have lasted through what is not known.
    for span in spans.iter().filter(|span| span.start < at(2_000)) {
        let is_short = (span.end - span.start).micros <= 5_000;
        assert!(
            is_short
                || matches!(
                    span.kind,
                    SpanKind::Request | SpanKind::Prepare | SpanKind::Render | SpanKind::Tokenise
                ),
            "{span:#?}"
        );
    }
    // Of each attempt that is known something is.
    for attempt in spans.iter().filter(|span| span.kind == SpanKind::Attempt) {
        let is_phase = |span: &&TraceSpan| span.parent == Some(attempt.id) && span.kind != SpanKind::Release;
        assert!(spans.iter().any(|span| is_phase(&span)), "{attempt:#?}");
    }
    let last = SpanId::of_attempt(facts(0).trace.id, ROOM, Generation(201), SpanKind::Attempt);
    assert!(spans.iter().any(|span| span.id == last));
}

/// A worker's own reason stands where the room is when it gives it.
#[test]
fn a_reason_of_a_worker_is_told_in_the_phase_that_fails() {
    let mut history = RoomHistory::new(facts(1));
    push(&mut history, 1, prefilled(1_000, PREFILL));
    let said = RoomWhat::WorkerSaid {
        worker: DECODE,
        generation: Generation::FIRST,
        why: "no progress for 2000 ms".into(),
    };
    push(&mut history, 1, vec![(1_450, said)]);
    let spans = alone(history);
    let pull = one(&spans, SpanKind::Pull);
    assert_eq!(names(pull), ["worker_said"]);
    assert!(
        pull.events[0]
            .attributes
            .contains(&("innkeeper.why", Value::Text("no progress for 2000 ms".into())))
    );
}

/// Two heirs died, and its workers were fenced: nobody says that they let go.
#[test]
fn what_is_buried_ends_without_a_word() {
    let mut history = RoomHistory::new(facts(0));
    push(&mut history, 1, prefilled(1_000, PREFILL));
    let retry = Why::Retry(AttemptError::PullFailed);
    let lost = Outcome::Failed(room::Failure::OwnerLost);
    push(
        &mut history,
        2,
        vec![
            (1_450, step(PhaseKind::Pulling, PhaseKind::Queued, retry, 50)),
            (1_500, RoomWhat::Buried { workers: 2 }),
            (
                1_500,
                RoomWhat::Answered {
                    outcome: lost,
                    delivered: 1,
                },
            ),
            (1_600, RoomWhat::Ended { outcome: lost }),
        ],
    );
    let spans = alone(history);
    check(&spans, &[]);
    let releases: Vec<&TraceSpan> = spans
        .iter()
        .filter(|span| span.kind == SpanKind::Release)
        .collect();
    assert_eq!(releases.len(), 2);
    for release in releases {
        assert_eq!((release.start, release.end), (at(1_450), at(1_600)));
        assert_eq!(names(release), ["not_returned"]);
    }
    // The attempt that they were of goes on for as long.
    let first = SpanId::of_attempt(facts(0).trace.id, ROOM, Generation::FIRST, SpanKind::Attempt);
    let first = spans.iter().find(|span| span.id == first).unwrap();
    assert_eq!(first.end, at(1_600));
    assert_eq!(names(one(&spans, SpanKind::Drain)), ["buried"]);
}

#[test]
fn a_client_with_a_span_is_its_parent() {
    let trace = Trace {
        parent: Some(SpanId::new(0xbee)),
        ..facts(1).trace
    };
    let facts = Facts {
        trace,
        ..Facts::clone(&facts(1))
    };
    let mut history = RoomHistory::new(Arc::new(facts));
    push(&mut history, 1, prefilled(1_000, PREFILL));
    push(&mut history, 1, decoded(1_400, PREFILL, 1));
    let spans = alone(history);
    check(&spans, &[]);
    let request = one(&spans, SpanKind::Request);
    assert_eq!(
        (request.parent, request.parent_is_remote),
        (Some(SpanId::new(0xbee)), true)
    );
    assert!(spans[1..].iter().all(|span| !span.parent_is_remote));
}

#[test]
fn nothing_comes_of_nothing() {
    assert!(of_request(&[], Keep::Head).is_empty());
    assert_eq!(SpanId::of_room(facts(0).trace.id, ROOM, SpanKind::Request), {
        let history = kit::ended(1, None, DONE, 1_200);
        one(&alone(history), SpanKind::Request).id
    });
}
