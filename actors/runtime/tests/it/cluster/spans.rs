//! What every test's rooms and stays look like as a trace.

use std::collections::BTreeMap;
use std::sync::Arc;

use observe::span::{TraceSpan, of_request, of_stay};
use observe::{Keep, RoomHistory, SpanId, SpanKind, StayHistory};
use room::{RoomId, Time};

/// Each request's spans, of owner and workers, fit together: every parent is there, nothing begins before its parent, what the owner says ends
/// within it, and all of its time is explained.
pub(crate) fn check_spans(rooms: &[Arc<RoomHistory>], stays: &[Arc<StayHistory>]) {
    let mut requests: BTreeMap<RoomId, Vec<Arc<RoomHistory>>> = BTreeMap::new();
    for history in rooms {
        let first = history.facts().first;
        requests.entry(first).or_default().push(Arc::clone(history));
    }
    for rooms in requests.values() {
        let facts = rooms[0].facts();
        let is_whole =
            rooms.len() == facts.of as usize && rooms.iter().all(|room| room.events().left_out() == 0);
        if !is_whole {
            continue;
        }
        let of_these = |stay: &&Arc<StayHistory>| {
            let of = stay.facts().attempt.room;
            rooms.iter().any(|room| room.facts().room == of)
        };
        let owner = of_request(rooms, Keep::Head);
        let workers: Vec<TraceSpan> = stays
            .iter()
            .filter(of_these)
            .flat_map(|stay| of_stay(stay))
            .collect();
        check(&owner, &workers);
        for room in rooms {
            check_coverage(&owner, room);
        }
    }
}

fn check(owner: &[TraceSpan], workers: &[TraceSpan]) {
    let mut by_id: BTreeMap<SpanId, &TraceSpan> = BTreeMap::new();
    for span in owner.iter().chain(workers) {
        let other = by_id.insert(span.id, span);
        assert!(other.is_none(), "two spans of one name: {span:#?} {other:#?}");
    }
    for span in owner.iter().chain(workers) {
        assert!(span.start <= span.end, "{span:#?}");
        assert!(span.events.is_sorted_by_key(|event| event.at), "{span:#?}");
        let inside = |at: Time| span.start <= at && at <= span.end;
        assert!(span.events.iter().all(|event| inside(event.at)), "{span:#?}");
        assert!(
            span.links.iter().all(|link| by_id.contains_key(&link.to)),
            "{span:#?}"
        );
        if span.kind == SpanKind::Request {
            continue;
        }
        let parent = span.parent.and_then(|parent| by_id.get(&parent));
        let parent = parent.unwrap_or_else(|| panic!("no parent: {span:#?} in {owner:#?}"));
        assert!(parent.start <= span.start, "{span:#?} begins before {parent:#?}");
        // A worker may hear that it is over, or be cut off, after its owner knows.
        let is_owners = owner.iter().any(|own| own.id == span.id);
        assert!(
            !is_owners || span.end <= parent.end,
            "{span:#?} ends after {parent:#?}"
        );
    }
}

/// From its arrival to its first token, and to its end, a room is in a span that says what is done.
fn check_coverage(spans: &[TraceSpan], history: &RoomHistory) {
    let (facts, state) = (history.facts(), history.state());
    let says =
        |span: &&TraceSpan| !matches!(span.kind, SpanKind::Request | SpanKind::Room | SpanKind::Attempt);
    for to in [state.stream.first, state.ended].into_iter().flatten() {
        let from = facts.arrived();
        let mut parts: Vec<(Time, Time)> = spans
            .iter()
            .filter(says)
            .map(|span| (span.start.max(from), span.end.min(to)))
            .collect();
        parts.sort();
        let (mut covered, mut reached) = (0, from);
        for (start, end) in parts {
            covered += (end - start.max(reached)).micros;
            reached = reached.max(end);
        }
        let whole = (to - from).micros;
        assert!(
            covered * 100 >= whole * 98,
            "{covered} of {whole} us: {history:#?}"
        );
    }
}
