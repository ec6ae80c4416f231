//! A job becomes rooms: their names, what is fixed of each, and the trace that they belong to.

use std::sync::Arc;

use observe::{Drawing, Facts, Prepared, SpanId, SpanKind, Trace, TraceId};
use room::{Priority, Room, RoomId, RoomSpec, Time};

use super::board::RoomView;
use super::job::Job;
use super::supervisor::SupervisorState;
use crate::convert;

/// The rooms of a job.
pub(super) struct Opened {
    pub(super) rooms: Vec<(RoomId, Room)>,
    pub(super) trace: Trace,
    /// When the request ends.
    pub(super) deadline: Time,
}

impl SupervisorState {
    /// Opens a job's rooms. From now on they are shown; nothing is sent yet.
    pub(super) fn open_rooms(&mut self, job: &mut Job) -> Opened {
        let now = self.shared.clock.now();
        let spec = RoomSpec {
            positions: convert::count(job.prompt.len()),
            max_new: job.max_new,
            deadline: now + convert::span(job.timeout),
            priority: Priority(job.priority),
            share: job.share,
        };
        let first = RoomId {
            gateway: self.shared.fabric.gateway(),
            seq: self.next_room,
        };
        let trace = self.trace(job, first);
        let mut rooms = Vec::new();
        for index in 0..job.n {
            let id = RoomId {
                seq: self.next_room,
                ..first
            };
            self.next_room += u64::from(!planted!(SiblingsShareRoom));
            let room = Room::new(id, spec, &self.shared.limits, now);
            let facts = self.facts(job, &room, (first, index), trace, now);
            self.shared
                .opened(RoomView::new(&room, job, now), Arc::new(facts));
            rooms.push((id, room));
        }
        self.next_room += u64::from(planted!(SiblingsShareRoom));
        Opened {
            rooms,
            trace,
            deadline: spec.deadline,
        }
    }

    /// The trace of the request whose first room this is: the client's, or one of its own. Workers are told the request's span.
    fn trace(&self, job: &mut Job, first: RoomId) -> Trace {
        let given = job.trace.map(|given| Trace {
            id: TraceId::new(given.trace_id),
            parent: Some(given.span_id).filter(|id| *id != 0).map(SpanId::new),
            flags: given.flags,
        });
        let trace = given.unwrap_or_else(|| Trace::new(TraceId::of_room(first)));
        let trace = self.shared.recorder.sampling().head(trace);
        job.trace = Some(wire::TraceContext {
            trace_id: trace.id.bits(),
            span_id: SpanId::of_room(trace.id, first, SpanKind::Request).bits(),
            flags: trace.flags,
        });
        trace
    }

    fn facts(&self, job: &Job, room: &Room, (first, index): (RoomId, u32), trace: Trace, now: Time) -> Facts {
        let spec = room.spec();
        Facts {
            room: room.id(),
            first,
            index,
            of: job.n,
            request_id: job.request_id.as_str().into(),
            trace,
            model: Arc::clone(&self.shared.model),
            prompt_tokens: spec.positions,
            max_tokens: spec.max_new,
            drawing: Drawing {
                temperature: job.sampling.temperature,
                top_p: job.sampling.top_p,
                seed: job.sampling.seed.wrapping_add(u64::from(index)),
            },
            priority: spec.priority,
            opened: now,
            prepared: Prepared {
                in_all: convert::span(job.prepared.in_all),
                render: convert::span(job.prepared.render),
                tokenise: convert::span(job.prepared.tokenise),
            },
            deadline: spec.deadline,
        }
    }
}
