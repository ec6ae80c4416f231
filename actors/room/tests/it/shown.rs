//! What people and placement are shown: names, the workers of a desk, since when a room waits, what a host has to do, and until when.

use room::{
    Attempt, EngineInput, FromOwner, Generation, HostCounters, HostInput, Input, NodeId, Report, Role,
    RoomId, TransferInput,
};

use crate::desk_kit::{D1, P1, bid, desk, route_of};
use crate::host_kit::{FIRST_TOKEN, GATEWAY, Worker, at, attempt, job};
use crate::room_kit::{PAIR, STRANGER, ms, new_room, tell};

#[test]
fn names_are_as_people_type_them() {
    let room = RoomId {
        gateway: NodeId(0xab),
        seq: 7,
    };
    let attempt = Attempt {
        room,
        generation: Generation(3),
    };
    assert_eq!(room.gateway.to_string(), "00000000000000ab");
    assert_eq!(room.to_string(), "00000000000000ab-7");
    assert_eq!(attempt.to_string(), "00000000000000ab-7#3");
}

#[test]
fn a_desk_shows_what_it_has_promised() {
    let mut desk = desk(&[P1, D1]);
    route_of(&mut desk, bid(1, 32));
    let shown: Vec<_> = desk
        .workers()
        .into_iter()
        .map(|view| {
            (
                view.node,
                view.spec.role,
                view.attempts,
                view.promised_blocks,
                view.prefills,
            )
        })
        .collect();
    // Decode has the block for the next token, too.
    assert_eq!(shown, [(P1, Role::Prefill, 1, 2, 1), (D1, Role::Decode, 1, 3, 0)]);
}

#[test]
fn a_room_shows_since_when_it_is_where_it_is() {
    let mut room = new_room();
    let (generation, route) = (room.generation(), PAIR);
    room.handle_input(ms(5), Input::Admitted { generation, route });
    assert_eq!(room.in_phase_since(), ms(5));
    // An input that changes no phase changes nothing here.
    tell(&mut room, ms(7), STRANGER, Report::Closed);
    assert_eq!(room.in_phase_since(), ms(5));
}

#[test]
fn a_backlog_is_what_is_still_to_be_computed() {
    let mut w = Worker::new(true);
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    let backlog = |w: &Worker| w.host.prefill_backlog();
    w.owner(a, FromOwner::Reserve(job(1, 9)));
    assert_eq!(backlog(&w), 0, "it has not begun");
    w.owner(a, FromOwner::Prefill(job(1, 9)));
    w.owner(b, FromOwner::Prefill(job(2, 6)));
    assert_eq!(backlog(&w), 15);
    w.engine(a, EngineInput::Computed { positions: 4 });
    assert_eq!(backlog(&w), 11);
    w.engine(a, FIRST_TOKEN);
    assert_eq!(backlog(&w), 6, "it decodes");
    w.owner(b, FromOwner::Close);
    assert_eq!(backlog(&w), 0, "it is given up");
}

#[test]
fn a_host_says_whether_it_takes_more() {
    for (end, is_final) in [(HostInput::Drain, false), (HostInput::EngineDown, true)] {
        let mut w = Worker::new(false);
        assert!(!w.host.is_draining());
        w.feed(end);
        assert!(w.host.is_draining());
        w.feed(HostInput::Undrain);
        assert_eq!(
            w.host.is_draining(),
            is_final,
            "only an engine that is there can be used again"
        );
    }
}

/// A proof takes as long as it takes, whatever became of the request.
#[test]
fn a_closing_stay_insists_beyond_the_end_of_its_request() {
    let mut w = Worker::new(false);
    let a = attempt(1, 1);
    let limits = w.host.spec().limits.clone();
    w.owner(a, FromOwner::Prefill(job(1, 9)));
    w.now = at(59_999) + limits.grace;
    w.owner(a, FromOwner::Close);
    assert_eq!(w.host.stay(a).unwrap().deadline, w.now + limits.proof_retry);
}

/// Who may sample nothing more when it begins to decode waits for its reader, and for nothing of the worker's.
#[test]
fn a_stay_that_comes_ahead_of_its_reader_is_not_late() {
    let mut w = Worker::new(false);
    let a = attempt(1, 1);
    let limits = w.host.spec().limits.clone();
    let mut work = job(1, 9);
    work.until = 1;
    w.owner(a, FromOwner::Reserve(work));
    w.owner(a, FromOwner::Pull { sampled: 1 });
    w.transfer(a, TransferInput::ReadEnded { ok: true });
    assert_eq!(w.phase(a), "Decoding");
    assert_eq!(w.host.stay(a).unwrap().deadline, at(60_000) + limits.grace);
}

#[test]
fn deadlines_that_passed_are_counted() {
    let mut w = Worker::new(false);
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    w.owner(a, FromOwner::Prefill(job(1, 9)));
    w.owner(b, FromOwner::Prefill(job(2, 9)));
    let counted = |w: &Worker| {
        let counters = w.host.counters();
        (counters.expired, counters.proofs_overdue)
    };
    w.timeout();
    assert_eq!(counted(&w), (2, 0), "neither computes");
    w.timeout();
    assert_eq!(counted(&w), (2, 2), "the engine has stopped neither");
    w.engine(a, EngineInput::Stopped);
    w.timeout();
    assert_eq!(counted(&w), (2, 3));
}

const A: Attempt = Attempt {
    room: RoomId {
        gateway: GATEWAY,
        seq: 1,
    },
    generation: Generation(1),
};

/// After these messages, of which none is counted, this input is, and as nothing else.
#[track_caller]
fn counted(begin: &[FromOwner], then: HostInput, count: impl FnOnce(&mut HostCounters)) {
    let mut w = Worker::new(false);
    for message in begin {
        w.owner(A, message.clone());
    }
    assert_eq!(w.host.counters(), HostCounters::default());
    w.feed(then);
    let mut want = HostCounters::default();
    count(&mut want);
    assert_eq!(w.host.counters(), want);
}

fn reserve() -> FromOwner {
    FromOwner::Reserve(job(1, 9))
}

fn prefill() -> FromOwner {
    FromOwner::Prefill(job(1, 9))
}

#[test]
fn reports_that_come_too_late_are_counted() {
    let stopped = || HostInput::Engine {
        attempt: A,
        event: EngineInput::Stopped,
    };
    let withdrawn = HostInput::Transfer {
        attempt: A,
        event: TransferInput::Withdrawn,
    };
    let late = |counters: &mut HostCounters| counters.late_reports = 1;
    counted(&[], stopped(), late);
    counted(&[reserve()], stopped(), late);
    counted(&[], withdrawn, late);
}

#[test]
fn messages_that_change_nothing_are_counted() {
    const PULL: FromOwner = FromOwner::Pull { sampled: 1 };
    let owner = |message| HostInput::Owner { attempt: A, message };
    let duplicate = |counters: &mut HostCounters| counters.duplicates = 1;
    counted(&[reserve()], owner(reserve()), duplicate);
    counted(&[reserve(), PULL], owner(PULL), duplicate);
    let out_of_order = |counters: &mut HostCounters| counters.out_of_order = 1;
    counted(&[reserve()], owner(FromOwner::Release), out_of_order);
    counted(&[reserve()], owner(prefill()), out_of_order);
    let unknown = |counters: &mut HostCounters| counters.unknown = 1;
    for message in [PULL, FromOwner::Close, FromOwner::Allow { until: 3 }] {
        counted(&[], owner(message), unknown);
    }
    let stale = |counters: &mut HostCounters| counters.stale = 1;
    counted(&[reserve(), FromOwner::Close], owner(PULL), stale);
    counted(&[prefill(), FromOwner::Close], owner(prefill()), stale);
    counted(&[reserve(), FromOwner::Close], owner(reserve()), |counters| {
        (counters.refused, counters.stale) = (1, 1);
    });
}

#[test]
fn what_ends_without_its_owners_word_is_counted() {
    let gateway = GATEWAY;
    counted(&[reserve()], HostInput::GatewayLost { gateway }, |counters| {
        counters.ended_with_link = 1;
    });
    let (n, open) = (1, Vec::new());
    counted(&[reserve()], HostInput::Digest { gateway, n, open }, |counters| {
        counters.healed_by_digest = 1;
    });
}
