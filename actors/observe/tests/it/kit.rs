//! Rooms and stays with events, made by hand.

use std::sync::Arc;

use observe::{
    Drawing, Facts, NodeEvent, NodeWhat, Prepared, Recorder, RoomEvent, RoomHistory, RoomWhat, SharedFacts,
    StayEvent, StayFacts, StayHistory, StayWhat, Trace, TraceId,
};
use room::{
    Attempt, Generation, Happening, NodeId, Outcome, PhaseKind, Priority, Role, RoomId, Span, Time,
    Transition, Why,
};

pub(crate) const GATEWAY: NodeId = NodeId(9);
pub(crate) const PREFILL: NodeId = NodeId(1);
pub(crate) const ROOM: RoomId = RoomId {
    gateway: GATEWAY,
    seq: 7,
};

pub(crate) fn at(ms: u64) -> Time {
    Time { micros: ms * 1_000 }
}

/// A room that is opened at 1000 ms; the door took its request in 100 ms before.
pub(crate) fn facts(flags: u8) -> SharedFacts {
    Arc::new(Facts {
        room: ROOM,
        first: ROOM,
        index: 0,
        of: 1,
        request_id: "req-1".into(),
        trace: Trace {
            flags,
            ..Trace::new(TraceId::new(0xabc))
        },
        model: "m".into(),
        prompt_tokens: 10,
        max_tokens: 5,
        drawing: Drawing {
            temperature: 0.0,
            top_p: 1.0,
            seed: 3,
        },
        priority: Priority(1),
        opened: at(1_000),
        prepared: Prepared {
            in_all: Span::from_millis(100),
            render: Span::from_millis(20),
            tokenise: Span::from_millis(30),
        },
        deadline: at(60_000),
    })
}

pub(crate) fn event(ms: u64, generation: u32, what: RoomWhat) -> RoomEvent {
    RoomEvent {
        at: at(ms),
        room: ROOM,
        generation: Generation(generation),
        what,
    }
}

pub(crate) fn step(from: PhaseKind, to: PhaseKind, why: Why, lasted_ms: u64) -> RoomWhat {
    RoomWhat::Room(Happening::Transition(Transition {
        from,
        to,
        why,
        lasted: Span::from_millis(lasted_ms),
    }))
}

pub(crate) fn delivered(from: u32, count: u32) -> RoomWhat {
    RoomWhat::Room(Happening::Delivered { from, count })
}

/// One of `of` rooms of an unsampled request, with this outcome.
pub(crate) fn one_of(of: u32, index: usize, outcome: Outcome) -> RoomHistory {
    let seq = ROOM.seq + index as u64;
    let facts = Facts {
        room: RoomId { seq, ..ROOM },
        index: u32::try_from(index).unwrap(),
        of,
        ..Facts::clone(&facts(0))
    };
    live(Arc::new(facts), Some(1_100), outcome, 1_200)
}

/// A room that had its first token at `first_ms` and this outcome at `ended_ms`.
pub(crate) fn ended(flags: u8, first_ms: Option<u64>, outcome: Outcome, ended_ms: u64) -> RoomHistory {
    live(facts(flags), first_ms, outcome, ended_ms)
}

fn live(facts: SharedFacts, first_ms: Option<u64>, outcome: Outcome, ended_ms: u64) -> RoomHistory {
    let mut history = RoomHistory::new(facts);
    history.push(&event(
        1_010,
        1,
        step(PhaseKind::Queued, PhaseKind::Reserving, Why::Admitted, 10),
    ));
    if let Some(first_ms) = first_ms {
        history.push(&event(first_ms, 1, delivered(0, 1)));
    }
    let draining = step(
        PhaseKind::Reserving,
        PhaseKind::Draining,
        Why::Outcome(outcome),
        0,
    );
    history.push(&event(ended_ms, 1, draining));
    let delivered = 1;
    history.push(&event(ended_ms, 1, RoomWhat::Answered { outcome, delivered }));
    history.push(&event(
        ended_ms + 5,
        1,
        step(PhaseKind::Draining, PhaseKind::Ended, Why::Returned, 5),
    ));
    history.push(&event(ended_ms + 5, 1, RoomWhat::Ended { outcome }));
    history
}

pub(crate) const ATTEMPT: Attempt = Attempt {
    room: ROOM,
    generation: Generation::FIRST,
};

pub(crate) fn stay() -> StayHistory {
    StayHistory::new(Arc::new(StayFacts {
        attempt: ATTEMPT,
        worker: PREFILL,
        name: "prefill-0".into(),
        trace: None,
        prompt_tokens: 10,
        positions: 10,
        max_tokens: 5,
        priority: 0,
        opened: at(0),
        deadline: at(60_000),
    }))
}

pub(crate) fn at_worker(ms: u64, what: StayWhat) -> StayEvent {
    StayEvent {
        at: at(ms),
        worker: PREFILL,
        attempt: ATTEMPT,
        what,
    }
}

/// Something happened to the node.
pub(crate) fn node(recorder: &Recorder, what: NodeWhat) {
    recorder.node(&NodeEvent { at: at(900), what });
}

/// A worker is linked.
pub(crate) fn linked(recorder: &Recorder, worker: NodeId, name: &str) {
    let what = NodeWhat::WorkerLinked {
        worker,
        name: name.into(),
        role: Role::Decode,
        blocks: 1,
        block_tokens: 1,
        slots: 1,
    };
    node(recorder, what);
}

/// A gateway whose workers are linked.
pub(crate) fn gateway(workers: &[(NodeId, &str)]) -> Recorder {
    let recorder = Recorder::default();
    for (worker, name) in workers {
        linked(&recorder, *worker, name);
    }
    recorder
}
