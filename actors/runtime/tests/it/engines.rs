//! An engine fails: its worker comes back as another incarnation, and its rooms go on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use mock::Faults;
use room::{Failure, Outcome, Span};
use runtime::Node;
use wire::Role;

use crate::cluster::{Cluster, PATIENCE, Setup, completed, expected, finish, job};

/// Several rooms at once; the engines fail as `faults` says.
async fn check(setup: Setup, faults: fn(usize, u64) -> Faults) {
    let engine_faults = faults;
    let cluster = Cluster::start(Setup {
        engine_faults,
        ..setup
    })
    .await;
    let jobs: Vec<_> = (0..6).map(|seed| job(seed, 10 + seed, 25)).collect();
    let mut answers = Vec::new();
    for job in &jobs {
        answers.push(cluster.submit(job.clone()).await);
    }
    for (job, mut answer) in jobs.iter().zip(answers) {
        let tokens = expected(&cluster.setup.mock, job, 0);
        assert_eq!(finish(&mut answer).await, [completed(tokens)], "INV-06");
    }
    cluster.quiesce().await;
    assert!(cluster.gateway.counts().retries > 0);
    assert!(cluster.workers.iter().any(|worker| worker.incarnations() == 2));
    let ends = cluster.heard.ends();
    let down = "closed by the peer: its engine is down: ";
    assert!(ends.len() == 1 && ends[0].starts_with(down), "{ends:?}");
}

fn panics(step: u64) -> Faults {
    Faults {
        panic_at_step: Some(step),
        ..Faults::default()
    }
}

fn fails(step: u64) -> Faults {
    Faults {
        fail_at_step: Some(step),
        ..Faults::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mixed_engine_panics() {
    check(Setup::mixed(), |_, incarnation| match incarnation {
        0 => panics(9),
        _ => Faults::default(),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_decode_engine_fails() {
    check(Setup::pair(), |place, incarnation| match (place, incarnation) {
        (1, 0) => fails(5),
        _ => Faults::default(),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_prefill_engine_panics() {
    check(Setup::pair(), |place, incarnation| match (place, incarnation) {
        (0, 0) => panics(3),
        _ => Faults::default(),
    })
    .await;
}

/// The seed of the job whose sequence has no next token, from this position on.
const BAD: u32 = 77;

fn no_token(from: usize) -> Faults {
    let bad = job(BAD, 9, 30);
    Faults {
        no_token_for: Some((bad.prompt[0], from)),
        ..Faults::default()
    }
}

/// A sequence has no next token: in its prompt, or after so many tokens. It is tried at two workers; those beside it there go on, and no
/// engine is the worse for it.
async fn check_no_token(roles: &[Role], faults: fn(usize, u64) -> Faults) {
    let mut setup = Setup::of(roles);
    setup.engine_faults = faults;
    let from = faults(0, 0).no_token_for.unwrap().1;
    let bad = job(BAD, 9, 30);
    let cluster = Cluster::start(setup).await;
    let good: Vec<_> = (0..6).map(|seed| job(seed, 10 + seed, 25)).collect();
    assert!(good.iter().all(|job| job.prompt[0] != bad.prompt[0]));
    let mut answers = Vec::new();
    for job in &good {
        answers.push(cluster.submit(job.clone()).await);
    }
    let mut answer = cluster.submit(bad.clone()).await;
    let got = finish(&mut answer).await;
    let failure = Failure::Attempts(room::AttemptError::NoToken);
    assert_eq!(got[0].outcome, Some(Outcome::Failed(failure)));
    let whole = expected(&cluster.setup.mock, &bad, 0);
    assert_eq!(got[0].tokens, whole[..from - 9], "what there was of it");
    for (job, mut answer) in good.iter().zip(answers) {
        let tokens = expected(&cluster.setup.mock, job, 0);
        assert_eq!(finish(&mut answer).await, [completed(tokens)], "INV-06");
    }
    cluster.quiesce().await;
    assert_eq!(cluster.gateway.counts().retries, 1);
    assert!(cluster.workers.iter().all(|worker| worker.incarnations() == 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sequence_without_a_next_token_fails_alone() {
    use wire::Role::{Decode, Mixed, Prefill};
    for roles in [
        &[Mixed][..],
        &[Mixed, Mixed],
        &[Prefill, Decode],
        &[Prefill, Prefill, Decode, Decode],
    ] {
        check_no_token(roles, |_, _| no_token(9)).await;
        check_no_token(roles, |_, _| no_token(14)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_never_ends_costs_its_incarnation() {
    let mut setup = Setup::mixed();
    setup.host_limits.prefill_no_progress = Span::from_millis(200);
    setup.host_limits.stall = Span::from_millis(200);
    setup.host_limits.proof_retry = Span::from_millis(50);
    let cluster = Cluster::start(setup).await;
    let worker = &cluster.workers[0];
    worker.gate.close_after(4);
    let wanted = job(1, 10, 25);
    let mut answer = cluster.submit(wanted.clone()).await;
    cluster
        .until("another incarnation", |_| worker.incarnations() > 1)
        .await;
    worker.gate.open();
    let tokens = expected(&cluster.setup.mock, &wanted, 0);
    assert_eq!(finish(&mut answer).await, [completed(tokens)], "INV-06");
    cluster.quiesce().await;
    let (ends, said) = (cluster.heard.ends(), cluster.heard.said());
    let hangs = "closed by the peer: its engine hangs in a step of ";
    assert!(ends[0].starts_with(hangs), "{ends:?}");
    // First of the attempt, then of the worker.
    let begin = |with: &str| said.iter().position(|words| words.starts_with(with));
    let attempt = begin("the engine is in a step that has lasted ");
    let end = begin("its engine hangs in a step of ");
    assert!(attempt.is_some() && attempt < end, "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_that_every_engine_fails_at_ends() {
    let setup = Setup {
        engine_faults: |_, incarnation| {
            if incarnation < 3 {
                fails(1)
            } else {
                Faults::default()
            }
        },
        ..Setup::mixed()
    };
    let mut setup = setup;
    setup.limits.max_faults = 3;
    let cluster = Cluster::start(setup).await;
    let mut answer = cluster.submit(job(1, 5, 5)).await;
    let got = finish(&mut answer).await;
    assert!(
        matches!(got[0].outcome, Some(Outcome::Failed(Failure::Attempts(_)))),
        "{got:?}"
    );
    cluster.quiesce().await;
    let wanted = job(2, 5, 5);
    let mut answer = cluster.submit(wanted.clone()).await;
    let tokens = expected(&cluster.setup.mock, &wanted, 0);
    assert_eq!(finish(&mut answer).await, [completed(tokens)]);
    cluster.quiesce().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_cannot_be_built_ends_the_node_in_the_end() {
    let builds = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&builds);
    let mut node = Node::start().await.unwrap();
    let build = move |_: Role| match counted.fetch_add(1, Ordering::SeqCst) {
        0 => panic!("a test's panic"),
        n => Err(format!("a test's refusal {n}")),
    };
    node.pool("w".into(), Role::Mixed, Arc::new(build)).await.unwrap();
    let again = async {
        while builds.load(Ordering::SeqCst) < 4 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        why = node.ended() => panic!("a panic while building is a failure like any other: {why}"),
        tried = tokio::time::timeout(PATIENCE, again) => tried.unwrap(),
    }
}

/// It has no rooms, and nothing waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_still_built_holds_up_no_drain() {
    let mut node = Node::start().await.unwrap();
    let (release, released) = std::sync::mpsc::sync_channel::<()>(1);
    let released = Mutex::new(released);
    let build = move |_: Role| {
        let _ = released.lock().unwrap().recv_timeout(PATIENCE * 2);
        Err("a test's refusal".to_owned())
    };
    node.pool("w".into(), Role::Mixed, Arc::new(build)).await.unwrap();
    assert!(node.drain_within(PATIENCE).await);
    node.leave().await;
    drop(release);
}
