//! One room as spans: walks its events once, with the phase, the attempts and the releases that are open at each of them.

mod leases;

use std::collections::BTreeMap;

use room::{AttemptError, Generation, Happening, NodeId, PhaseKind, Route, Span, Time, Transition, Why};

use leases::{Leg, leg};

use super::attributes as name;
use super::request::{finish_reason, first_token, of_one, outcome_of};
use super::{Attribute, Link, Status, TraceSpan, Value};
use crate::event::{Moved, RoomEvent, RoomWhat};
use crate::history::{RoomHistory, Stream};
use crate::ids::{SpanId, SpanKind};
use crate::labels;

/// The spans of one room below those of its request.
pub(super) fn of_room(history: &RoomHistory, request: SpanId) -> Vec<TraceSpan> {
    let facts = history.facts();
    let mut done = Vec::new();
    let mut holder = request;
    if facts.of > 1 {
        holder = SpanId::of_room(facts.trace.id, facts.room, SpanKind::Room);
        done.push(whole(history, holder, request));
    }
    let mut walk = Walk::new(history, holder, done);
    for event in history.events().iter() {
        walk.step(event);
    }
    walk.finish()
}

/// A room among several.
fn whole(history: &RoomHistory, id: SpanId, request: SpanId) -> TraceSpan {
    let (facts, state) = (history.facts(), history.state());
    let mut span = TraceSpan::new(facts.trace.id, id, Some(request), SpanKind::Room, facts.opened);
    span.set(name::INDEX, facts.index);
    span.set(name::OUTPUT_TOKENS, state.stream.tokens);
    span.set(name::CACHED_TOKENS, state.cached_tokens);
    if let Some(reason) = finish_reason(state) {
        span.set(name::FINISH_REASONS, Value::Words(vec![reason]));
    }
    first_token(&mut span, state.stream.first);
    if let Some((outcome, at)) = state.outcome {
        outcome_of(&mut span, outcome);
        span.event(at, "answered", Vec::new());
    }
    of_one(&mut span, history);
    span
}

struct Walk<'a> {
    history: &'a RoomHistory,
    /// The span of the room, or of the request that has no other.
    holder: SpanId,
    generation: Generation,
    phase: Option<(PhaseKind, TraceSpan)>,
    route: Option<Route>,
    attempts: BTreeMap<Generation, TraceSpan>,
    /// Leases that may be held, and since when their workers are told to return them, if they are.
    legs: BTreeMap<Leg, Option<TraceSpan>>,
    done: Vec<TraceSpan>,
    last: Time,
}

impl<'a> Walk<'a> {
    fn new(history: &'a RoomHistory, holder: SpanId, done: Vec<TraceSpan>) -> Self {
        let opened = history.facts().opened;
        let mut walk = Self {
            history,
            holder,
            generation: Generation::FIRST,
            phase: None,
            route: None,
            attempts: BTreeMap::new(),
            legs: BTreeMap::new(),
            done,
            last: opened,
        };
        walk.attempt(None, opened);
        walk.enter(PhaseKind::Queued, opened);
        walk
    }

    fn step(&mut self, event: &RoomEvent) {
        let at = event.at;
        self.catch_up(event);
        match &event.what {
            RoomWhat::Room(happening) => self.happened(event, happening),
            RoomWhat::Cached { tokens, .. } => self.on_phase(|span| span.set(name::CACHED_TOKENS, *tokens)),
            RoomWhat::Moved(moved) => self.moved(at, moved),
            RoomWhat::NotSent { worker, why } => {
                self.tell(at, "not_sent", vec![node(*worker), (name::WHY, why.into())]);
            }
            RoomWhat::WorkerSaid {
                worker,
                generation,
                why,
            } => {
                let why = vec![(name::WHY, why.into())];
                self.on_leg(at, leg(*generation, *worker), "worker_said", why);
            }
            RoomWhat::TimerFired { phase } => self.tell(at, "deadline", vec![in_phase(*phase)]),
            RoomWhat::OwnerSilent { phase } => self.tell(at, "owner_silent", vec![in_phase(*phase)]),
            RoomWhat::OwnerDied { why, deaths, .. } => {
                self.outlived(at);
                self.tell(
                    at,
                    "owner_died",
                    vec![(name::WHY, why.into()), (name::DEATHS, (*deaths).into())],
                );
            }
            RoomWhat::Buried { workers } => {
                self.outlived(at);
                self.tell(at, "buried", vec![(name::WORKERS, (*workers).into())]);
            }
            // The outcome is on the room's own span.
            RoomWhat::Opened(_) | RoomWhat::Answered { .. } => {}
            RoomWhat::Ended { .. } => self.leave(at),
        }
        self.last = self.last.max(at);
    }

    fn happened(&mut self, event: &RoomEvent, happening: &Happening) {
        let at = event.at;
        match happening {
            Happening::Transition(step) => self.transition(event, step),
            Happening::AttemptFailed {
                worker,
                error,
                retried,
            } => self.failed(at, (*worker, *error), *retried),
            Happening::Routed(route) => self.routed(*route),
            Happening::Granted {
                worker,
                cached_blocks,
            } => {
                self.tell(
                    at,
                    "granted",
                    vec![node(*worker), (name::CACHED_BLOCKS, (*cached_blocks).into())],
                );
            }
            Happening::Computed {
                worker,
                positions,
                of,
            } => self.tell(
                at,
                "chunk",
                vec![
                    node(*worker),
                    (name::POSITIONS, (*positions).into()),
                    (name::OF, (*of).into()),
                ],
            ),
            Happening::Published { worker } => self.tell(at, "published", vec![node(*worker)]),
            Happening::Delivered { from, count } => self.delivered(at, *from, *count),
            Happening::Paused => self.tell(at, "paused", Vec::new()),
            Happening::Resumed => self.tell(at, "resumed", Vec::new()),
            Happening::LegOpened { worker } => {
                self.legs.insert(leg(event.generation, *worker), None);
            }
            Happening::LegReturned { worker, of, by } => self.returned(at, leg(*of, *worker), *by),
            Happening::ToldAgain { worker, of, told } => {
                self.on_leg(
                    at,
                    leg(*of, *worker),
                    "told_again",
                    vec![(name::TOLD, (*told).into())],
                );
            }
            Happening::DrainOverdue { worker, of, told } => {
                self.on_leg(
                    at,
                    leg(*of, *worker),
                    "drain_overdue",
                    vec![(name::TOLD, (*told).into())],
                );
            }
            Happening::Fenced { worker, of } => {
                self.on_leg(at, leg(*of, *worker), "fenced", Vec::new());
            }
        }
    }

    fn transition(&mut self, event: &RoomEvent, step: &Transition) {
        let at = event.at;
        if self.phase.as_ref().is_none_or(|(kind, _)| *kind != step.from) {
            // What led here was left out.
            self.missed(at, step);
        }
        if step.to == PhaseKind::Ended {
            // Its owner says so in a moment; until then it lets go.
            return;
        }
        self.leave(at);
        match step.why {
            Why::Retry(error) => {
                self.let_go(at, self.generation, None);
                let replaces = Some((self.generation, error));
                self.generation = event.generation;
                self.attempt(replaces, at);
            }
            Why::Pulled => {
                let source = self.route.map(|route| route.prefill);
                self.let_go(at, self.generation, source);
            }
            Why::Admitted
            | Why::Reserved
            | Why::Published
            | Why::FirstToken
            | Why::Outcome(_)
            | Why::Returned => {}
        }
        self.enter(step.to, at);
    }

    /// Where the events between were left out, an attempt is met in its middle.
    fn catch_up(&mut self, event: &RoomEvent) {
        let is_next = matches!(
            &event.what,
            RoomWhat::Room(Happening::Transition(step)) if matches!(step.why, Why::Retry(_))
        );
        let of = Generation(event.generation.0.saturating_sub(u32::from(is_next)));
        if of > self.generation {
            // How long the one before was where it was last seen is not known.
            self.leave(self.last);
            self.generation = of;
            self.attempt(None, event.at);
        }
    }

    /// The phase that is left is not the one that was entered last, as far as is known.
    fn missed(&mut self, at: Time, step: &Transition) {
        let since = Time {
            micros: at.micros.saturating_sub(step.lasted.micros),
        };
        self.leave(self.last.min(since));
        if let Some(attempt) = self.attempts.get_mut(&self.generation) {
            attempt.start = attempt.start.min(since);
        }
        self.enter(step.from, since);
    }

    fn enter(&mut self, phase: PhaseKind, at: Time) {
        let kind = match phase {
            PhaseKind::Queued => SpanKind::Queue,
            PhaseKind::Reserving => SpanKind::Reserve,
            PhaseKind::Prefilling => SpanKind::Prefill,
            PhaseKind::Pulling => SpanKind::Pull,
            PhaseKind::Decoding => SpanKind::Decode,
            PhaseKind::Draining => SpanKind::Drain,
            PhaseKind::Ended => return,
        };
        let (trace, room) = (self.history.facts().trace.id, self.history.facts().room);
        let span = if kind == SpanKind::Drain {
            let id = SpanId::of_room(trace, room, kind);
            TraceSpan::new(trace, id, Some(self.holder), kind, at)
        } else {
            let id = SpanId::of_attempt(trace, room, self.generation, kind);
            let mut span = TraceSpan::new(trace, id, Some(self.attempt_id(self.generation)), kind, at);
            span.set(name::GENERATION, self.generation.0);
            span
        };
        self.phase = Some((phase, span));
    }

    fn leave(&mut self, at: Time) {
        if let Some((_, mut span)) = self.phase.take() {
            span.reach(at);
            self.done.push(span);
        }
    }

    /// Its owner is dead: what is left of it is drained.
    fn outlived(&mut self, at: Time) {
        if self.phase.as_ref().is_none_or(|(phase, _)| phase.is_live()) {
            self.leave(at);
            self.enter(PhaseKind::Draining, at);
        }
    }

    fn attempt_id(&self, generation: Generation) -> SpanId {
        let facts = self.history.facts();
        SpanId::of_attempt(facts.trace.id, facts.room, generation, SpanKind::Attempt)
    }

    /// An attempt begins, perhaps in the place of another that failed.
    fn attempt(&mut self, replaces: Option<(Generation, AttemptError)>, at: Time) {
        let (trace, id) = (self.history.facts().trace.id, self.attempt_id(self.generation));
        let mut span = TraceSpan::new(trace, id, Some(self.holder), SpanKind::Attempt, at);
        span.set(name::ROOM, self.history.facts().room);
        span.set(name::GENERATION, self.generation.0);
        if let Some((replaced, error)) = replaces {
            span.links.push(Link {
                to: self.attempt_id(replaced),
                attributes: vec![
                    (name::LINK, "replaces".into()),
                    (name::REASON, labels::attempt_error(error).into()),
                ],
            });
        }
        self.attempts.insert(self.generation, span);
        self.route = None;
    }

    fn failed(&mut self, at: Time, (worker, error): (NodeId, AttemptError), retried: bool) {
        let reason = labels::attempt_error(error);
        if let Some(span) = self.attempts.get_mut(&self.generation) {
            span.set(name::ERROR, reason);
            span.set(name::RETRIED, retried);
            span.status = Status::Error(reason);
            span.event(at, "failed", vec![node(worker), (name::REASON, reason.into())]);
        }
        self.on_phase(|span| span.status = Status::Error(reason));
    }

    fn routed(&mut self, route: Route) {
        self.route = Some(route);
        if let Some(span) = self.attempts.get_mut(&self.generation) {
            span.set(name::PREFILL, route.prefill);
            span.set(name::DECODE, route.decode);
        }
    }

    fn moved(&mut self, at: Time, moved: &Moved) {
        // Told of while the owner pulls, or just after.
        let id = SpanId::of_attempt(
            self.history.facts().trace.id,
            self.history.facts().room,
            self.generation,
            SpanKind::Pull,
        );
        let current = self.phase.as_mut().map(|(_, span)| span);
        let Some(span) = current
            .into_iter()
            .chain(&mut self.done)
            .find(|span| span.id == id)
        else {
            return self.tell(at, "moved", vec![(name::BYTES, moved.bytes.into())]);
        };
        span.set(name::BYTES, moved.bytes);
        span.set(name::DESCRIPTORS, moved.descriptors);
        span.set(name::SOURCE, moved.from);
        span.set(name::READER, moved.to);
        span.set(name::TRANSPORT, &moved.transport);
        span.set(name::READ_MICROS, moved.lasted.micros);
    }

    fn delivered(&mut self, at: Time, from: u32, count: u32) {
        let tokens = vec![(name::FROM, from.into()), (name::TOKENS, count.into())];
        let stream = self.history.state().stream;
        if stream.first == Some(at) {
            return self.tell(at, "first_token", tokens);
        }
        self.tell(at, "stall", stalled(&stream, at, tokens));
    }

    fn on_phase(&mut self, act: impl FnOnce(&mut TraceSpan)) {
        if let Some((_, span)) = &mut self.phase {
            act(span);
        }
    }

    /// An event of the phase that the room is in.
    fn tell(&mut self, at: Time, what: &'static str, about: Vec<Attribute>) {
        self.on_phase(|span| span.event(at, what, about));
    }

    /// Closes what is open.
    fn finish(mut self) -> Vec<TraceSpan> {
        let end = self.history.state().ended.unwrap_or(self.last);
        self.leave(end);
        let left = std::mem::take(&mut self.legs);
        for mut release in left.into_values().flatten() {
            // Nobody said so: its room ended without it.
            release.event(end, "not_returned", Vec::new());
            release.reach(end);
            self.done.push(release);
        }
        // An attempt covers all that was done for it.
        for span in &self.done {
            let parent = span.parent;
            let attempt = self
                .attempts
                .values_mut()
                .find(|attempt| Some(attempt.id) == parent);
            if let Some(attempt) = attempt {
                attempt.reach(span.end);
            }
        }
        let stream = self.history.state().stream;
        let mut spans = self.done;
        for span in spans.iter_mut().filter(|span| span.kind == SpanKind::Decode) {
            span.set(name::LONGEST_GAP_MS, stream.longest_gap.as_millis());
        }
        spans.extend(self.attempts.into_values());
        let end = spans.iter().map(|span| span.end).max().unwrap_or(end);
        if let Some(whole) = spans.iter_mut().find(|span| span.kind == SpanKind::Room) {
            whole.reach(end.max(self.last));
        }
        spans
    }
}

/// Adds how long was waited, where that is known.
pub(super) fn stalled(stream: &Stream, at: Time, mut about: Vec<Attribute>) -> Vec<Attribute> {
    if stream.longest_until == Some(at) {
        about.push((name::STALLED_MS, stream.longest_gap.as_millis().into()));
    } else {
        let least: Span = Stream::STALL;
        about.push((name::STALLED_MS, least.as_millis().into()));
    }
    about
}

fn node(worker: NodeId) -> Attribute {
    (name::WORKER, worker.into())
}

fn in_phase(phase: PhaseKind) -> Attribute {
    (name::PHASE, phase.name().into())
}
