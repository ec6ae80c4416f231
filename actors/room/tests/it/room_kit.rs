//! A room to play with: fixed names, and the way to each phase.

use proptest::prelude::ProptestConfig;
use room::{
    Command, Generation, Input, Limits, NodeId, Outcome, PhaseKind, Priority, Report, Room, RoomId, RoomSpec,
    Route, Share, Span, Tenant, Time,
};

/// So many random cases, or as many as `PROPTEST_CASES` says.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let given = ProptestConfig::default();
    let cases = match std::env::var_os("PROPTEST_CASES") {
        Some(_) => given.cases,
        None => usual,
    };
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..given
    }
}

pub(crate) const GATEWAY: NodeId = NodeId(1);
pub(crate) const PREFILL: NodeId = NodeId(10);
pub(crate) const DECODE: NodeId = NodeId(20);
pub(crate) const STRANGER: NodeId = NodeId(99);
pub(crate) const ROOM: RoomId = RoomId {
    gateway: GATEWAY,
    seq: 7,
};
pub(crate) const PAIR: Route = Route {
    prefill: PREFILL,
    decode: DECODE,
};
pub(crate) const MIXED: Route = Route {
    prefill: DECODE,
    decode: DECODE,
};

/// Prompt of 100, answer of at most 8, a minute to do it.
pub(crate) const SPEC: RoomSpec = RoomSpec {
    positions: 100,
    max_new: 8,
    deadline: Time { micros: 60_000_000 },
    priority: Priority(0),
    share: Share {
        tenant: Tenant(0),
        weight: 1,
    },
};

pub(crate) fn ms(millis: u64) -> Time {
    Time::default() + Span::from_millis(millis)
}

pub(crate) fn new_room() -> Room {
    Room::new(ROOM, SPEC, &Limits::default(), ms(0))
}

/// One whose answer may be so many tokens ahead of its reader.
pub(crate) fn room_of(unread_tokens: u32) -> Room {
    let limits = Limits {
        unread_tokens,
        ..Limits::default()
    };
    Room::new(ROOM, SPEC, &limits, ms(0))
}

/// Where the outcome is still open.
pub(crate) const LIVE: [PhaseKind; 5] = [
    PhaseKind::Queued,
    PhaseKind::Reserving,
    PhaseKind::Prefilling,
    PhaseKind::Pulling,
    PhaseKind::Decoding,
];

/// A report about the room's current attempt.
pub(crate) fn from(room: &Room, worker: NodeId, report: Report) -> Input {
    Input::FromWorker {
        worker,
        generation: room.generation(),
        report,
    }
}

pub(crate) fn tell(room: &mut Room, now: Time, worker: NodeId, report: Report) {
    let input = from(room, worker, report);
    room.handle_input(now, input);
}

pub(crate) fn commands(room: &mut Room) -> Vec<Command> {
    std::iter::from_fn(|| room.poll_command()).collect()
}

pub(crate) fn token(from: u32) -> Report {
    Report::Tokens { from, count: 1 }
}

/// Takes a fresh room undisturbed to `phase`, and empties its outbox.
pub(crate) fn room_in(phase: PhaseKind, route: Route) -> Room {
    let mut room = new_room();
    advance(&mut room, phase, route, ms(0));
    commands(&mut room);
    while room.poll_event().is_some() {}
    assert_eq!(room.phase(), phase);
    room
}

/// Drives the room's current attempt undisturbed from the queue to `phase`.
pub(crate) fn advance(room: &mut Room, phase: PhaseKind, route: Route, now: Time) {
    let generation = room.generation();
    let next = room.delivered();
    let steps = [
        Input::Admitted { generation, route },
        from(room, route.decode, Report::Reserved { cached_blocks: 2 }),
        from(room, route.prefill, token(next)),
        from(room, route.prefill, Report::Published),
        from(room, route.decode, Report::Pulled),
        from(
            room,
            route.decode,
            Report::Finished {
                finish: room::Finish::Stop,
                total: next + 1,
            },
        ),
        from(room, route.prefill, Report::Closed),
        from(room, route.decode, Report::Closed),
    ];
    for step in steps {
        if room.phase() == phase {
            return;
        }
        room.handle_input(now, step);
    }
}

/// The same room in its second attempt, queued, with nothing left of the first.
pub(crate) fn second_attempt() -> Room {
    let mut room = room_in(PhaseKind::Decoding, PAIR);
    room.handle_input(ms(1), Input::WorkerLost { worker: DECODE });
    let first = Generation::FIRST;
    let closed = Input::FromWorker {
        worker: PREFILL,
        generation: first,
        report: Report::Closed,
    };
    room.handle_input(ms(1), closed);
    commands(&mut room);
    while room.poll_event().is_some() {}
    assert!(room.legs().is_empty());
    assert_eq!(room.generation(), first.next());
    room
}

/// The outcomes among them.
pub(crate) fn answers(commands: &[Command]) -> Vec<Outcome> {
    let answer = |c: &Command| {
        if let Command::Answer(outcome) = c {
            Some(*outcome)
        } else {
            None
        }
    };
    commands.iter().filter_map(answer).collect()
}

/// Calls the room whenever it asks to be, up to and including `until`.
pub(crate) fn idle(room: &mut Room, until: Time) -> Vec<(Time, Command)> {
    let mut said = Vec::new();
    while let Some(at) = room.poll_timeout().filter(|at| *at <= until) {
        room.handle_timeout(at);
        said.extend(commands(room).into_iter().map(|command| (at, command)));
    }
    said
}
