//! An answer that gets ahead of its reader is paused, at the owner and at the host; nobody is blamed for it.

use room::{
    AttemptError, Command, EngineInput, FromOwner, Happening, Input, Job, Order, Outcome, PhaseKind, Report,
    Room, Span, TransferInput, WaitsFor,
};

use crate::host_kit::{self, FIRST_TOKEN, Worker, attempt, job, kept};
use crate::room_kit::{
    DECODE, MIXED, PAIR, PREFILL, SPEC, advance, answers, commands, idle, ms, room_of, tell, token,
};

const NOTHING: [u32; 0] = [];

/// What decode was told that it may do.
fn allowed(room: &mut Room) -> Vec<u32> {
    let until = |command: Command| match command {
        Command::Send {
            to: DECODE,
            order: Order::Allow { until },
            ..
        } => Some(until),
        _ => None,
    };
    commands(room).into_iter().filter_map(until).collect()
}

/// Decoding, with `delivered` tokens of which at most `unread` may be unread.
fn decoding(unread: u32, delivered: u32) -> Room {
    let mut room = room_of(unread);
    advance(&mut room, PhaseKind::Decoding, PAIR, ms(0));
    (1..delivered).for_each(|place| tell(&mut room, ms(0), DECODE, token(place)));
    assert_eq!(room.delivered(), delivered);
    commands(&mut room);
    room
}

/// The reader has taken `read` of `delivered` tokens, of which `unread` may be unread.
#[track_caller]
fn check(unread: u32, delivered: u32, read: u32, told: &[u32], waits: bool) {
    let mut room = decoding(unread, delivered);
    room.handle_input(ms(0), Input::Read { tokens: read });
    assert_eq!(allowed(&mut room), told);
    assert_eq!(room.waits_for() == WaitsFor::Reader, waits);
    assert_eq!(room.allowed(), told.last().copied().unwrap_or(unread));
    // Said once more it changes nothing, nor does what was said before it.
    for tokens in [read, 0] {
        room.handle_input(ms(0), Input::Read { tokens });
        assert_eq!(allowed(&mut room), NOTHING);
    }
}

#[test]
fn a_reader_is_given_more_as_it_reads() {
    check(4, 4, 0, &[], true);
    check(4, 4, 1, &[5], false);
    check(4, 4, 4, &[8], false);
    // What it says beyond what there is, it cannot have taken.
    check(4, 4, 9, &[8], false);
    // Not worth a message, while nobody waits for it; half of what may be unread is.
    check(4, 3, 1, &[], false);
    check(4, 3, 2, &[6], false);
    check(1, 1, 0, &[], true);
    check(1, 1, 1, &[2], false);
    // Whoever may not read ahead at all would get nothing.
    check_window_of_none();
    // All tokens there may be are here: only the word that this is all is missing.
    check(8, 8, 0, &[], false);
}

fn check_window_of_none() {
    let mut room = decoding(0, 1);
    assert_eq!((room.allowed(), room.waits_for()), (1, WaitsFor::Reader));
    room.handle_input(ms(0), Input::Read { tokens: 1 });
    assert_eq!(allowed(&mut room), [2]);
}

/// What was held back as not worth a message is said when the answer has come so far.
#[test]
fn what_was_read_meanwhile_is_not_forgotten() {
    let mut room = decoding(4, 3);
    room.handle_input(ms(0), Input::Read { tokens: 1 });
    assert_eq!(allowed(&mut room), NOTHING);
    tell(&mut room, ms(1), DECODE, token(3));
    assert_eq!(allowed(&mut room), [5]);
    assert!(matches!(room.waits_for(), WaitsFor::Token { .. }));
}

#[test]
fn while_the_reader_is_waited_for_no_stall_is_held_against_decode() {
    let mut room = decoding(2, 2);
    assert_eq!(room.deadline(), Some(SPEC.deadline));
    while room.poll_event().is_some() {}
    room.handle_input(ms(30_000), Input::Read { tokens: 2 });
    let resumed = room.poll_event().map(|event| event.what);
    assert_eq!(resumed, Some(Happening::Resumed));
    // From then on it is decode's turn again.
    let stall = room.deadline().unwrap();
    assert!(stall < SPEC.deadline, "{stall:?}");
    room.handle_timeout(stall);
    let failed = std::iter::from_fn(|| room.poll_event()).find_map(|event| match event.what {
        Happening::AttemptFailed { worker, error, .. } => Some((worker, error)),
        _ => None,
    });
    assert_eq!(
        failed,
        Some((DECODE, AttemptError::NoProgress(PhaseKind::Decoding)))
    );
}

#[test]
fn a_reader_that_never_reads_is_ended_by_the_request_deadline() {
    for route in [PAIR, MIXED] {
        let mut room = room_of(1);
        advance(&mut room, PhaseKind::Decoding, route, ms(0));
        assert_eq!(room.waits_for(), WaitsFor::Reader);
        idle(&mut room, ms(59_999));
        assert_eq!((room.outcome(), room.generation().0), (None, 1));
        let said = idle(&mut room, SPEC.deadline);
        let said: Vec<_> = said.into_iter().map(|(_, command)| command).collect();
        assert_eq!(answers(&said), [Outcome::Expired(PhaseKind::Decoding)]);
    }
}

/// The next attempt begins with what is allowed by then, and may give the token that ends its prefill.
#[test]
fn the_next_attempt_begins_where_the_reader_is() {
    for (read, until) in [(0, 5), (1, 5), (2, 6), (4, 8)] {
        let mut room = decoding(4, 4);
        room.handle_input(ms(1), Input::WorkerLost { worker: DECODE });
        commands(&mut room);
        // Nobody is there to be told.
        room.handle_input(ms(1), Input::Read { tokens: read });
        assert_eq!(commands(&mut room), []);
        let (generation, route) = (room.generation(), PAIR);
        room.handle_input(ms(2), Input::Admitted { generation, route });
        let reserved = commands(&mut room).into_iter().find_map(|command| match command {
            Command::Send {
                order: Order::Reserve(work),
                ..
            } => Some(work.until),
            _ => None,
        });
        assert_eq!(reserved, Some(until), "{read} read");
        // Reading goes on while the prompt is computed.
        tell(&mut room, ms(2), DECODE, Report::Reserved { cached_blocks: 0 });
        tell(&mut room, ms(2), PREFILL, Report::Progress { positions: 9 });
        commands(&mut room);
        room.handle_input(ms(3), Input::Read { tokens: 4 });
        let more: &[u32] = if until < 7 { &[8] } else { &[] };
        assert_eq!(allowed(&mut room), more, "{read} read");
    }
}

fn with_leave(until: u32) -> Job {
    Job { until, ..job(7, 10) }
}

/// A worker with attempt 1#1 decoding, one token from elsewhere and leave for so many in all.
fn host_decoding(until: u32) -> Worker {
    let mut w = Worker::new(false);
    let a = attempt(1, 1);
    w.owner(a, FromOwner::Reserve(with_leave(until)));
    w.owner(a, FromOwner::Pull { sampled: 1 });
    let started = w.transfer(a, TransferInput::ReadEnded { ok: true });
    let leave = format!("decode 1#1 in [0, 1, 2] from 10, until {}", until.max(1));
    host_kit::check(&started, &["tell 1#1: Pulled", &leave]);
    w
}

#[test]
fn a_host_passes_on_what_is_new() {
    let mut w = host_decoding(1);
    let a = attempt(1, 1);
    host_kit::check(
        &w.owner(a, FromOwner::Allow { until: 3 }),
        &["allow 1#1, until 3"],
    );
    host_kit::check(&w.owner(a, FromOwner::Allow { until: 3 }), &[]);
    host_kit::check(&w.owner(a, FromOwner::Allow { until: 2 }), &[]);
    assert_eq!(w.host.counters().duplicates, 2);
    // Another generation, and an attempt that is not here: nothing, and nobody hears.
    host_kit::check(&w.owner(attempt(1, 2), FromOwner::Allow { until: 9 }), &[]);
    host_kit::check(&w.owner(attempt(2, 1), FromOwner::Allow { until: 9 }), &[]);
    assert_eq!(w.host.counters().unknown, 2);
}

#[test]
fn a_digest_makes_good_what_was_lost() {
    let mut w = host_decoding(1);
    let digest = |w: &mut Worker, until| {
        w.feed(room::HostInput::Digest {
            gateway: host_kit::GATEWAY,
            n: 1,
            open: vec![kept(attempt(1, 1), until)],
        })
    };
    host_kit::check(&digest(&mut w, 5), &["allow 1#1, until 5", "digest 1: held 1#1"]);
    host_kit::check(&digest(&mut w, 5), &["digest 1: held 1#1"]);
    host_kit::check(&digest(&mut w, 4), &["digest 1: held 1#1"]);
}

/// Before the engine has the sequence there is nobody to tell: it starts with what is allowed by then.
#[test]
fn a_sequence_starts_with_what_is_allowed_by_then() {
    let mut w = Worker::new(true);
    let a = attempt(1, 1);
    w.owner(a, FromOwner::Reserve(with_leave(2)));
    host_kit::check(&w.owner(a, FromOwner::Allow { until: 4 }), &[]);
    let started = w.owner(a, FromOwner::Prefill(with_leave(2)));
    host_kit::check(&started, &["prefill 1#1 in [0, 1, 2] from 0, whole, until 4"]);
    host_kit::check(
        &w.owner(a, FromOwner::Allow { until: 6 }),
        &["allow 1#1, until 6"],
    );
    // One that gives the first token only has leave for that, whatever it is told.
    let b = attempt(2, 1);
    let first = w.owner(b, FromOwner::Prefill(with_leave(0)));
    host_kit::check(&first, &["prefill 2#1 in [3, 4, 5] from 0, first token, until 1"]);
    host_kit::check(&w.owner(b, FromOwner::Allow { until: 6 }), &[]);
}

#[test]
fn a_paused_stay_waits_for_the_request_and_no_stall() {
    let mut w = host_decoding(2);
    let a = attempt(1, 1);
    let deadline = |w: &Worker| w.host.stay(a).unwrap().deadline;
    let stall = w.host.spec().limits.stall;
    assert_eq!(deadline(&w), w.now + stall);
    w.engine(a, FIRST_TOKEN);
    let ends = with_leave(2).deadline + w.host.spec().limits.grace;
    assert_eq!(deadline(&w), ends);
    // A repetition is no leave.
    w.owner(a, FromOwner::Allow { until: 2 });
    assert_eq!(deadline(&w), ends);
    w.now = w.now + stall + stall;
    w.owner(a, FromOwner::Allow { until: 3 });
    assert_eq!(deadline(&w), w.now + stall);
    // While it has leave, more of it is no token.
    let armed = deadline(&w);
    w.now = w.now + Span::from_millis(1);
    w.owner(a, FromOwner::Allow { until: 9 });
    assert_eq!(deadline(&w), armed);
    w.engine(a, EngineInput::NeedBlocks { n: 1 });
    assert_eq!(deadline(&w), armed);
    // Nor does leave give more time to one that has not begun, however little it had.
    let b = attempt(2, 1);
    w.owner(b, FromOwner::Reserve(with_leave(0)));
    let armed = w.host.stay(b).unwrap().deadline;
    w.owner(b, FromOwner::Allow { until: 9 });
    assert_eq!(w.host.stay(b).unwrap().deadline, armed);
}
