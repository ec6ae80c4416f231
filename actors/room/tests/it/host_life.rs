//! Stays from their beginning to their end, as an owner sees them.

use room::{EngineInput, Finish, FromOwner, Host, HostInput, Span, TransferInput};

use crate::host_kit::{FIRST_TOKEN, Worker, at, attempt, check, job, spec};

const LAST_TOKEN: EngineInput = EngineInput::Sampled {
    count: 1,
    finish: Some(Finish::Stop),
};

fn pull(worker: &mut Worker, seq: u64) -> Vec<String> {
    worker.owner(attempt(seq, 1), FromOwner::Pull { sampled: 1 })
}

#[test]
fn a_prefill_worker_computes_publishes_and_releases() {
    let mut w = Worker::new(false);
    let a = attempt(1, 1);
    check(
        &w.owner(a, FromOwner::Prefill(job(7, 10))),
        &["prefill 1#1 in [0, 1, 2] from 0, first token"],
    );
    check(
        &w.engine(a, EngineInput::Computed { positions: 8 }),
        &["tell 1#1: Progress 8"],
    );
    check(
        &w.engine(a, FIRST_TOKEN),
        &["tell 1#1: Tokens 1 from 0", "offer 1#1 [0, 1, 2]"],
    );
    check(&w.transfer(a, TransferInput::Offered), &["tell 1#1: Published"]);
    check(&w.owner(a, FromOwner::Release), &["withdraw 1#1"]);
    assert_eq!(w.blocks(), "9/0/0/3", "a peer may still read");
    check(&w.transfer(a, TransferInput::Withdrawn), &["tell 1#1: Closed"]);
    assert_eq!(
        w.blocks(),
        "10/0/2/0",
        "the full blocks are cache, the partial one is free"
    );
}

#[test]
fn a_decode_worker_reserves_pulls_and_decodes() {
    let mut w = Worker::new(false);
    let a = attempt(1, 1);
    check(
        &w.owner(a, FromOwner::Reserve(job(7, 8))),
        &["tell 1#1: Reserved, 0 cached"],
    );
    check(&pull(&mut w, 1), &["read 1#1 from 0 into [0, 1]"]);
    check(
        &w.transfer(a, TransferInput::ReadEnded { ok: true }),
        &["tell 1#1: Pulled", "decode 1#1 in [0, 1, 2] from 8"],
    );
    check(&w.engine(a, FIRST_TOKEN), &["tell 1#1: Tokens 1 from 1"]);
    check(
        &w.engine(a, EngineInput::NeedBlocks { n: 1 }),
        &["grow 1#1 by [3]"],
    );
    check(
        &w.engine(a, LAST_TOKEN),
        &["tell 1#1: Tokens 1 from 2", "tell 1#1: Finished Stop at 3"],
    );
    assert_eq!(
        (w.phase(a), w.blocks()),
        ("gone".to_owned(), "10/0/2/0".to_owned())
    );
    check(&w.owner(a, FromOwner::Close), &["tell 1#1: Closed"]);
    assert_eq!(
        w.host.counters().unknown,
        0,
        "the Close after an end is the normal course"
    );
}

#[test]
fn what_is_cached_is_not_moved_and_a_pull_of_nothing_completes() {
    let mut w = Worker::new(false);
    w.owner(attempt(1, 1), FromOwner::Reserve(job(7, 8)));
    pull(&mut w, 1);
    w.transfer(attempt(1, 1), TransferInput::ReadEnded { ok: true });

    check(
        &w.owner(attempt(2, 1), FromOwner::Reserve(job(7, 8))),
        &["tell 2#1: Reserved, 2 cached"],
    );
    check(
        &pull(&mut w, 2),
        &["tell 2#1: Pulled", "decode 2#1 in [0, 1, 3] from 8"],
    );
    w.engine(attempt(2, 1), LAST_TOKEN);

    check(
        &w.owner(attempt(3, 1), FromOwner::Reserve(job(7, 10))),
        &["tell 3#1: Reserved, 2 cached"],
    );
    check(&pull(&mut w, 3), &["read 3#1 from 2 into [3]"]);
}

#[test]
fn a_mixed_worker_answers_with_one_lease() {
    let mut w = Worker::new(true);
    let a = attempt(1, 1);
    w.owner(a, FromOwner::Reserve(job(7, 8)));
    check(
        &w.owner(a, FromOwner::Prefill(job(7, 8))),
        &["prefill 1#1 in [0, 1, 2] from 0, whole"],
    );
    check(&w.engine(a, FIRST_TOKEN), &["tell 1#1: Tokens 1 from 0"]);
    assert_eq!(w.phase(a), "Decoding");
    check(
        &w.engine(a, LAST_TOKEN),
        &["tell 1#1: Tokens 1 from 1", "tell 1#1: Finished Stop at 2"],
    );
    assert_eq!(w.blocks(), "10/0/2/0");

    // The last position is computed anew although its block is cached: somebody has to sample from it.
    let b = attempt(2, 1);
    check(
        &w.owner(b, FromOwner::Reserve(job(7, 8))),
        &["tell 2#1: Reserved, 1 cached"],
    );
    check(
        &w.owner(b, FromOwner::Prefill(job(7, 8))),
        &["prefill 2#1 in [0, 2, 3] from 4, whole"],
    );
}

#[test]
fn an_answer_of_one_token_is_never_published() {
    let mut w = Worker::new(false);
    let a = attempt(1, 1);
    w.owner(a, FromOwner::Prefill(job(7, 8)));
    check(
        &w.engine(a, LAST_TOKEN),
        &["tell 1#1: Tokens 1 from 0", "tell 1#1: Finished Stop at 1"],
    );
    assert_eq!(w.phase(a), "gone");
}

#[test]
fn a_migrated_answer_goes_on_with_its_next_token() {
    let mut w = Worker::new(true);
    let a = attempt(1, 3);
    w.owner(
        a,
        FromOwner::Reserve(room::Job {
            delivered: 5,
            ..job(7, 9)
        }),
    );
    w.owner(
        a,
        FromOwner::Prefill(room::Job {
            delivered: 5,
            ..job(7, 9)
        }),
    );
    check(&w.engine(a, FIRST_TOKEN), &["tell 1#3: Tokens 1 from 5"]);
}

#[test]
fn a_close_is_answered_when_the_engine_has_stopped() {
    let mut w = Worker::new(false);
    let a = attempt(1, 1);
    w.owner(a, FromOwner::Prefill(job(7, 8)));
    check(&w.owner(a, FromOwner::Close), &["stop engine 1#1"]);
    check(&w.owner(a, FromOwner::Close), &[]);
    check(&w.engine(a, EngineInput::Computed { positions: 8 }), &[]);
    assert_eq!(w.blocks(), "10/0/0/2");
    check(&w.engine(a, EngineInput::Stopped), &["tell 1#1: Closed"]);
    assert_eq!(
        w.blocks(),
        "12/0/0/0",
        "what was computed after the Close is not believed"
    );
}

#[test]
fn a_lost_close_is_healed_by_the_digest() {
    let mut w = Worker::new(false);
    w.owner(attempt(1, 1), FromOwner::Reserve(job(7, 8)));
    w.owner(attempt(2, 1), FromOwner::Prefill(job(8, 8)));
    check(
        &w.digest(9, &[attempt(2, 1), attempt(5, 1)]),
        &["digest 9: held 2#1"],
    );
    check(&w.digest(10, &[]), &["stop engine 2#1", "digest 10: held 2#1"]);
    check(&w.digest(11, &[]), &["digest 11: held 2#1"]);
    w.engine(attempt(2, 1), EngineInput::Stopped);
    check(&w.digest(12, &[]), &["digest 12: held "]);
    assert_eq!(w.host.counters().healed_by_digest, 2);
}

#[test]
fn the_end_of_a_link_ends_its_leases_and_no_others() {
    let mut w = Worker::new(false);
    let mut other = attempt(1, 1);
    other.room.gateway = room::NodeId(2);
    w.owner(attempt(1, 1), FromOwner::Reserve(job(7, 8)));
    w.owner(other, FromOwner::Reserve(job(8, 8)));
    check(
        &w.feed(HostInput::GatewayLost {
            gateway: room::NodeId(2),
        }),
        &[],
    );
    assert_eq!(
        (w.phase(attempt(1, 1)), w.phase(other)),
        ("Reserved".to_owned(), "gone".to_owned())
    );
}

#[test]
fn a_message_about_nothing_creates_nothing() {
    let mut w = Worker::new(false);
    let a = attempt(1, 1);
    check(&w.owner(a, FromOwner::Close), &["tell 1#1: Closed"]);
    check(&w.owner(a, FromOwner::Release), &["tell 1#1: Closed"]);
    check(&pull(&mut w, 1), &["tell 1#1: Failed UnknownAttempt"]);
    check(&w.engine(a, FIRST_TOKEN), &[]);
    check(&w.transfer(a, TransferInput::ReadEnded { ok: true }), &[]);
    assert_eq!(
        (w.host.stays().count(), w.host.counters().unknown, w.blocks()),
        (0, 3, "12/0/0/0".to_owned())
    );
    check(
        &w.owner(a, FromOwner::Reserve(job(7, 8))),
        &["tell 1#1: Reserved, 0 cached"],
    );
}

#[test]
fn an_old_generation_opens_nothing_and_a_new_one_ends_the_old() {
    let mut w = Worker::new(false);
    w.owner(attempt(1, 2), FromOwner::Prefill(job(7, 8)));
    check(
        &w.owner(attempt(1, 1), FromOwner::Reserve(job(7, 8))),
        &["tell 1#1: Refused Stale"],
    );
    check(
        &w.owner(attempt(1, 3), FromOwner::Prefill(job(7, 8))),
        &["stop engine 1#2", "prefill 1#3 in [2, 3] from 0, first token"],
    );
    w.owner(attempt(1, 3), FromOwner::Close);
    w.engine(attempt(1, 3), EngineInput::Stopped);
    check(
        &w.owner(attempt(1, 3), FromOwner::Prefill(job(7, 8))),
        &["tell 1#3: Refused Stale"],
    );
    assert_eq!((w.host.counters().stale, w.host.counters().superseded), (2, 1));
}

/// Whatever progress it makes, and whatever its owner says.
#[test]
fn a_stay_ends_with_its_request() {
    let mut w = Worker::new(true);
    let a = attempt(1, 1);
    w.owner(a, FromOwner::Reserve(job(7, 8)));
    w.owner(a, FromOwner::Prefill(job(7, 8)));
    while w.phase(a) != "Closing" {
        w.now = w.now + Span::from_millis(500);
        w.engine(a, FIRST_TOKEN);
        w.host.handle_timeout(w.now);
        assert!(w.now <= at(60_500), "the request's deadline, and the grace");
    }
    assert_eq!(w.now, at(60_500));

    w.now = at(59_000);
    let b = attempt(2, 1);
    w.owner(b, FromOwner::Reserve(job(7, 8)));
    w.owner(b, FromOwner::Prefill(job(7, 8)));
    let deadline = w.host.stay(b).map(|stay| stay.deadline);
    assert_eq!(deadline, Some(at(60_500)), "no phase is longer");
}

#[test]
fn an_overdue_proof_is_asked_for_again_and_never_assumed() {
    let mut w = Worker::new(false);
    let a = attempt(1, 1);
    w.owner(a, FromOwner::Reserve(job(7, 8)));
    pull(&mut w, 1);
    check(
        &w.feed(HostInput::GatewayLost {
            gateway: a.room.gateway,
        }),
        &["cancel read 1#1"],
    );
    for _ in 0..50 {
        check(&w.timeout(), &["cancel read 1#1"]);
        assert_eq!(w.blocks(), "9/0/0/3");
    }
    check(&w.transfer(a, TransferInput::ReadEnded { ok: true }), &[]);
    assert_eq!((w.blocks(), w.host.poll_timeout()), ("12/0/0/0".to_owned(), None));
}

#[test]
fn the_end_of_the_engine_ends_what_counted_on_it() {
    let mut w = Worker::new(false);
    w.owner(attempt(1, 1), FromOwner::Prefill(job(7, 8)));
    w.engine(attempt(1, 1), FIRST_TOKEN);
    w.owner(attempt(2, 1), FromOwner::Prefill(job(8, 8)));
    w.owner(attempt(3, 1), FromOwner::Reserve(job(9, 8)));
    w.owner(attempt(4, 1), FromOwner::Reserve(job(10, 8)));
    pull(&mut w, 4);
    check(
        &w.feed(HostInput::EngineDown),
        &[
            "tell 2#1: Failed EngineFailed",
            "tell 3#1: Failed EngineFailed",
            "tell 4#1: Failed EngineFailed",
            "cancel read 4#1",
        ],
    );
    assert_eq!(w.phase(attempt(1, 1)), "Published", "its KV is computed");
    check(
        &w.owner(attempt(5, 1), FromOwner::Reserve(job(9, 8))),
        &["tell 5#1: Refused Draining"],
    );
}

#[test]
fn transitions_tell_the_whole_story_and_are_bounded() {
    let mut w = Worker::new(false);
    let a = attempt(1, 1);
    w.owner(a, FromOwner::Reserve(job(7, 8)));
    w.owner(a, FromOwner::Close);
    let story: Vec<_> = std::iter::from_fn(|| w.host.poll_transition())
        .map(|step| format!("{:?}>{:?}", step.from, step.to))
        .collect();
    assert_eq!(story, ["None>Some(Reserved)", "Some(Reserved)>None"]);

    for seq in 2..1_000 {
        w.owner(attempt(seq, 1), FromOwner::Reserve(job(7, 8)));
        w.owner(attempt(seq, 1), FromOwner::Close);
    }
    assert_eq!(w.host.counters().transitions_lost, 998 * 2 - 1_024);
}

#[test]
fn a_digest_closes_without_a_word_and_the_owner_still_hears_closed() {
    for last in [FromOwner::Release, FromOwner::Close] {
        let mut w = Worker::new(false);
        let a = attempt(1, 1);
        w.owner(a, FromOwner::Prefill(job(7, 8)));
        w.engine(a, FIRST_TOKEN);
        w.digest(1, &[]);
        check(&w.owner(a, last), &[]);
        check(&w.transfer(a, TransferInput::Withdrawn), &["tell 1#1: Closed"]);
    }
}

#[test]
fn what_was_computed_before_is_no_progress() {
    let mut w = Worker::new(false);
    let a = attempt(1, 1);
    w.owner(a, FromOwner::Prefill(job(7, 8)));
    w.engine(a, EngineInput::Computed { positions: 4 });
    let armed = w.host.poll_timeout();
    w.now = w.now + Span::from_millis(1);
    check(&w.engine(a, EngineInput::Computed { positions: 4 }), &[]);
    assert_eq!(w.host.poll_timeout(), armed);
}

#[test]
fn an_end_without_a_token_tells_of_none() {
    let mut w = Worker::new(true);
    let a = attempt(1, 1);
    w.owner(a, FromOwner::Reserve(job(1, 9)));
    w.owner(a, FromOwner::Prefill(job(1, 9)));
    w.engine(a, FIRST_TOKEN);
    let end = EngineInput::Sampled {
        count: 0,
        finish: Some(Finish::Stop),
    };
    check(&w.engine(a, end), &["tell 1#1: Finished Stop at 1"]);
}

/// A prompt's chunks and an answer's tokens are waited for by limits of their own.
#[test]
fn progress_gives_a_prompt_a_prompts_time() {
    let mut spec = spec(true);
    spec.limits.prefill_no_progress = Span::from_millis(3_000);
    spec.limits.stall = Span::from_millis(2_000);
    let mut w = Worker {
        host: Host::new(spec),
        now: at(1_000),
    };
    let a = attempt(1, 1);
    w.owner(a, FromOwner::Reserve(job(1, 9)));
    w.owner(a, FromOwner::Prefill(job(1, 9)));
    let deadline = |w: &Worker| w.host.stay(a).unwrap().deadline;
    assert_eq!(deadline(&w), at(4_000));
    w.now = at(2_000);
    w.engine(a, EngineInput::Computed { positions: 4 });
    assert_eq!(deadline(&w), at(5_000));
    w.engine(a, FIRST_TOKEN);
    assert_eq!(deadline(&w), at(4_000));
}
