//! The actor that owns a request dies, or hangs: an heir drains its rooms, and the client gets exactly one terminal event.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use room::{Failure, Finish, Outcome, PhaseKind};
use runtime::{Poison, Refused};

use crate::cluster::{Cluster, OF_A_PAIR, Setup, Stuck, finish, job};

async fn check(setup: Setup, phase: PhaseKind, poison: Poison, outcome: Outcome) {
    let mut wanted = job(1, 21, 30);
    wanted.timeout = Duration::from_millis(2_500);
    let mut stuck = Stuck::reach(setup, phase, wanted).await;
    stuck.answer.poison(poison);
    let got = finish(&mut stuck.answer).await;
    assert_eq!(got[0].outcome, Some(outcome), "in {phase}");
    if phase == PhaseKind::Reserving {
        // Nothing but the heir ends this stay.
        stuck.cluster.quiesce().await;
    }
    stuck.heal();
    stuck.cluster.quiesce().await;
    let counts = stuck.cluster.gateway.counts();
    assert_eq!(counts.outcomes.values().sum::<u64>(), counts.opened, "INV-03");
}

const LOST: Outcome = Outcome::Failed(Failure::OwnerLost);

#[tokio::test(flavor = "multi_thread")]
async fn it_panics_in_any_phase() {
    for phase in OF_A_PAIR {
        check(Setup::pair(), phase, Poison::Panic, LOST).await;
    }
    check(Setup::mixed(), PhaseKind::Decoding, Poison::Panic, LOST).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_panics_after_the_answer() {
    let whole = Outcome::Completed(Finish::Length);
    check(Setup::pair(), PhaseKind::Draining, Poison::Panic, whole).await;
}

/// Its rooms are drained while it hangs; when it comes back it changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_hangs() {
    for phase in [PhaseKind::Prefilling, PhaseKind::Decoding] {
        let barrier = Arc::new(Barrier::new(2));
        let hang = Poison::Hang(Arc::clone(&barrier));
        let mut wanted = job(1, 21, 30);
        wanted.timeout = Duration::from_millis(1_500);
        let mut stuck = Stuck::reach(Setup::pair(), phase, wanted).await;
        stuck.answer.poison(hang);
        let got = finish(&mut stuck.answer).await;
        assert_eq!(got[0].outcome, Some(LOST), "in {phase}");
        stuck.heal();
        stuck.cluster.quiesce().await;
        let counts = stuck.cluster.gateway.counts();
        barrier.wait();
        stuck.cluster.quiesce().await;
        assert_eq!(stuck.cluster.gateway.counts().outcomes, counts.outcomes);
    }
}

/// Heirs that panic too; whether the workers had to be fenced in the end.
async fn check_heirs(at_birth: u32, after_birth: u32, buried: bool) {
    let mut stuck = Stuck::reach(Setup::pair(), PhaseKind::Decoding, job(1, 21, 30)).await;
    stuck.cluster.gateway.doom(at_birth, after_birth);
    stuck.answer.poison(Poison::Panic);
    let got = finish(&mut stuck.answer).await;
    assert_eq!(got[0].outcome, Some(LOST));
    stuck.heal();
    stuck.cluster.quiesce().await;
    let room = stuck.answer.rooms()[0];
    let view = stuck.cluster.ended(room).unwrap();
    assert_eq!(view.outcome, Some(LOST));
    assert_eq!(stuck.cluster.gateway.counts().outcomes.values().sum::<u64>(), 1);
    assert_eq!(stuck.cluster.gateway.counts().buried > 0, buried);
}

#[tokio::test(flavor = "multi_thread")]
async fn heirs_die_as_well() {
    check_heirs(0, 2, false).await;
    check_heirs(0, 9, true).await;
    check_heirs(1, 0, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_siblings_are_told() {
    let mut wanted = job(1, 6, 30);
    wanted.n = 3;
    let mut stuck = Stuck::reach(Setup::pair(), PhaseKind::Decoding, wanted).await;
    stuck.answer.poison(Poison::Panic);
    let got = finish(&mut stuck.answer).await;
    // The first that is answered ends the others as its siblings.
    assert!(got.iter().any(|got| got.outcome == Some(LOST)), "{got:?}");
    stuck.heal();
    stuck.cluster.quiesce().await;
}

/// Nothing is left of a request that never had an owner, and its rooms have an outcome like any other.
#[tokio::test(flavor = "multi_thread")]
async fn no_owner_can_be_started() {
    let cluster = Cluster::start(Setup::pair()).await;
    cluster.gateway.doom(1, 0);
    let mut wanted = job(1, 6, 30);
    wanted.n = 3;
    let refused = cluster.gateway.submit(wanted).await.err();
    assert_eq!(refused, Some(Refused::NotStarted));
    let counts = cluster.gateway.counts();
    assert_eq!((counts.opened, counts.outcomes.values().sum()), (3, 3), "INV-03");
    cluster.quiesce().await;
    let mut answer = cluster.submit(job(2, 6, 5)).await;
    let whole = Some(Outcome::Completed(Finish::Length));
    assert_eq!(finish(&mut answer).await[0].outcome, whole);
    cluster.quiesce().await;
}
