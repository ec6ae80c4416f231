//! One stay as spans: what its worker did for the attempt.

use room::{StayPhase, StayTransition, Time};

use super::attributes as name;
use super::room::stalled;
use super::{Status, TraceSpan};
use crate::event::{StayEvent, StayWhat};
use crate::history::StayHistory;
use crate::ids::{SpanId, SpanKind, Trace};
use crate::labels;

/// The spans of a stay that is over. None if its owner did not say to which trace it belongs.
#[must_use]
pub fn of_stay(history: &StayHistory) -> Vec<TraceSpan> {
    let Some(trace) = history.facts().trace else {
        return Vec::new();
    };
    let mut walk = Walk {
        history,
        trace,
        current: None,
        done: Vec::new(),
        last: history.facts().opened,
    };
    for event in history.events().iter() {
        walk.step(event);
    }
    walk.leave(history.ended().unwrap_or(walk.last));
    walk.done
}

struct Walk<'a> {
    history: &'a StayHistory,
    trace: Trace,
    current: Option<(StayPhase, TraceSpan)>,
    done: Vec<TraceSpan>,
    last: Time,
}

impl Walk<'_> {
    fn step(&mut self, event: &StayEvent) {
        let at = event.at;
        self.last = self.last.max(at);
        match &event.what {
            StayWhat::Opened(_) => {}
            StayWhat::Step(step) => self.transition(step),
            StayWhat::Refused(why) => {
                self.tell(at, "refused", vec![(name::REASON, labels::refusal(*why).into())]);
            }
            StayWhat::PromptStarted { cached } => {
                self.on(|span| span.set(name::CACHED_TOKENS, *cached));
                self.tell(at, "started", Vec::new());
            }
            StayWhat::Computed { positions } => {
                let of = self.history.facts().positions;
                let about = vec![(name::POSITIONS, (*positions).into()), (name::OF, of.into())];
                self.tell(at, "chunk", about);
            }
            StayWhat::Sampled { count } => self.sampled(at, *count),
            StayWhat::WantsBlocks { blocks } => {
                self.tell(at, "wants_blocks", vec![(name::BLOCKS, (*blocks).into())]);
            }
            StayWhat::EngineFailed { why } => self.failed(at, "engine_failed", why),
            StayWhat::NotCommanded { why } => self.tell(at, "not_commanded", vec![(name::WHY, why.into())]),
            StayWhat::Offered { blocks } => self.tell(at, "offered", vec![(name::BLOCKS, (*blocks).into())]),
            StayWhat::NotOffered { why } => self.failed(at, "not_offered", why),
            StayWhat::Withdrawn => self.tell(at, "withdrawn", Vec::new()),
            StayWhat::ReadStarted {
                blocks,
                cached_blocks,
            } => self.on(|span| {
                span.set(name::BLOCKS, *blocks);
                span.set(name::CACHED_BLOCKS, *cached_blocks);
            }),
            StayWhat::ReadDone {
                bytes,
                descriptors,
                transport,
                lasted,
            } => self.on(|span| {
                span.set(name::BYTES, *bytes);
                span.set(name::DESCRIPTORS, *descriptors);
                span.set(name::TRANSPORT, transport);
                span.set(name::READ_MICROS, lasted.micros);
            }),
            StayWhat::ReadFailed { why, lasted } => {
                self.on(|span| span.set(name::READ_MICROS, lasted.micros));
                self.failed(at, "read_failed", why);
            }
        }
    }

    fn transition(&mut self, step: &StayTransition) {
        let why = labels::stay_cause(step.why);
        if step.from == step.to {
            // Told to stop once more.
            let about = vec![
                (name::WHY, why.into()),
                (name::HOLDS, labels::holds(step.holds).into()),
            ];
            return self.tell(step.at, "not_proven", about);
        }
        self.on(|span| span.set(name::WHY, why));
        self.leave(step.at);
        if let Some(phase) = step.to {
            self.enter(phase, step);
        }
    }

    fn enter(&mut self, phase: StayPhase, step: &StayTransition) {
        let (kind, parent) = match phase {
            // Nothing is done yet: the owner's `reserve` shows it.
            StayPhase::Reserved => return,
            StayPhase::Prefilling => (SpanKind::ComputePrompt, SpanKind::Prefill),
            StayPhase::Published => (SpanKind::Publish, SpanKind::Attempt),
            StayPhase::Pulling => (SpanKind::Read, SpanKind::Pull),
            StayPhase::Decoding => (SpanKind::Generate, SpanKind::Attempt),
            StayPhase::Closing => (SpanKind::Closing, SpanKind::Attempt),
        };
        let facts = self.history.facts();
        let (trace, room, generation) = (self.trace.id, facts.attempt.room, facts.attempt.generation);
        let id = SpanId::of(trace, room, generation, facts.worker, kind);
        let parent = SpanId::of_attempt(trace, room, generation, parent);
        let mut span = TraceSpan::new(trace, id, Some(parent), kind, step.at);
        span.parent_is_remote = true;
        span.set(name::ROOM, room);
        span.set(name::GENERATION, generation.0);
        span.set(name::WORKER, facts.worker);
        if phase == StayPhase::Prefilling {
            span.set(name::POSITIONS, facts.positions);
        }
        if phase == StayPhase::Closing {
            span.set(name::REASON, labels::stay_cause(step.why));
            span.set(name::HOLDS, labels::holds(step.holds));
        }
        self.current = Some((phase, span));
    }

    fn leave(&mut self, at: Time) {
        let Some((phase, mut span)) = self.current.take() else {
            return;
        };
        if phase == StayPhase::Decoding {
            let stream = self.history.stream();
            span.set(name::TOKENS, stream.tokens);
            span.set(name::LONGEST_GAP_MS, stream.longest_gap.as_millis());
        }
        span.reach(at);
        self.done.push(span);
    }

    fn sampled(&mut self, at: Time, count: u32) {
        let stream = *self.history.stream();
        let tokens = vec![(name::TOKENS, count.into())];
        if stream.first == Some(at) {
            return self.tell(at, "first_token", tokens);
        }
        self.tell(at, "stall", stalled(&stream, at, tokens));
    }

    fn failed(&mut self, at: Time, what: &'static str, why: &crate::event::Text) {
        self.on(|span| span.status = Status::Error(what));
        self.tell(at, what, vec![(name::WHY, why.into())]);
    }

    fn on(&mut self, act: impl FnOnce(&mut TraceSpan)) {
        if let Some((_, span)) = &mut self.current {
            act(span);
        }
    }

    fn tell(&mut self, at: Time, what: &'static str, about: Vec<super::Attribute>) {
        self.on(|span| span.event(at, what, about));
    }
}
