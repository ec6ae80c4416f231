//! Leases that are to be returned: each as a release while its room goes on, and where the room is when it does not.

use room::{Generation, NodeId, Proof, Time};

use super::{Walk, node};
use crate::ids::{SpanId, SpanKind};
use crate::labels;
use crate::span::attributes as name;
use crate::span::{Attribute, Status, TraceSpan};

/// A lease that a worker may hold.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd)]
pub(super) struct Leg {
    pub(super) of: Generation,
    pub(super) worker: NodeId,
}

pub(super) fn leg(of: Generation, worker: NodeId) -> Leg {
    Leg { of, worker }
}

impl Walk<'_> {
    /// Workers of an attempt are told to return their leases while the room goes on: all of them, or one.
    pub(super) fn let_go(&mut self, at: Time, of: Generation, only: Option<NodeId>) {
        let facts = self.history.facts();
        let (trace, room, parent) = (facts.trace.id, facts.room, self.attempt_id(of));
        let told = |leg: &Leg| leg.of == of && only.is_none_or(|worker| worker == leg.worker);
        for (leg, release) in self.legs.iter_mut().filter(|(leg, _)| told(leg)) {
            release.get_or_insert_with(|| {
                let id = SpanId::of(trace, room, of, leg.worker, SpanKind::Release);
                let mut span = TraceSpan::new(trace, id, Some(parent), SpanKind::Release, at);
                span.set(name::WORKER, leg.worker);
                span.set(name::GENERATION, of.0);
                span
            });
        }
    }

    pub(super) fn returned(&mut self, at: Time, leg: Leg, by: Proof) {
        if let Some(attempt) = self.attempts.get_mut(&leg.of) {
            attempt.reach(at);
        }
        let proof = (name::PROOF, labels::proof(by).into());
        match self.legs.remove(&leg).flatten() {
            Some(mut release) => {
                release.attributes.push(proof);
                release.reach(at);
                self.done.push(release);
            }
            None => self.tell(
                at,
                "returned",
                vec![node(leg.worker), (name::GENERATION, leg.of.0.into()), proof],
            ),
        }
    }

    /// Something about a lease that is to be returned: on its release, if it has one, or else where the room is.
    pub(super) fn on_leg(&mut self, at: Time, leg: Leg, what: &'static str, mut about: Vec<Attribute>) {
        match self.legs.get_mut(&leg).and_then(Option::as_mut) {
            Some(release) => {
                if what == "fenced" {
                    release.status = Status::Error(what);
                }
                release.event(at, what, about);
            }
            None => {
                about.extend([node(leg.worker), (name::GENERATION, leg.of.0.into())]);
                if what == "fenced" {
                    self.on_phase(|span| span.status = Status::Error(what));
                }
                self.tell(at, what, about);
            }
        }
    }
}
