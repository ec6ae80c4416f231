//! What a person is told of a room that went through much: workers that are gone, attempts that failed, and what was said again and again.

use observe::explain::{Account, Line, Standing, Tone, account};
use observe::{LinkEnd, NodeWhat, Recorder, RoomHistory, RoomWhat};
use room::{
    AttemptError, Failure, Generation, Happening, NodeId, Outcome, PhaseKind, Proof, Refusal, Route, Time,
    WaitsFor, Why,
};

use crate::explain::{has, known, standing, told};
use crate::kit::{self, at, event, facts, linked, node, step};

const P0: NodeId = NodeId(1);
const D0: NodeId = NodeId(2);
const D0_AGAIN: NodeId = NodeId(3);

const STUCK: AttemptError = AttemptError::NoProgress(PhaseKind::Prefilling);

/// A gateway whose workers are linked.
fn gateway() -> Recorder {
    kit::gateway(&[(P0, "p0"), (D0, "d0")])
}

fn lost(recorder: &Recorder, worker: NodeId, name: &str, why: &str) {
    let what = NodeWhat::WorkerUnlinked {
        worker,
        name: name.into(),
        end: LinkEnd::Loss,
        why: why.into(),
    };
    node(recorder, what);
}

/// A room of that gateway.
fn opened(recorder: &Recorder) -> RoomHistory {
    RoomHistory::new(facts(0)).with_roster(recorder.roster().clone())
}

fn push(history: &mut RoomHistory, ms: u64, attempt: u32, what: RoomWhat) {
    history.push(&event(ms, attempt, what));
}

fn says(history: &mut RoomHistory, ms: u64, attempt: u32, what: Happening) {
    push(history, ms, attempt, RoomWhat::Room(what));
}

/// An attempt that gets to its prompt, from `ms` on.
fn begins(history: &mut RoomHistory, ms: u64, attempt: u32, decode: NodeId) {
    use PhaseKind::{Prefilling, Queued, Reserving};
    push(history, ms, attempt, step(Queued, Reserving, Why::Admitted, 10));
    let route = Route { prefill: P0, decode };
    says(history, ms, attempt, Happening::Routed(route));
    push(
        history,
        ms + 10,
        attempt,
        step(Reserving, Prefilling, Why::Reserved, 10),
    );
}

fn fails(history: &mut RoomHistory, ms: u64, attempt: u32, (worker, error): (NodeId, AttemptError)) {
    let failed = Happening::AttemptFailed {
        worker,
        error,
        retried: true,
    };
    says(history, ms, attempt, failed);
    let retry = step(
        PhaseKind::Prefilling,
        PhaseKind::Queued,
        Why::Retry(error),
        10_000,
    );
    push(history, ms, attempt + 1, retry);
}

fn timer(history: &mut RoomHistory, ms: u64, attempt: u32) {
    let phase = PhaseKind::Prefilling;
    push(history, ms, attempt, RoomWhat::TimerFired { phase });
}

fn again(history: &mut RoomHistory, ms: u64, attempt: u32, told: u32) {
    timer(history, ms, attempt);
    let again = Happening::ToldAgain {
        worker: P0,
        of: Generation(1),
        told,
    };
    says(history, ms, attempt, again);
}

fn over() -> Standing<'static> {
    standing(90_000, WaitsFor::Nothing, None)
}

/// Its prefill worker computes nothing. The second attempt is there, where it does not either, and is told to return the first.
fn stuck_twice() -> RoomHistory {
    let recorder = gateway();
    let mut history = opened(&recorder);
    begins(&mut history, 1_010, 1, D0);
    timer(&mut history, 11_020, 1);
    recorder.roster().heard(P0, at(10_900));
    fails(&mut history, 11_020, 1, (P0, STUCK));
    begins(&mut history, 11_030, 2, D0);
    for (ms, told) in [(11_120, 2), (11_320, 3), (13_320, 4), (15_320, 5)] {
        again(&mut history, ms, 2, told);
    }
    history
}

fn account_of_stuck_twice() -> Account {
    let waits = WaitsFor::Prompt {
        worker: P0,
        computed: 0,
        positions: 10,
    };
    let peers = [known(P0, "p0", 15_900, &[]), known(D0, "d0", 15_900, &[])];
    let now = Standing {
        peers: &peers,
        ..standing(16_000, waits, Some(at(21_040)))
    };
    account(&stuck_twice(), &now)
}

#[test]
fn why_an_attempt_failed_is_told_with_how_far_it_was_and_whether_its_worker_was_there() {
    let told_of = account_of_stuck_twice();
    let failed = "p0: no progress in prefilling for 10.0 s (0 of 10 computed), \
                  though its link was alive (heard 120 ms ago)";
    has(
        &told(&told_of),
        &format!("the attempt failed at {failed}; it is tried again"),
    );
    has(
        &told_of.odd,
        &format!("attempt 1 failed at {failed}: look at that worker's engine and its log"),
    );
}

#[test]
fn that_a_worker_is_told_again_hides_neither_that_nothing_goes_on_nor_which_attempt_is_meant() {
    let told_of = account_of_stuck_twice();
    has(
        &told_of.odd,
        "for 4.9 s p0 has computed nothing of it, though its link is alive",
    );
    let again: Vec<(&str, u32)> = told_of
        .history
        .iter()
        .filter(|line| line.what.contains("told again"))
        .map(|line| (line.what.as_str(), line.attempt))
        .collect();
    assert_eq!(
        again[0],
        ("p0 has not proven attempt 1 returned yet: told again (time 2)", 1)
    );
    assert_eq!(again.len(), 4);
}

#[test]
fn a_deadline_that_passed_says_which_and_one_that_did_not_is_no_deadline() {
    let passed = |account: &Account| -> Vec<String> {
        let lines = account.history.iter().map(|line| line.what.clone());
        lines
            .filter(|what| what.starts_with("a deadline passed") || what.contains("is due"))
            .collect()
    };
    assert_eq!(
        passed(&account_of_stuck_twice()),
        ["a deadline passed in prefilling: the longest time without progress of a prompt"]
    );
    let mut history = opened(&gateway());
    begins(&mut history, 1_010, 1, D0);
    timer(&mut history, 60_000, 1);
    // Nobody has acted on it yet.
    assert_eq!(
        passed(&account(&history, &over())),
        ["something is due in prefilling: its owner is told"]
    );
    let expired = Why::Outcome(Outcome::Expired(PhaseKind::Prefilling));
    push(
        &mut history,
        60_001,
        1,
        step(PhaseKind::Prefilling, PhaseKind::Draining, expired, 58_980),
    );
    assert_eq!(
        passed(&account(&history, &over())),
        ["a deadline passed in prefilling: the request's own"]
    );
}

#[test]
fn an_owner_that_is_silent_was_told_that_something_is_due() {
    let mut history = opened(&gateway());
    timer(&mut history, 2_000, 1);
    let phase = PhaseKind::Queued;
    push(&mut history, 4_000, 1, RoomWhat::OwnerSilent { phase });
    let told_of = account(&history, &over());
    has(
        &told(&told_of),
        "something is due in prefilling: its owner is told",
    );
}

/// A gateway that waits for no credit says so as a deadline of the queue.
#[test]
fn the_end_of_the_queue_is_a_deadline_too() {
    let mut history = opened(&gateway());
    push(
        &mut history,
        31_000,
        1,
        RoomWhat::TimerFired {
            phase: PhaseKind::Queued,
        },
    );
    let failed = Why::Outcome(Outcome::Failed(Failure::NoCredit));
    push(
        &mut history,
        31_000,
        1,
        step(PhaseKind::Queued, PhaseKind::Draining, failed, 30_000),
    );
    has(
        &told(&account(&history, &over())),
        "a deadline passed in queued: the longest wait for credit",
    );
}

#[test]
fn a_worker_keeps_its_name_when_it_is_gone() {
    let recorder = gateway();
    let mut history = opened(&recorder);
    begins(&mut history, 1_010, 1, D0);
    lost(&recorder, D0, "d0", "silent for 1555 ms");
    fails(&mut history, 2_500, 1, (D0, AttemptError::WorkerLost));
    // Nobody is linked any more.
    let told_of = account(&history, &over());
    has(&told(&told_of), "p0 computes the prompt, d0 the answer");
    has(
        &told(&told_of),
        "the attempt failed at d0: the worker was lost (silent for 1555 ms); it is tried again",
    );
    has(
        &told_of.odd,
        "attempt 1 failed at d0: the worker was lost (silent for 1555 ms)",
    );
}

#[test]
fn a_worker_before_and_after_its_restart_are_told_apart() {
    let recorder = gateway();
    let mut history = opened(&recorder);
    begins(&mut history, 1_010, 1, D0);
    lost(&recorder, D0, "d0", "closed by the peer: its engine hangs");
    fails(&mut history, 2_500, 1, (D0, AttemptError::WorkerLost));
    linked(&recorder, D0_AGAIN, "d0");
    begins(&mut history, 2_600, 2, D0_AGAIN);
    let told_of = account(&history, &over());
    let routes: Vec<&str> = told(&told_of)
        .into_iter()
        .filter(|what| what.starts_with("credit: "))
        .collect();
    assert_eq!(
        routes,
        [
            "credit: p0 computes the prompt, d0 (since restarted, 0000000000000002) the answer",
            "credit: p0 computes the prompt, d0 the answer",
        ]
    );
}

#[test]
fn what_a_worker_says_of_its_failure_stands_below_it() {
    let mut history = opened(&gateway());
    begins(&mut history, 1_010, 1, D0);
    let said = |worker| RoomWhat::WorkerSaid {
        worker,
        generation: Generation(1),
        why: "no progress for 2000 ms".into(),
    };
    // Of another worker's failure it is no reason.
    push(&mut history, 8_000, 1, said(P0));
    push(&mut history, 8_003, 1, said(D0));
    fails(&mut history, 8_004, 1, (D0, AttemptError::PullFailed));
    let told_of = account(&history, &over());
    let last: Vec<(&str, u64)> = told_of
        .history
        .iter()
        .rev()
        .take(4)
        .rev()
        .map(|line| (line.what.as_str(), line.at_us / 1_000))
        .collect();
    assert_eq!(
        last[..3],
        [
            ("p0 says: no progress for 2000 ms", 7_100),
            (
                "the attempt failed at d0: the KV could not be pulled; it is tried again",
                7_104
            ),
            ("d0 says: no progress for 2000 ms", 7_104),
        ]
    );
}

#[test]
fn where_events_are_not_kept_it_says_so() {
    let mut history = opened(&gateway());
    begins(&mut history, 1_010, 1, D0);
    fails(&mut history, 11_020, 1, (P0, STUCK));
    begins(&mut history, 11_030, 2, D0);
    for told in 2..=30 {
        again(&mut history, 11_040 + u64::from(told), 2, told);
    }
    fails(&mut history, 21_040, 2, (P0, STUCK));
    let told_of = account(&history, &over());
    let gaps: Vec<usize> = (0..told_of.history.len())
        .filter(|place| told_of.history[*place].what.contains("not kept"))
        .collect();
    let [gap] = gaps[..] else {
        panic!("{:#?}", told_of.history)
    };
    // Of 58 repetitions 16 are kept: the first four and the last four times that it was told.
    let Line { what, at_us, .. } = &told_of.history[gap];
    assert_eq!(
        (what.as_str(), *at_us),
        ("(42 events in between are not kept)", 10_145_000)
    );
    assert!(
        told_of.history[gap - 1].what.ends_with("(time 5)"),
        "{:#?}",
        told_of.history
    );
    assert!(
        told_of.history[gap + 1].what.ends_with("(time 27)"),
        "{:#?}",
        told_of.history
    );
    assert_eq!(told_of.left_out, 42);
}

#[test]
fn how_long_it_took_is_no_part_of_why_it_ended() {
    let mut history = opened(&gateway());
    begins(&mut history, 1_010, 1, D0);
    let outcome = Outcome::Failed(Failure::Attempts(AttemptError::WorkerLost));
    push(
        &mut history,
        25_200,
        1,
        step(
            PhaseKind::Prefilling,
            PhaseKind::Draining,
            Why::Outcome(outcome),
            4_000,
        ),
    );
    let delivered = 0;
    push(&mut history, 25_200, 1, RoomWhat::Answered { outcome, delivered });
    push(&mut history, 25_210, 1, RoomWhat::Ended { outcome });
    let told_of = account(&history, &over());
    assert_eq!(
        told_of.summary,
        "failed after 24.3 s: no attempt is left (the last one: the worker was lost); \
         everything it held is proven returned"
    );
    has(
        &told(&told_of),
        "prefilling -> draining after 4.0 s: failed: no attempt is left",
    );
}

#[test]
fn a_proof_by_digest_has_the_name_that_alerts_give_it() {
    let mut history = opened(&gateway());
    let returned = Happening::LegReturned {
        worker: D0,
        of: Generation(1),
        by: Proof::NotHeld,
    };
    says(&mut history, 2_000, 1, returned);
    let account = account(&history, &over());
    has(
        &told(&account),
        "d0 does not hold attempt 1 any more: its digest says so (not_held)",
    );
    // And it is told first: whose word it was, the worker knows.
    has(&account.odd, "a last word between this gateway and d0 was lost");
    has(
        &account.odd,
        "`not_in_digest` means that this gateway's word was lost",
    );
}

/// What is bounded are faults. That there was no room counts as an attempt, and not against the room.
#[test]
fn which_of_how_many_attempts_fails_is_told_before_it_does() {
    let waits = WaitsFor::Prompt {
        worker: P0,
        computed: 0,
        positions: 10,
    };
    let then = |history: &RoomHistory, deadline: Time| {
        let now = standing(12_000, waits, Some(deadline));
        account(history, &now).ends.expect("a deadline").then
    };
    let mut history = opened(&gateway());
    begins(&mut history, 1_010, 1, D0);
    let refused = AttemptError::Refused(Refusal::NoBlocks);
    fails(&mut history, 1_020, 1, (D0, refused));
    begins(&mut history, 1_030, 2, D0);
    assert_eq!(
        then(&history, at(13_000)),
        "attempt 2 fails, as the 1st of 3 that may, and the next one begins elsewhere"
    );
    for attempt in [2, 3] {
        let ms = 1_000 * u64::from(attempt);
        fails(&mut history, ms, attempt, (P0, STUCK));
        begins(&mut history, ms + 10, attempt + 1, D0);
    }
    assert_eq!(
        then(&history, at(13_000)),
        "attempt 4 fails, as the 3rd of 3 that may, and with it the room"
    );
    let told_of = account(&history, &over());
    assert_eq!(
        told_of
            .history
            .iter()
            .filter(|line| line.tone == Tone::Fault)
            .count(),
        2
    );
}
