//! The request's deadline ends it in every phase, and says in which.

use std::time::Duration;

use room::{Outcome, PhaseKind};

use crate::cluster::{OF_A_PAIR, Setup, Stuck, finish, job};

async fn check(setup: Setup, phase: PhaseKind) {
    let mut wanted = job(1, 21, 30);
    wanted.timeout = Duration::from_millis(1_500);
    let mut stuck = Stuck::reach(setup, phase, wanted).await;
    let got = finish(&mut stuck.answer).await;
    assert_eq!(got[0].outcome, Some(Outcome::Expired(stuck.phase)));
    stuck.heal();
    stuck.cluster.quiesce().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_every_phase_of_a_pair() {
    let checks = OF_A_PAIR.map(|phase| tokio::spawn(check(Setup::pair(), phase)));
    for checked in checks {
        checked.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_every_phase_of_a_mixed_worker() {
    let phases = [PhaseKind::Queued, PhaseKind::Prefilling, PhaseKind::Decoding];
    let checks = phases.map(|phase| tokio::spawn(check(Setup::mixed(), phase)));
    for checked in checks {
        checked.await.unwrap();
    }
}
