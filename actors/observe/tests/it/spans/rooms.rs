//! Rooms and stays that went some way, and what holds of the spans of all.

use std::collections::BTreeMap;
use std::sync::Arc;

use observe::span::{TraceSpan, of_request};
use observe::{
    Facts, Keep, Moved, RoomHistory, RoomWhat, SpanId, SpanKind, StayFacts, StayHistory, StayWhat, Trace,
};
use room::{
    Finish, Generation, Happening, Holds, NodeId, Outcome, PhaseKind, Proof, Route, Span, StayCause,
    StayPhase, StayTransition, Time, Why,
};

use crate::kit::{self, ROOM, at, delivered, event, facts, step};

pub(super) const DECODE: NodeId = NodeId(2);
pub(super) const OTHER: NodeId = NodeId(3);
pub(super) const DONE: Outcome = Outcome::Completed(Finish::Stop);

/// Pushes events of one attempt: what happened, when in milliseconds.
pub(super) fn push(history: &mut RoomHistory, generation: u32, events: Vec<(u64, RoomWhat)>) {
    for (ms, what) in events {
        history.push(&event(ms, generation, what));
    }
}

pub(super) fn says(happening: Happening) -> RoomWhat {
    RoomWhat::Room(happening)
}

pub(super) fn leg(worker: NodeId) -> RoomWhat {
    says(Happening::LegOpened { worker })
}

pub(super) fn returned(worker: NodeId, of: u32, by: Proof) -> RoomWhat {
    let of = Generation(of);
    says(Happening::LegReturned { worker, of, by })
}

/// From the queue to the first token at a pair, 400 ms from `ms`.
pub(super) fn prefilled(ms: u64, source: NodeId) -> Vec<(u64, RoomWhat)> {
    use PhaseKind::{Prefilling, Pulling, Queued, Reserving};
    let (worker, decode) = (source, DECODE);
    let computed = |positions| {
        says(Happening::Computed {
            worker,
            positions,
            of: 10,
        })
    };
    let route = Route {
        prefill: source,
        decode,
    };
    vec![
        (ms + 10, step(Queued, Reserving, Why::Admitted, 10)),
        (ms + 10, says(Happening::Routed(route))),
        (ms + 10, leg(decode)),
        (
            ms + 20,
            says(Happening::Granted {
                worker: decode,
                cached_blocks: 0,
            }),
        ),
        (ms + 20, step(Reserving, Prefilling, Why::Reserved, 10)),
        (ms + 20, leg(source)),
        (ms + 100, computed(5)),
        (ms + 380, computed(10)),
        (ms + 390, delivered(0, 1)),
        (ms + 400, says(Happening::Published { worker })),
        (ms + 400, step(Prefilling, Pulling, Why::Published, 380)),
    ]
}

/// From the pull to the end of everything, from `ms` on.
pub(super) fn decoded(ms: u64, source: NodeId, generation: u32) -> Vec<(u64, RoomWhat)> {
    use PhaseKind::{Decoding, Draining, Ended, Pulling};
    let moved = Moved {
        from: source,
        to: DECODE,
        bytes: 4_096,
        descriptors: 2,
        lasted: Span::from_millis(8),
        transport: "tcp".into(),
    };
    vec![
        (ms + 10, RoomWhat::Moved(moved)),
        (ms + 10, step(Pulling, Decoding, Why::Pulled, 10)),
        (ms + 15, returned(source, generation, Proof::Closed)),
        (ms + 20, delivered(1, 1)),
        (ms + 2_020, delivered(2, 1)),
        (ms + 2_030, step(Decoding, Draining, Why::Outcome(DONE), 2_020)),
        (
            ms + 2_030,
            RoomWhat::Answered {
                outcome: DONE,
                delivered: 3,
            },
        ),
        (ms + 2_040, returned(DECODE, generation, Proof::Closed)),
        (ms + 2_040, step(Draining, Ended, Why::Returned, 10)),
        // Its owner says so a moment later.
        (ms + 2_042, RoomWhat::Ended { outcome: DONE }),
    ]
}

pub(super) fn alone(history: RoomHistory) -> Vec<TraceSpan> {
    of_request(&[Arc::new(history)], Keep::Head)
}

pub(super) fn one(spans: &[TraceSpan], kind: SpanKind) -> &TraceSpan {
    let mut all = spans.iter().filter(|span| span.kind == kind);
    let found = all.next().unwrap_or_else(|| panic!("no {kind:?}"));
    assert!(all.next().is_none(), "two of {kind:?}");
    found
}

/// What holds for the spans of every request: one name each, every parent there, children begin within their parents (and the owner's end
/// there), links lead somewhere, and nothing but containers is without a name between arrival and end.
pub(super) fn check(owner: &[TraceSpan], workers: &[TraceSpan]) {
    let all: Vec<&TraceSpan> = owner.iter().chain(workers).collect();
    let by_id: BTreeMap<SpanId, &TraceSpan> = all.iter().map(|span| (span.id, *span)).collect();
    assert_eq!(by_id.len(), all.len(), "two spans of one name");
    for span in &all {
        assert!(span.start <= span.end, "{span:?}");
        assert!(span.events.is_sorted_by_key(|event| event.at), "{span:?}");
        assert!(
            span.events.iter().all(|e| span.start <= e.at && e.at <= span.end),
            "{span:?}"
        );
        for link in &span.links {
            assert!(by_id.contains_key(&link.to), "a link to nowhere: {span:?}");
        }
        if span.kind == SpanKind::Request {
            continue;
        }
        let parent = span.parent.and_then(|parent| by_id.get(&parent));
        let parent = parent.unwrap_or_else(|| panic!("no parent: {span:?}"));
        assert!(parent.start <= span.start, "{span:#?} begins before {parent:#?}");
        assert!(span.start <= parent.end, "{span:#?} begins after {parent:#?}");
        let is_workers = workers.iter().any(|own| own.id == span.id);
        assert!(
            is_workers || span.end <= parent.end,
            "{span:#?} ends after {parent:#?}"
        );
        let allowed: &[SpanKind] = match span.kind {
            SpanKind::Render | SpanKind::Tokenise => &[SpanKind::Prepare],
            SpanKind::Prepare | SpanKind::Room => &[SpanKind::Request],
            SpanKind::Attempt | SpanKind::Drain => &[SpanKind::Request, SpanKind::Room],
            SpanKind::ComputePrompt => &[SpanKind::Prefill],
            SpanKind::Read => &[SpanKind::Pull],
            _ => &[SpanKind::Attempt],
        };
        assert!(
            allowed.contains(&parent.kind),
            "{:?} below {:?}",
            span.kind,
            parent.kind
        );
    }
}

/// How much of this time is in a span that says what was done, in microseconds.
pub(super) fn covered(spans: &[TraceSpan], from: Time, to: Time) -> u64 {
    let holds =
        |span: &&TraceSpan| !matches!(span.kind, SpanKind::Request | SpanKind::Room | SpanKind::Attempt);
    let mut parts: Vec<(Time, Time)> = spans
        .iter()
        .filter(holds)
        .map(|span| (span.start.max(from), span.end.min(to)))
        .collect();
    parts.sort();
    let (mut sum, mut reached) = (0, from);
    for (start, end) in parts {
        sum += (end - start.max(reached)).micros;
        reached = reached.max(end);
    }
    sum
}

/// At least 98 % of the time from arrival to the first token, and of all its time, lies in a named span.
pub(super) fn check_coverage(spans: &[TraceSpan], facts: &Facts, first: Time, ended: Time) {
    for to in [first, ended] {
        let whole = (to - facts.arrived()).micros;
        let covered = covered(spans, facts.arrived(), to);
        assert!(covered * 100 >= whole * 98, "{covered} of {whole} us");
    }
}

pub(super) fn names(span: &TraceSpan) -> Vec<&str> {
    span.events.iter().map(|event| event.name).collect()
}

/// A stay with the trace of [`facts`], that went through these steps.
pub(super) fn stay(
    worker: NodeId,
    generation: u32,
    steps: &[(u64, Option<StayPhase>, Option<StayPhase>)],
) -> StayHistory {
    let trace = facts(1).trace;
    let request = SpanId::of_room(trace.id, ROOM, SpanKind::Request);
    let attempt = room::Attempt {
        room: ROOM,
        generation: Generation(generation),
    };
    let facts = Arc::new(StayFacts {
        attempt,
        worker,
        trace: Some(Trace {
            parent: Some(request),
            ..trace
        }),
        opened: at(steps[0].0),
        ..StayFacts::clone(kit::stay().facts())
    });
    let mut history = StayHistory::new(facts);
    for (ms, from, to) in steps {
        let (at, from, to) = (at(*ms), *from, *to);
        let step = StayTransition {
            at,
            attempt,
            from,
            to,
            why: StayCause::Owner,
            holds: Holds::NONE,
        };
        history.push(&observe::StayEvent {
            at,
            worker,
            attempt,
            what: StayWhat::Step(step),
        });
    }
    history
}
