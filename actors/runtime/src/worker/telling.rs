//! What happens at a worker is told: to the history of the stay, to the log, to whoever listens. The one way from what happens here to what is
//! seen of it.

use std::sync::Arc;

use observe::{NodeEvent, NodeWhat, SpanId, StayEvent, StayFacts, StayWhat, Told, Trace, TraceId};
use room::{Attempt, NodeId, StayTransition, Time};

use super::content::Content;
use super::state::State;

/// Tokens that were sampled and not told of yet.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Sampled {
    count: u32,
    /// When the last of them was.
    at: Time,
}

impl State {
    /// Tells what happens to a stay.
    pub(super) fn tell_stay(&self, attempt: Attempt, what: StayWhat) {
        self.tell_stay_at(self.clock.now(), attempt, what);
    }

    /// Tells that a token was sampled, or some: together with those after it, up to the next else that happens to the stay.
    pub(super) fn tell_sampled(&self, attempt: Attempt, count: u32) {
        let mut untold = self.untold.borrow_mut();
        let sampled = untold.entry(attempt).or_default();
        sampled.count += count;
        sampled.at = self.clock.now();
    }

    /// Tells what is left of that.
    pub(super) fn tell_all_sampled(&self) {
        for (attempt, Sampled { count, at }) in self.untold.take() {
            self.say(at, attempt, StayWhat::Sampled { count });
        }
    }

    fn tell_stay_at(&self, at: Time, attempt: Attempt, what: StayWhat) {
        let before = self.untold.borrow_mut().remove(&attempt);
        if let Some(Sampled { count, at }) = before {
            self.say(at, attempt, StayWhat::Sampled { count });
        }
        self.say(at, attempt, what);
    }

    fn say(&self, at: Time, attempt: Attempt, what: StayWhat) {
        let event = StayEvent {
            at,
            worker: self.node,
            attempt,
            what,
        };
        let kept = self.board.keep(&event);
        self.recorder.tell(Told::Stay {
            event: &event,
            facts: kept.facts.as_ref(),
            gap: kept.gap,
        });
        if let Some(history) = kept.traced {
            self.recorder.stay_kept(&history);
        }
    }

    /// Tells of a step of a stay, and before its first of its opening.
    pub(super) fn tell_step(&self, step: StayTransition) {
        if step.from.is_none()
            && let Some(content) = self.contents.get(step.attempt)
        {
            let facts = self.facts(step, content);
            self.tell_stay_at(step.at, step.attempt, StayWhat::Opened(Arc::new(facts)));
        }
        self.tell_stay_at(step.at, step.attempt, StayWhat::Step(step));
    }

    fn facts(&self, step: StayTransition, content: &Content) -> StayFacts {
        let work = &content.work;
        StayFacts {
            attempt: step.attempt,
            worker: self.node,
            name: Arc::clone(&self.name),
            trace: work.trace.map(|trace| Trace {
                id: TraceId::new(trace.trace_id),
                parent: Some(SpanId::new(trace.span_id)),
                flags: trace.flags,
            }),
            prompt_tokens: work.prompt_tokens,
            positions: crate::convert::count(work.tokens.len()),
            max_tokens: work.max_new,
            priority: work.priority,
            opened: step.at,
            deadline: content.deadline,
        }
    }

    /// A gateway traces one of its rooms after all.
    pub(super) fn keep_trace(&self, gateway: NodeId, seq: u64) {
        for history in self.board.want(gateway, seq) {
            self.recorder.stay_kept(&history);
        }
    }

    /// Tells what happens to the worker as a whole.
    pub(super) fn tell_node(&self, what: NodeWhat) {
        let at = self.clock.now();
        self.recorder.node(&NodeEvent { at, what });
    }

    /// Tells what the host counts, if that has changed.
    pub(super) fn tell_counters(&mut self) {
        let counters = self.host.counters();
        if counters == self.counted {
            return;
        }
        if counters.transitions_lost > self.counted.transitions_lost {
            self.board.retain(|attempt| self.host.stay(attempt).is_some());
        }
        self.counted = counters;
        self.tell_node(NodeWhat::Counted {
            worker: self.node,
            name: Arc::clone(&self.name),
            counters,
        });
    }
}
