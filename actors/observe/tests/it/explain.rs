//! What a person is told of a room.

use observe::explain::{Account, Holding, Known, Standing, Tone, account};
use observe::{RoomHistory, RoomWhat};
use room::{
    AttemptError, Finish, Generation, Happening, LegView, NodeId, Outcome, PhaseKind, Proof, Route, Time,
    WaitsFor, Why,
};

use crate::kit::{ROOM, at, delivered, ended, event, facts, step};

const PREFILL: NodeId = NodeId(1);
const DECODE: NodeId = NodeId(2);
const LOST: NodeId = NodeId(3);

pub(crate) fn known(node: NodeId, name: &str, heard_ms: u64, blocks: &[(u32, u32)]) -> Known {
    let holding = |(generation, blocks): &(u32, u32)| Holding {
        generation: Generation(*generation),
        blocks: *blocks,
        phase: "prefilling".to_owned(),
    };
    Known {
        node,
        name: name.to_owned(),
        draining: false,
        heard: Some(at(heard_ms)),
        admin: Some(format!("127.0.0.1:{}", 40_000 + node.0)),
        holds: blocks.iter().map(holding).collect(),
    }
}

pub(crate) fn standing(now_ms: u64, waits_for: WaitsFor, deadline: Option<Time>) -> Standing<'static> {
    Standing {
        now: at(now_ms),
        unix_ms: Some(1_000_000 + now_ms),
        waits_for,
        no_worker: false,
        deadline,
        most_faults: 3,
        legs: &[],
        peers: &[],
        jaeger: None,
    }
}

fn room(happening: Happening) -> RoomWhat {
    RoomWhat::Room(happening)
}

/// A room whose first attempt failed with a lost worker and whose second one computes its prompt.
fn prefilling() -> RoomHistory {
    let mut history = RoomHistory::new(facts(0));
    let mut push = |ms, generation, what| {
        history.push(&event(ms, generation, what));
    };
    push(
        1_010,
        1,
        room(Happening::Routed(Route {
            prefill: LOST,
            decode: DECODE,
        })),
    );
    push(
        1_010,
        1,
        step(PhaseKind::Queued, PhaseKind::Reserving, Why::Admitted, 10),
    );
    push(1_010, 1, room(Happening::LegOpened { worker: DECODE }));
    push(
        1_020,
        1,
        step(PhaseKind::Reserving, PhaseKind::Prefilling, Why::Reserved, 10),
    );
    let failed = Happening::AttemptFailed {
        worker: LOST,
        error: AttemptError::WorkerLost,
        retried: true,
    };
    push(2_000, 1, room(failed));
    push(
        2_000,
        2,
        step(
            PhaseKind::Prefilling,
            PhaseKind::Queued,
            Why::Retry(AttemptError::WorkerLost),
            980,
        ),
    );
    push(
        2_100,
        2,
        step(PhaseKind::Queued, PhaseKind::Reserving, Why::Admitted, 100),
    );
    push(
        2_110,
        2,
        step(PhaseKind::Reserving, PhaseKind::Prefilling, Why::Reserved, 10),
    );
    let computed = Happening::Computed {
        worker: PREFILL,
        positions: 4,
        of: 10,
    };
    push(2_500, 2, room(computed));
    history
}

pub(crate) fn told(account: &Account) -> Vec<&str> {
    account.history.iter().map(|line| line.what.as_str()).collect()
}

#[track_caller]
pub(crate) fn has(texts: &[impl AsRef<str>], part: &str) {
    let all: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
    assert!(
        all.iter().any(|text| text.contains(part)),
        "no {part:?} in {all:#?}"
    );
}

/// That room 8.5 s after it was opened: nothing has come for seven seconds, and its first attempt is not returned.
fn stuck() -> Account {
    let waits = WaitsFor::Prompt {
        worker: PREFILL,
        computed: 4,
        positions: 10,
    };
    let leg = |worker, generation, told_to_close| LegView {
        worker,
        generation: Generation(generation),
        told_to_close,
    };
    let peers = [
        known(PREFILL, "prefill-0", 9_400, &[(2, 7)]),
        known(DECODE, "decode-0", 9_400, &[]),
    ];
    let now = Standing {
        legs: &[leg(PREFILL, 2, None), leg(DECODE, 1, Some(2))],
        peers: &peers,
        jaeger: Some("http://j:1/"),
        ..standing(9_500, waits, Some(at(12_500)))
    };
    account(&prefilling(), &now)
}

#[test]
fn a_stuck_prompt_says_who_and_that_its_link_is_alive() {
    let told_of = stuck();
    assert_eq!(
        told_of.summary,
        "prefilling for 7.3 s: it waits for prefill-0 to compute the prompt (4 of 10)"
    );
    assert_eq!(
        (told_of.attempt, told_of.attempts, told_of.phase.as_str()),
        (2, 2, "prefilling")
    );
    has(
        &told_of.odd,
        "for 7.0 s prefill-0 has computed nothing of it, though its link is alive",
    );
    has(&told_of.odd, "it took 2 attempts");
    let ends = told_of.ends.as_ref().expect("a deadline");
    assert_eq!(ends.in_ms, 3_000);
    assert!(ends.deadline.contains("without progress of a prompt"), "{ends:?}");
    assert_eq!(
        ends.then,
        "attempt 2 of 3 fails, and the next one begins elsewhere"
    );
}

#[test]
fn who_holds_what_and_what_has_happened_is_told_with_it() {
    let told_of = stuck();
    assert_eq!(told_of.age_ms, 8_600);
    assert_eq!(told_of.arrived_unix_ms, Some(1_000_900));
    let trace = "http://j:1/trace/00000000000000000000000000000abc";
    assert_eq!(told_of.jaeger.as_deref(), Some(trace));
    let held = told_of.held_by.iter();
    let held: Vec<_> = held
        .map(|held| {
            (
                held.worker.as_str(),
                held.attempt,
                held.blocks,
                held.told_to_close,
            )
        })
        .collect();
    assert_eq!(
        held,
        [("prefill-0", 2, Some(7), None), ("decode-0", 1, None, Some(2))]
    );
    assert_eq!(told_of.held_by[0].heard_ms_ago, Some(100));
    let met = told_of.workers.iter();
    let met: Vec<_> = met
        .map(|met| (met.worker.as_str(), met.is_linked, met.admin.as_deref()))
        .collect();
    assert_eq!(met, [("decode-0", true, Some("127.0.0.1:40002"))]);
    has(
        &told(&told_of),
        "the attempt failed at worker 0000000000000003: the worker was lost; it is tried again",
    );
    has(&told(&told_of), "prefill-0 has computed 4 of 10");
    assert!(told_of.history.iter().any(|line| line.tone == Tone::Fault));
}

#[test]
fn a_silent_worker_is_named_before_anything_else() {
    let waits = WaitsFor::Token { worker: DECODE };
    let peers = [known(DECODE, "decode-0", 5_000, &[])];
    let told_of = account(
        &prefilling(),
        &Standing {
            peers: &peers,
            ..standing(9_500, waits, None)
        },
    );
    assert_eq!(
        told_of.odd[0],
        "decode-0 has said nothing for 4.5 s: dead, stopped, or cut off"
    );
    has(&told_of.odd, "decode-0 has sent no token");
    assert!(
        !told_of.odd.iter().any(|odd| odd.contains("link is alive")),
        "{:?}",
        told_of.odd
    );
    // One that is not linked has no name, and that is said.
    let gone = account(&prefilling(), &standing(3_000, waits, None));
    assert_eq!(gone.odd[0], "worker 0000000000000002 is not linked any more");
}

#[track_caller]
fn check_ends(standing: &Standing<'_>, history: &RoomHistory, deadline: &str, then: &str) {
    let ends = account(history, standing).ends.expect("a deadline");
    assert!(ends.deadline.contains(deadline), "{ends:?}");
    assert!(ends.then.contains(then), "{ends:?}");
}

#[test]
fn the_deadline_says_what_it_leads_to() {
    let queued = RoomHistory::new(facts(0));
    let credit = |deadline| standing(1_500, WaitsFor::Credit, Some(deadline));
    check_ends(&credit(at(31_000)), &queued, "wait for credit", "429");
    check_ends(
        &credit(at(60_000)),
        &queued,
        "the request's own",
        "expired in queued",
    );
    let absent = Standing {
        no_worker: true,
        ..credit(at(2_000))
    };
    check_ends(&absent, &queued, "there is none of", "503");
    has(&account(&queued, &absent).odd, "no worker of a kind");
    let mut draining = prefilling();
    let outcome = Outcome::Expired(PhaseKind::Prefilling);
    draining.push(&event(
        3_000,
        2,
        step(
            PhaseKind::Prefilling,
            PhaseKind::Draining,
            Why::Outcome(outcome),
            890,
        ),
    ));
    let proof = WaitsFor::Proof {
        worker: PREFILL,
        leases: 1,
    };
    let peers = [known(PREFILL, "prefill-0", 3_000, &[])];
    let owed = Standing {
        peers: &peers,
        // Past the request's own deadline: only the fence is left.
        ..standing(61_000, proof, Some(at(62_000)))
    };
    check_ends(&owed, &draining, "proof", "prefill-0 is fenced");
}

#[test]
fn what_has_ended_waits_for_nothing() {
    let history = ended(0, Some(1_200), Outcome::Completed(Finish::Stop), 2_000);
    let told_of = account(&history, &standing(90_000, WaitsFor::Nothing, None));
    assert_eq!(
        told_of.summary,
        "completed after 1.1 s; everything it held is proven returned"
    );
    assert_eq!(
        (
            told_of.waits_for.as_ref(),
            told_of.in_phase_ms,
            told_of.ends.as_ref()
        ),
        (None, None, None)
    );
    assert_eq!(
        (
            told_of.age_ms,
            told_of.took.outcome_ms,
            told_of.took.first_token_ms
        ),
        (1_105, Some(1_100), Some(300))
    );
    assert_eq!(told_of.outcome.as_deref(), Some("completed"));
    assert_eq!(told_of.odd, [""; 0]);
    assert_eq!(told(&told_of).last(), Some(&"nothing is left of it"));
    assert_eq!(told_of.room, ROOM.to_string());
}

#[test]
fn a_timeline_has_every_phase_once_and_no_hole() {
    let told_of = account(&prefilling(), &standing(3_000, WaitsFor::Nothing, None));
    let phases: Vec<_> = told_of
        .stretches
        .iter()
        .map(|part| (part.phase.as_str(), part.attempt))
        .collect();
    assert_eq!(
        phases,
        [
            ("prepare", 0),
            ("queued", 1),
            ("reserving", 1),
            ("prefilling", 1),
            ("queued", 2),
            ("reserving", 2),
            ("prefilling", 2),
        ]
    );
    for pair in told_of.stretches.windows(2) {
        assert_eq!(pair[0].to_us, pair[1].from_us, "{pair:?}");
    }
    let last = told_of.stretches.last().expect("a phase");
    assert!(last.open && last.to_us == 2_100_000, "{last:?}");
}

#[test]
fn a_long_stall_and_a_late_proof_are_odd() {
    let mut history = prefilling();
    history.push(&event(2_600, 2, delivered(0, 1)));
    history.push(&event(4_700, 2, delivered(1, 1)));
    let outcome = Outcome::Completed(Finish::Length);
    history.push(&event(
        4_800,
        2,
        step(
            PhaseKind::Decoding,
            PhaseKind::Draining,
            Why::Outcome(outcome),
            10,
        ),
    ));
    history.push(&event(
        4_800,
        2,
        RoomWhat::Answered {
            outcome,
            delivered: 2,
        },
    ));
    let returned = Happening::LegReturned {
        worker: PREFILL,
        of: Generation(2),
        by: Proof::Fenced,
    };
    history.push(&event(8_000, 2, room(returned)));
    history.push(&event(8_000, 2, RoomWhat::Ended { outcome }));
    let told_of = account(&history, &standing(9_000, WaitsFor::Nothing, None));
    has(&told_of.odd, "its tokens stalled for 2.1 s");
    has(&told_of.odd, "it took 3.2 s to prove everything returned");
    has(&told(&told_of), "tokens again, after a stall: 1, from the 2nd on");
    has(
        &told(&told_of),
        "link is over, and with it its lease of attempt 2",
    );
}

#[test]
fn an_account_survives_json() {
    let told_of = account(&prefilling(), &standing(3_000, WaitsFor::Reader, Some(at(5_000))));
    let text = serde_json::to_string(&told_of).expect("JSON");
    assert_eq!(
        serde_json::from_str::<Account>(&text).expect("an account"),
        told_of
    );
}
