//! A request as spans: what the door did, and its rooms.

use std::sync::Arc;

use room::{Finish, Outcome, Span, Time};

use super::attributes as name;
use super::{Status, TraceSpan, Value, room as rooms};
use crate::facts::Facts;
use crate::history::{RoomHistory, RoomState};
use crate::ids::{SpanId, SpanKind};
use crate::labels;
use crate::sampling::Keep;

/// The spans of a request at its gateway, when its rooms are over: the request's own comes first. Empty if there are no rooms.
#[must_use]
pub fn of_request(histories: &[Arc<RoomHistory>], keep: Keep) -> Vec<TraceSpan> {
    let mut order: Vec<&RoomHistory> = histories.iter().map(Arc::as_ref).collect();
    order.sort_by_key(|history| history.facts().index);
    let Some(first) = order.first() else {
        return Vec::new();
    };
    let facts = first.facts();
    let mut spans = vec![request(facts)];
    let id = spans[0].id;
    prepare(facts, id, &mut spans);
    for history in &order {
        spans.extend(rooms::of_room(history, id));
    }
    let own = &mut spans[0];
    own.set(name::KEPT, keep.name());
    totals(own, &order);
    let end = spans.iter().map(|span| span.end).max();
    spans[0].reach(end.unwrap_or_default());
    spans
}

fn request(facts: &Facts) -> TraceSpan {
    let trace = facts.trace;
    let id = SpanId::of_room(trace.id, facts.first, SpanKind::Request);
    let mut span = TraceSpan::new(trace.id, id, trace.parent, SpanKind::Request, facts.arrived());
    span.parent_is_remote = trace.parent.is_some();
    // A prompt that was given as text is not rendered.
    let is_chat = facts.prepared.render > Span::default();
    span.set(name::OPERATION, if is_chat { "chat" } else { "text_completion" });
    span.set(name::PROVIDER, name::PROVIDER_NAME);
    span.set(name::REQUEST_MODEL, &facts.model);
    span.set(name::RESPONSE_MODEL, &facts.model);
    span.set(name::MAX_TOKENS, facts.max_tokens);
    span.set(name::TEMPERATURE, f64::from(facts.drawing.temperature));
    span.set(name::TOP_P, f64::from(facts.drawing.top_p));
    // One that was drawn for the client may be larger than the conventions have.
    if let Ok(seed) = i64::try_from(facts.drawing.seed) {
        span.set(name::SEED, Value::Int(seed));
    }
    if facts.of > 1 {
        span.set(name::CHOICES, facts.of);
    }
    span.set(name::INPUT_TOKENS, facts.prompt_tokens);
    span.set(name::REQUEST_ID, &facts.request_id);
    span.set(name::PRIORITY, u32::from(facts.priority.0));
    span
}

/// What the door did before there was a room, one after the other and tokens last.
fn prepare(facts: &Facts, request: SpanId, spans: &mut Vec<TraceSpan>) {
    let (trace, prepared) = (facts.trace.id, facts.prepared);
    if prepared.in_all == Span::default() {
        return;
    }
    let id = SpanId::of_room(trace, facts.first, SpanKind::Prepare);
    let mut whole = TraceSpan::new(trace, id, Some(request), SpanKind::Prepare, facts.arrived());
    whole.reach(facts.opened);
    let before = |end: Time, lasted: Span| Time {
        micros: end.micros.saturating_sub(lasted.micros).max(whole.start.micros),
    };
    let tokenise = before(facts.opened, prepared.tokenise);
    let render = before(tokenise, prepared.render);
    let parts = [
        (SpanKind::Render, render, tokenise),
        (SpanKind::Tokenise, tokenise, facts.opened),
    ];
    spans.push(whole);
    for (kind, start, end) in parts.into_iter().filter(|(_, start, end)| start < end) {
        let own = SpanId::of_room(trace, facts.first, kind);
        let mut span = TraceSpan::new(trace, own, Some(id), kind, start);
        span.reach(end);
        spans.push(span);
    }
}

/// What a request comes to.
fn totals(span: &mut TraceSpan, rooms: &[&RoomHistory]) {
    let states = || rooms.iter().map(|history| history.state());
    let tokens: u64 = states().map(|state| u64::from(state.stream.tokens)).sum();
    span.set(name::OUTPUT_TOKENS, tokens);
    let cached = states().map(|state| state.cached_tokens).max().unwrap_or(0);
    span.set(name::CACHED_TOKENS, cached);
    let finished: Vec<&str> = states().filter_map(finish_reason).collect();
    if !finished.is_empty() {
        span.set(name::FINISH_REASONS, Value::Words(finished));
    }
    let first = rooms
        .iter()
        .filter_map(|history| history.state().to_first_token(history.facts()));
    if let Some(first) = first.min() {
        span.set(name::FIRST_TOKEN_S, seconds(first));
    }
    first_token(span, states().filter_map(|state| state.stream.first).min());
    // What went wrong says more than what did not.
    let outcomes = || states().filter_map(|state| state.outcome);
    let worst = outcomes().find(|(outcome, _)| !labels::is_in_order(*outcome));
    if let Some((outcome, at)) = worst.or_else(|| outcomes().next()) {
        outcome_of(span, outcome);
        span.event(at, "answered", Vec::new());
    }
    let left_out: u32 = rooms.iter().map(|history| history.events().left_out()).sum();
    if left_out > 0 {
        span.set(name::EVENTS_LEFT_OUT, left_out);
    }
    if let [only] = rooms {
        of_one(span, only);
    }
}

/// What is said of one room: on its request's span, or where there are several on its own.
pub(super) fn of_one(span: &mut TraceSpan, history: &RoomHistory) {
    let (facts, state) = (history.facts(), history.state());
    span.set(name::ROOM, facts.room);
    span.set(name::ATTEMPTS, state.attempts);
    if state.fenced {
        span.set(name::FENCED, true);
    }
    if let Some(phase) = state.ended_in {
        span.set(name::ENDED_IN, phase.name());
    }
}

pub(super) fn first_token(span: &mut TraceSpan, at: Option<Time>) {
    if let Some(at) = at {
        span.event(at, "first_token", Vec::new());
    }
}

pub(super) fn outcome_of(span: &mut TraceSpan, outcome: Outcome) {
    let (label, reason) = labels::outcome(outcome);
    span.set(name::OUTCOME, label);
    span.set(name::REASON, reason);
    if !labels::is_in_order(outcome) {
        span.set(name::ERROR, reason);
        span.status = Status::Error(reason);
    }
}

pub(super) fn finish_reason(state: &RoomState) -> Option<&'static str> {
    match state.outcome?.0 {
        Outcome::Completed(Finish::Stop) => Some("stop"),
        Outcome::Completed(Finish::Length) => Some("length"),
        Outcome::Aborted(_) | Outcome::Failed(_) | Outcome::Expired(_) => None,
    }
}

fn seconds(span: Span) -> f64 {
    span.micros as f64 / 1e6
}
