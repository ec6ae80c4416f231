//! Histories as spans.

mod odd;
mod rooms;

use std::collections::BTreeSet;
use std::sync::Arc;

use observe::span::{Status, TraceSpan, Value, of_request, of_stay};
use observe::{Facts, Keep, RoomHistory, RoomWhat, SharedFacts, SpanId, SpanKind, StayHistory, StayWhat};
use room::{
    AbortBy, AttemptError, Generation, Happening, Holds, Outcome, PhaseKind, Proof, RoomId, StayCause,
    StayPhase, StayTransition, Why,
};

use crate::kit::{self, PREFILL, ROOM, at, delivered, facts, step};
use rooms::{
    DECODE, OTHER, alone, check, check_coverage, decoded, names, one, prefilled, push, returned, says, stay,
};

#[test]
fn an_undisturbed_room() {
    let mut history = RoomHistory::new(facts(1));
    push(&mut history, 1, prefilled(1_000, PREFILL));
    push(&mut history, 1, decoded(1_400, PREFILL, 1));
    let facts = Arc::clone(history.facts());
    let spans = alone(history);
    check(&spans, &[]);
    check_coverage(&spans, &facts, at(1_390), at(3_442));
    let kinds: BTreeSet<SpanKind> = spans.iter().map(|span| span.kind).collect();
    use SpanKind::{
        Attempt, Decode, Drain, Prefill, Prepare, Pull, Queue, Release, Render, Request, Reserve, Tokenise,
    };
    let all = [
        Request, Attempt, Prepare, Render, Tokenise, Queue, Reserve, Prefill, Pull, Release, Decode, Drain,
    ];
    assert_eq!(kinds, all.into());
    assert_eq!(spans.len(), all.len());
    let time = |kind| {
        let span = one(&spans, kind);
        (span.start.micros / 1_000, span.end.micros / 1_000)
    };
    let times = [
        (Request, (900, 3_442)),
        (Prepare, (900, 1_000)),
        (Render, (950, 970)),
        (Tokenise, (970, 1_000)),
        (Queue, (1_000, 1_010)),
        (Reserve, (1_010, 1_020)),
        (Prefill, (1_020, 1_400)),
        (Pull, (1_400, 1_410)),
        (Release, (1_410, 1_415)),
        (Decode, (1_410, 3_430)),
        (Drain, (3_430, 3_442)),
        (Attempt, (1_000, 3_440)),
    ];
    for (kind, expected) in times {
        assert_eq!(time(kind), expected, "{kind:?}");
    }
    assert_eq!(
        names(one(&spans, Prefill)),
        ["chunk", "chunk", "first_token", "published"]
    );
    assert_eq!(names(one(&spans, Decode)), ["stall"]);
    let stall = &one(&spans, Decode).events[0];
    assert!(
        stall
            .attributes
            .contains(&("innkeeper.stalled_ms", Value::Int(2_000)))
    );
}

#[test]
fn attributes_are_those_of_the_conventions() {
    let mut history = RoomHistory::new(facts(1));
    push(&mut history, 1, prefilled(1_000, PREFILL));
    push(&mut history, 1, decoded(1_400, PREFILL, 1));
    let spans = alone(history);
    let request = one(&spans, SpanKind::Request);
    let expected = [
        ("gen_ai.operation.name", Value::Word("chat")),
        ("gen_ai.provider.name", Value::Word("innkeeper")),
        ("gen_ai.request.model", Value::Text("m".into())),
        ("gen_ai.request.max_tokens", Value::Int(5)),
        ("gen_ai.request.seed", Value::Int(3)),
        ("gen_ai.usage.input_tokens", Value::Int(10)),
        ("gen_ai.usage.output_tokens", Value::Int(3)),
        ("gen_ai.response.finish_reasons", Value::Words(vec!["stop"])),
        ("gen_ai.response.time_to_first_chunk", Value::Float(0.49)),
        ("innkeeper.outcome", Value::Word("completed")),
        ("innkeeper.request_id", Value::Text("req-1".into())),
        ("innkeeper.room", Value::Room(ROOM)),
        ("innkeeper.attempts", Value::Int(1)),
        ("innkeeper.kept", Value::Word("head")),
    ];
    for (name, value) in expected {
        assert_eq!(request.attribute(name), Some(&value), "{name}");
    }
    assert_eq!((request.parent, &request.status), (None, &Status::Unset));
    let pull = one(&spans, SpanKind::Pull);
    let expected = [
        ("innkeeper.bytes", Value::Int(4_096)),
        ("innkeeper.descriptors", Value::Int(2)),
        ("innkeeper.transport", Value::Text("tcp".into())),
        ("innkeeper.source", Value::Node(PREFILL)),
        ("innkeeper.reader", Value::Node(DECODE)),
    ];
    for (name, value) in expected {
        assert_eq!(pull.attribute(name), Some(&value), "{name}");
    }
    // No name twice on one span.
    for span in &spans {
        let names: BTreeSet<&str> = span.attributes.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), span.attributes.len(), "{span:#?}");
    }
}

/// Its first decode dies while it streams: what was, and what replaces it.
#[test]
fn a_migrated_stream_has_both_attempts_and_the_second_links_to_the_first() {
    let mut history = RoomHistory::new(facts(0));
    push(&mut history, 1, prefilled(1_000, PREFILL));
    push(
        &mut history,
        1,
        vec![
            (
                1_410,
                step(PhaseKind::Pulling, PhaseKind::Decoding, Why::Pulled, 10),
            ),
            (1_412, returned(PREFILL, 1, Proof::Closed)),
            (1_420, delivered(1, 1)),
            (
                1_500,
                says(Happening::AttemptFailed {
                    worker: DECODE,
                    error: AttemptError::WorkerLost,
                    retried: true,
                }),
            ),
        ],
    );
    let retry = Why::Retry(AttemptError::WorkerLost);
    push(
        &mut history,
        2,
        vec![(1_500, step(PhaseKind::Decoding, PhaseKind::Queued, retry, 90))],
    );
    // It goes on while the old lease is still being proven returned.
    push(&mut history, 2, prefilled(1_500, OTHER));
    push(&mut history, 2, vec![(1_900, returned(DECODE, 1, Proof::Fenced))]);
    push(&mut history, 2, decoded(1_900, OTHER, 2));
    let facts = Arc::clone(history.facts());
    let spans = of_request(&[Arc::new(history)], Keep::Migrated);
    check(&spans, &[]);
    check_coverage(&spans, &facts, at(1_390), at(3_942));
    let id = |generation| SpanId::of_attempt(facts.trace.id, ROOM, Generation(generation), SpanKind::Attempt);
    let attempt = |generation| spans.iter().find(|span| span.id == id(generation)).unwrap();
    let (first, second) = (attempt(1), attempt(2));
    assert_eq!(first.status, Status::Error("worker_lost"));
    assert!(first.links.is_empty());
    assert_eq!(
        second.links.iter().map(|link| link.to).collect::<Vec<_>>(),
        [first.id]
    );
    // Until its lease was returned: beside the second.
    assert_eq!((first.start, first.end), (at(1_000), at(1_900)));
    assert_eq!((second.start, second.end), (at(1_500), at(3_940)));
    let children = |parent: &TraceSpan| spans.iter().filter(|span| span.parent == Some(parent.id)).count();
    // Queue, reserve, prefill, pull, decode, and two workers that let go one after the other.
    assert_eq!((children(first), children(second)), (7, 6));
    assert_eq!(
        one(&spans, SpanKind::Request).attribute("innkeeper.kept"),
        Some(&Value::Word("migrated"))
    );
}

/// Its client leaves while the KV is on its way; decode does not let go until it is fenced.
fn aborted_pull() -> RoomHistory {
    let aborted = Outcome::Aborted(AbortBy::ClientGone);
    let mut history = RoomHistory::new(facts(1));
    push(&mut history, 1, prefilled(1_000, PREFILL));
    let of = Generation(1);
    push(
        &mut history,
        1,
        vec![
            (
                1_450,
                step(PhaseKind::Pulling, PhaseKind::Draining, Why::Outcome(aborted), 50),
            ),
            (
                1_450,
                RoomWhat::Answered {
                    outcome: aborted,
                    delivered: 1,
                },
            ),
            (1_460, returned(PREFILL, 1, Proof::Closed)),
            (
                1_700,
                says(Happening::ToldAgain {
                    worker: DECODE,
                    of,
                    told: 2,
                }),
            ),
            (
                2_500,
                says(Happening::DrainOverdue {
                    worker: DECODE,
                    of,
                    told: 5,
                }),
            ),
            (2_600, says(Happening::Fenced { worker: DECODE, of })),
            (2_610, returned(DECODE, 1, Proof::Fenced)),
            (
                2_610,
                step(PhaseKind::Draining, PhaseKind::Ended, Why::Returned, 1_160),
            ),
            (2_610, RoomWhat::Ended { outcome: aborted }),
        ],
    );
    history
}

/// What its workers did.
fn stays_of_aborted_pull() -> [StayHistory; 2] {
    // The read was cancelled and its buffers are proven untouched later.
    let decode = stay(
        DECODE,
        1,
        &[
            (1_020, None, Some(StayPhase::Reserved)),
            (1_401, Some(StayPhase::Reserved), Some(StayPhase::Pulling)),
            (1_452, Some(StayPhase::Pulling), Some(StayPhase::Closing)),
            (2_550, Some(StayPhase::Closing), None),
        ],
    );
    let source = stay(
        PREFILL,
        1,
        &[
            (1_021, None, Some(StayPhase::Prefilling)),
            (1_389, Some(StayPhase::Prefilling), Some(StayPhase::Published)),
            (1_453, Some(StayPhase::Published), None),
        ],
    );
    [decode, source]
}

#[test]
fn an_aborted_pull_has_its_pull_and_its_drain() {
    let history = aborted_pull();
    let facts = Arc::clone(history.facts());
    let spans = alone(history);
    let workers: Vec<TraceSpan> = stays_of_aborted_pull().iter().flat_map(of_stay).collect();
    check(&spans, &workers);
    check_coverage(&spans, &facts, at(1_390), at(2_610));
    let kinds: Vec<SpanKind> = workers.iter().map(|span| span.kind).collect();
    assert_eq!(
        kinds,
        [
            SpanKind::Read,
            SpanKind::Closing,
            SpanKind::ComputePrompt,
            SpanKind::Publish
        ]
    );
    assert!(workers.iter().all(|span| span.parent_is_remote));
    let drain = one(&spans, SpanKind::Drain);
    assert_eq!(
        names(drain),
        ["returned", "told_again", "drain_overdue", "fenced", "returned"]
    );
    assert_eq!(drain.status, Status::Error("fenced"));
    assert!(
        spans
            .iter()
            .all(|span| span.kind != SpanKind::Decode && span.kind != SpanKind::Release)
    );
    assert_eq!(one(&spans, SpanKind::Pull).end, at(1_450));
    // Nobody's fault.
    assert_eq!(one(&spans, SpanKind::Request).status, Status::Unset);
}

#[test]
fn what_a_worker_generates_is_told_once_and_belongs_to_the_attempt() {
    let mut history = stay(
        DECODE,
        1,
        &[
            (1_000, None, Some(StayPhase::Reserved)),
            (1_010, Some(StayPhase::Reserved), Some(StayPhase::Pulling)),
            (1_020, Some(StayPhase::Pulling), Some(StayPhase::Decoding)),
        ],
    );
    let attempt = history.facts().attempt;
    for (ms, count) in [(1_030, 1), (1_040, 1), (3_040, 2)] {
        let what = StayWhat::Sampled { count };
        history.push(&observe::StayEvent {
            at: at(ms),
            worker: DECODE,
            attempt,
            what,
        });
    }
    // Told of a moment after the step that it led to was decided.
    let what = StayWhat::WantsBlocks { blocks: 1 };
    history.push(&observe::StayEvent {
        at: at(3_051),
        worker: DECODE,
        attempt,
        what,
    });
    let end = StayTransition {
        at: at(3_050),
        attempt,
        from: Some(StayPhase::Decoding),
        to: None,
        why: StayCause::Finished,
        holds: Holds::NONE,
    };
    history.push(&observe::StayEvent {
        at: at(3_050),
        worker: DECODE,
        attempt,
        what: StayWhat::Step(end),
    });
    let spans = of_stay(&history);
    let generate = one(&spans, SpanKind::Generate);
    assert_eq!((generate.start, generate.end), (at(1_020), at(3_051)));
    assert_eq!(names(generate), ["first_token", "stall", "wants_blocks"]);
    assert_eq!(generate.attribute("innkeeper.tokens"), Some(&Value::Int(4)));
    assert_eq!(
        generate.attribute("innkeeper.why"),
        Some(&Value::Word("finished"))
    );
    let trace = history.facts().trace.unwrap();
    assert_eq!(
        generate.parent,
        Some(SpanId::of_attempt(
            trace.id,
            ROOM,
            Generation(1),
            SpanKind::Attempt
        ))
    );
    // An owner that names no trace gets none.
    assert!(of_stay(&kit::stay()).is_empty());
}

/// Whoever still touches the blocks of a lease that is closed is named, and named again whenever it is told to stop.
#[test]
fn what_a_closed_lease_waits_for_is_told() {
    let closing = Some(StayPhase::Closing);
    let history = stay(
        DECODE,
        1,
        &[
            (1_000, None, Some(StayPhase::Pulling)),
            (1_010, Some(StayPhase::Pulling), closing),
            (1_900, closing, closing),
            (1_950, closing, None),
        ],
    );
    let spans = of_stay(&history);
    let closing = one(&spans, SpanKind::Closing);
    assert_eq!((closing.start, closing.end), (at(1_010), at(1_950)));
    assert_eq!(names(closing), ["not_proven"]);
    assert_eq!(closing.events[0].at, at(1_900));
    assert_eq!(closing.attribute("innkeeper.holds"), Some(&Value::Word("none")));
    assert_eq!(one(&spans, SpanKind::Read).end, at(1_010));
}

#[test]
fn several_answers_have_a_room_each_below_one_request() {
    let rooms: Vec<Arc<RoomHistory>> = (0..3)
        .map(|index| {
            let seq = ROOM.seq + u64::from(index);
            let facts: SharedFacts = Arc::new(Facts {
                room: RoomId { seq, ..ROOM },
                index,
                of: 3,
                ..Facts::clone(&facts(1))
            });
            let mut history = RoomHistory::new(facts);
            let ms = 1_000 + 100 * u64::from(index);
            push(&mut history, 1, prefilled(ms, PREFILL));
            push(&mut history, 1, decoded(ms + 400, PREFILL, 1));
            Arc::new(history)
        })
        .rev()
        .collect();
    let spans = of_request(&rooms, Keep::Head);
    check(&spans, &[]);
    let request = one(&spans, SpanKind::Request);
    assert_eq!((request.start, request.end), (at(900), at(3_642)));
    let first = request.events.iter().find(|event| event.name == "first_token");
    assert_eq!(first.map(|event| event.at), Some(at(1_390)));
    assert_eq!(
        request.attribute("gen_ai.request.choice.count"),
        Some(&Value::Int(3))
    );
    assert_eq!(
        request.attribute("gen_ai.usage.output_tokens"),
        Some(&Value::Int(9))
    );
    let children: Vec<SpanKind> = spans
        .iter()
        .filter(|span| span.parent == Some(request.id))
        .map(|span| span.kind)
        .collect();
    assert_eq!(
        children,
        [SpanKind::Prepare, SpanKind::Room, SpanKind::Room, SpanKind::Room]
    );
    assert_eq!(
        spans.iter().filter(|span| span.kind == SpanKind::Attempt).count(),
        3
    );
}
