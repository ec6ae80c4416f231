//! What the log says.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use observe::{LinkEnd, NodeWhat, Recorder, RoomEvent, RoomHistory, RoomWhat, StayEvent, StayWhat, Told};
use room::{
    AttemptError, Finish, Generation, Happening, Holds, HostCounters, NodeId, Outcome, PhaseKind, Proof,
    Refusal, Route, StayCause, StayPhase, StayTransition, Why,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::kit::{self, PREFILL, at, at_worker, event, facts, node, step};

const DECODE: NodeId = NodeId(2);

/// A line: its level, and its fields with their values; `message` is one of them.
#[derive(Clone, Debug)]
struct Line {
    level: Level,
    fields: BTreeMap<&'static str, String>,
}

impl Line {
    fn get(&self, field: &str) -> Option<&str> {
        self.fields.get(field).map(String::as_str)
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }
}

/// Keeps every line.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<Line>>>);

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line {
            level: *event.metadata().level(),
            fields: BTreeMap::new(),
        };
        event.record(&mut line);
        self.0.lock().unwrap().push(line);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The lines that this leads to.
fn logged(tell: impl FnOnce()) -> Vec<Line> {
    let lines = Lines::default();
    tracing::subscriber::with_default(lines.clone(), tell);
    let all = lines.0.lock().unwrap();
    all.clone()
}

#[track_caller]
fn check(line: &Line, level: Level, fields: &[(&str, &str)]) {
    assert_eq!(line.level, level, "{line:?}");
    for (field, value) in fields {
        assert_eq!(line.get(field), Some(*value), "{field} of {line:?}");
    }
}

/// A gateway whose workers are linked.
fn gateway() -> Recorder {
    kit::gateway(&[(PREFILL, "p0"), (DECODE, "d0")])
}

/// Tells of a room's events as its gateway does: all of them are known when the first is told.
fn tell(recorder: &Recorder, history: &mut RoomHistory, events: &[RoomEvent]) {
    for event in events {
        history.push(event);
    }
    for event in events {
        recorder.tell(Told::Room {
            event,
            facts: history.facts(),
            state: history.state(),
            gap: None,
        });
    }
}

/// A room of that gateway that computes its prompt since 1020 ms.
fn prefilling(recorder: &Recorder) -> RoomHistory {
    let mut history = RoomHistory::new(facts(0)).with_roster(recorder.roster().clone());
    for (ms, from, to) in [
        (1_010, PhaseKind::Queued, PhaseKind::Reserving),
        (1_020, PhaseKind::Reserving, PhaseKind::Prefilling),
    ] {
        history.push(&event(ms, 1, step(from, to, Why::Admitted, 10)));
    }
    history
}

fn failed(ms: u64, worker: NodeId, error: AttemptError) -> [RoomEvent; 2] {
    let failed = Happening::AttemptFailed {
        worker,
        error,
        retried: true,
    };
    let next = step(PhaseKind::Prefilling, PhaseKind::Queued, Why::Retry(error), 10);
    [event(ms, 1, RoomWhat::Room(failed)), event(ms, 2, next)]
}

#[test]
fn a_failed_attempt_is_a_warning_that_says_who_where_and_why() {
    let recorder = gateway();
    let mut history = prefilling(&recorder);
    node(
        &recorder,
        NodeWhat::WorkerUnlinked {
            worker: DECODE,
            name: "d0".into(),
            end: LinkEnd::Loss,
            why: "silent for 1555 ms".into(),
        },
    );
    let lost = failed(2_500, DECODE, AttemptError::WorkerLost);
    let lines = logged(|| tell(&recorder, &mut history, &lost));
    check(
        &lines[0],
        Level::WARN,
        &[
            ("message", "the attempt failed"),
            ("attempt", "1"),
            ("phase", "prefilling"),
            ("worker", "d0"),
            ("node", "0000000000000002"),
            ("reason", "worker_lost"),
            ("why", "silent for 1555 ms"),
            ("age_ms", "1600"),
            ("in_phase_ms", "1480"),
        ],
    );
    let mut history = prefilling(&recorder);
    recorder.roster().heard(PREFILL, at(10_900));
    let stuck = AttemptError::NoProgress(PhaseKind::Prefilling);
    let lines = logged(|| tell(&recorder, &mut history, &failed(11_020, PREFILL, stuck)));
    check(
        &lines[0],
        Level::WARN,
        &[
            ("worker", "p0"),
            ("reason", "no_progress_prefilling"),
            ("computed", "0"),
            ("positions", "10"),
            ("heard_ms_ago", "120"),
        ],
    );
}

/// It passes, and there is much of it where there is much to do.
#[test]
fn a_lack_of_room_is_no_warning() {
    let recorder = gateway();
    let mut history = prefilling(&recorder);
    let refused = AttemptError::Refused(Refusal::NoSlot);
    let lines = logged(|| tell(&recorder, &mut history, &failed(1_030, DECODE, refused)));
    check(
        &lines[0],
        Level::INFO,
        &[("worker", "d0"), ("reason", "refused"), ("refusal", "no_slot")],
    );
}

#[test]
fn what_is_due_is_told_by_what_comes_of_it() {
    let recorder = gateway();
    let mut history = prefilling(&recorder);
    let phase = PhaseKind::Prefilling;
    let of = Generation(1);
    let events = [
        event(2_000, 2, RoomWhat::TimerFired { phase }),
        event(
            2_000,
            2,
            RoomWhat::Room(Happening::ToldAgain {
                worker: PREFILL,
                of,
                told: 2,
            }),
        ),
        event(
            2_100,
            2,
            RoomWhat::Room(Happening::DrainOverdue {
                worker: PREFILL,
                of,
                told: 4,
            }),
        ),
    ];
    let lines = logged(|| tell(&recorder, &mut history, &events));
    check(&lines[0], Level::DEBUG, &[("phase", "prefilling")]);
    check(
        &lines[1],
        Level::DEBUG,
        &[("worker", "p0"), ("attempt", "1"), ("told", "2")],
    );
    check(
        &lines[2],
        Level::WARN,
        &[("worker", "p0"), ("attempt", "1"), ("age_ms", "1200")],
    );
}

/// A step of a stay that came at 0 ms.
fn stay_step(
    ms: u64,
    (from, to): (Option<StayPhase>, Option<StayPhase>),
    why: StayCause,
) -> (StayEvent, Arc<observe::StayFacts>) {
    let step = StayTransition {
        at: at(ms),
        attempt: kit::ATTEMPT,
        from,
        to,
        why,
        holds: Holds::NONE,
    };
    let event = at_worker(ms, StayWhat::Step(step));
    (event, Arc::clone(kit::stay().facts()))
}

fn tell_stay(recorder: &Recorder, (event, facts): &(StayEvent, Arc<observe::StayFacts>)) {
    recorder.tell(Told::Stay {
        event,
        facts: Some(facts),
        gap: None,
    });
}

#[test]
fn a_proof_that_is_late_is_told_less_and_less_often() {
    let recorder = Recorder::default();
    let closing = Some(StayPhase::Closing);
    let late = |ms| stay_step(ms, (closing, closing), StayCause::ProofOverdue);
    let warned = |lines: Vec<Line>| -> Vec<(String, String)> {
        let is_warning = |line: &&Line| line.level == Level::WARN;
        let field = |line: &Line, name| line.get(name).unwrap().to_owned();
        lines
            .iter()
            .filter(is_warning)
            .map(|line| (field(line, "times"), field(line, "age_ms")))
            .collect()
    };
    let lines = logged(|| {
        for second in 1..=9 {
            tell_stay(&recorder, &late(1_000 * second));
        }
    });
    assert_eq!(lines.len(), 9);
    let told = [("1", "1000"), ("2", "2000"), ("4", "4000"), ("8", "8000")];
    assert_eq!(
        warned(lines),
        told.map(|(times, age_ms)| (times.to_owned(), age_ms.to_owned()))
    );
    // One that comes again after its end is another.
    let lines = logged(|| {
        tell_stay(&recorder, &stay_step(9_500, (closing, None), StayCause::Proven));
        tell_stay(&recorder, &late(10_000));
    });
    assert_eq!(warned(lines), [("1".to_owned(), "10000".to_owned())]);
}

#[test]
fn an_attempt_that_fails_at_its_worker_is_a_warning_there_too() {
    let recorder = Recorder::default();
    let pulling = Some(StayPhase::Pulling);
    let failed = stay_step(500, (pulling, None), StayCause::Failed(AttemptError::PullFailed));
    let lines = logged(|| tell_stay(&recorder, &failed));
    check(
        &lines[0],
        Level::WARN,
        &[
            ("worker", "prefill-0"),
            ("attempt", "1"),
            ("from", "pulling"),
            ("to", "none"),
            ("reason", "pull_failed"),
            ("age_ms", "500"),
        ],
    );
}

/// Events of a room whose fields have words of the program.
fn wordy() -> Vec<RoomEvent> {
    let done = Outcome::Completed(Finish::Stop);
    let happenings = [
        Happening::Routed(Route {
            prefill: PREFILL,
            decode: DECODE,
        }),
        Happening::LegOpened { worker: DECODE },
        Happening::AttemptFailed {
            worker: DECODE,
            error: AttemptError::NoProgress(PhaseKind::Decoding),
            retried: true,
        },
        Happening::LegReturned {
            worker: DECODE,
            of: Generation(1),
            by: Proof::NotHeld,
        },
    ];
    let mut events: Vec<RoomEvent> = happenings
        .into_iter()
        .map(|happening| event(1_500, 1, RoomWhat::Room(happening)))
        .collect();
    let retry = Why::Retry(AttemptError::Refused(Refusal::NoBlocks));
    let ended = Why::Outcome(done);
    let answered = RoomWhat::Answered {
        outcome: done,
        delivered: 3,
    };
    events.extend([
        event(1_600, 2, step(PhaseKind::Decoding, PhaseKind::Queued, retry, 90)),
        event(1_700, 2, step(PhaseKind::Queued, PhaseKind::Draining, ended, 1)),
        event(1_700, 2, answered),
    ]);
    events
}

/// Values are labels and names: nothing is printed as the program has it.
#[test]
fn no_line_shows_the_inside_of_the_program() {
    let recorder = gateway();
    let mut history = RoomHistory::new(facts(0)).with_roster(recorder.roster().clone());
    let events = wordy();
    let lines = logged(|| {
        tell(&recorder, &mut history, &events);
        let refused = StayCause::Failed(AttemptError::Refused(Refusal::Stale));
        for why in [StayCause::Owner, refused, StayCause::NotInDigest] {
            tell_stay(&recorder, &stay_step(1, (None, Some(StayPhase::Pulling)), why));
        }
        let counted = NodeWhat::Counted {
            worker: PREFILL,
            name: "p0".into(),
            counters: HostCounters::default(),
        };
        node(&recorder, counted);
    });
    assert_eq!(lines.len(), events.len() + 4);
    let inside = ["(", "{", "Some", "None"];
    for line in &lines {
        for (field, value) in line.fields.iter().filter(|(field, _)| **field != "message") {
            assert!(
                !inside.iter().any(|part| value.contains(part)),
                "{field}={value} in {line:?}"
            );
        }
    }
    for (place, level, fields) in [
        (0, Level::DEBUG, [("prefill", "p0"), ("decode", "d0")]),
        (3, Level::DEBUG, [("worker", "d0"), ("by", "not_held")]),
        (4, Level::DEBUG, [("why", "retry"), ("reason", "refused")]),
        (6, Level::INFO, [("outcome", "completed"), ("workers", "d0")]),
    ] {
        check(&lines[place], level, &fields);
    }
}
