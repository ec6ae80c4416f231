//! Many clients that leave at random moments, under each fault of the links that repeats or loses one kind of message.

use std::time::Duration;

use mesh::Fault;
use room::{Failure, Outcome};
use runtime::{AnswerEvent, GatewayHandle, Job, Poison};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use wire::{Kind, Role};

use crate::cluster::{Cluster, PATIENCE, Setup, completed, expected, finish, job};

/// A number that looks random, a function of its seed.
fn number(seed: u32, below: u32) -> u32 {
    let mixed = (u64::from(seed) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    u32::try_from(mixed % u64::from(below)).unwrap()
}

/// One client: four in five leave, after a while or after some tokens; the fifth reads to the end.
async fn client(gateway: GatewayHandle, mock: mock::MockConfig, wanted: Job, seed: u32, poisonous: bool) {
    sleep(Duration::from_millis(u64::from(number(seed * 3, 400)))).await;
    let mut answer = gateway.submit(wanted.clone()).await.unwrap();
    let leaves_at = Duration::from_micros(u64::from(number(seed * 5, 30_000)));
    match seed % 5 {
        0 => {
            let tokens = expected(&mock, &wanted, 0);
            assert_eq!(finish(&mut answer).await, [completed(tokens)], "INV-06");
        }
        1 | 2 => {
            let mut left = number(seed * 7, 12);
            while let Ok(Some(AnswerEvent::Tokens { .. })) = timeout(PATIENCE, answer.next()).await {
                left = left.saturating_sub(1);
                if left == 0 {
                    break;
                }
            }
        }
        3 if poisonous => {
            sleep(leaves_at).await;
            answer.poison(Poison::Panic);
            let got = finish(&mut answer).await;
            let outcome = got[0].outcome.unwrap();
            assert!(
                matches!(outcome, Outcome::Completed(_)) || outcome == LOST,
                "{outcome:?}"
            );
        }
        _ => {
            let _ = timeout(leaves_at, finish(&mut answer)).await;
        }
    }
}

const LOST: Outcome = Outcome::Failed(Failure::OwnerLost);

async fn check(setup: Setup, clients: u32, faults: &[(Kind, Fault)], poisonous: bool) {
    let mut setup = setup;
    setup.mock.latency.step_micros = 300;
    let cluster = Cluster::start(setup).await;
    for (kind, fault) in faults {
        cluster.faults.set(*kind, Some(*fault));
        for worker in &cluster.workers {
            worker.faults.set(*kind, Some(*fault));
        }
    }
    let mut running = JoinSet::new();
    for seed in 0..clients {
        let wanted = job(seed, 1 + number(seed, 30), 1 + number(seed * 11, 25));
        let mock = cluster.setup.mock.clone();
        running.spawn(client(cluster.gateway.clone(), mock, wanted, seed, poisonous));
    }
    while let Some(ended) = running.join_next().await {
        ended.unwrap();
    }
    cluster.quiesce().await;
    let counts = cluster.gateway.counts();
    assert_eq!(counts.opened, u64::from(clients));
    assert_eq!(
        counts.outcomes.values().sum::<u64>(),
        u64::from(clients),
        "INV-03: {counts:?}"
    );
    assert_eq!(counts.fences, 0, "nobody had to be fenced");
}

fn of_all_roles() -> Setup {
    Setup::of(&[Role::Prefill, Role::Decode, Role::Decode, Role::Mixed])
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_clients() {
    check(of_all_roles(), 500, &[], false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_message_comes_twice() {
    let twice = [
        Kind::Reserve,
        Kind::Prefill,
        Kind::Pull,
        Kind::Release,
        Kind::Close,
        Kind::Reserved,
        Kind::Tokens,
        Kind::Published,
        Kind::Pulled,
        Kind::Closed,
        Kind::Failed,
    ];
    let faults = twice.map(|kind| (kind, Fault::Duplicate));
    check(of_all_roles(), 120, &faults, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_close_and_every_proof_is_lost() {
    let lost = [Kind::Close, Kind::Release, Kind::Closed];
    let faults = lost.map(|kind| (kind, Fault::Drop));
    check(of_all_roles(), 120, &faults, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ends_leases_comes_late() {
    let late = [Kind::Release, Kind::Close, Kind::Closed];
    let faults = late.map(|kind| (kind, Fault::Delay(Duration::from_millis(60))));
    check(of_all_roles(), 120, &faults, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_panic() {
    check(of_all_roles(), 200, &[], true).await;
}

/// Pools that two long rooms fill, and an engine at each worker that fails once.
#[tokio::test(flavor = "multi_thread")]
async fn room_is_short_and_engines_fail() {
    let mut setup = of_all_roles();
    setup.mock.shape.blocks = 28;
    setup.desk.promised_answer_tokens = 1;
    setup.limits.max_faults = 9;
    setup.engine_faults = |place, incarnation| match (place % 2, incarnation) {
        (0, 0) => mock::Faults {
            fail_at_step: Some(40),
            ..mock::Faults::default()
        },
        (1, 0) => mock::Faults {
            panic_at_step: Some(60),
            ..mock::Faults::default()
        },
        _ => mock::Faults::default(),
    };
    check(setup, 200, &[], true).await;
}

/// Refusals and evictions, while the digest alone closes what they leave.
#[tokio::test(flavor = "multi_thread")]
async fn room_is_short_and_every_close_is_lost() {
    let mut setup = of_all_roles();
    setup.mock.shape.blocks = 28;
    setup.desk.promised_answer_tokens = 1;
    let lost = [Kind::Close, Kind::Release, Kind::Closed];
    let faults = lost.map(|kind| (kind, Fault::Drop));
    check(setup, 120, &faults, false).await;
}
