//! A worker falls silent: its rooms go on elsewhere, or on it once it is back, with nothing lost and nothing repeated.

use room::{Finish, Outcome, PhaseKind, WaitsFor};
use runtime::Answer;
use wire::Role;

use crate::cluster::{Cluster, Setup, completed, expected, finish, job, next_tokens};

impl Cluster {
    /// The place of the worker that the room waits for.
    fn waits_for(&self, answer: &Answer) -> usize {
        let view = self.room(answer.rooms()[0]).unwrap();
        let (WaitsFor::Token { worker } | WaitsFor::Prompt { worker, .. }) = view.waits_for else {
            panic!("{view:?}");
        };
        let worker = self
            .linked()
            .into_iter()
            .find(|linked| linked.peer.node == worker);
        let name = worker.unwrap().peer.name;
        self.workers
            .iter()
            .find(|worker| worker.name == name)
            .unwrap()
            .place
    }

    fn close_gates_after(&self, role: Role, steps: u64) {
        for worker in &self.workers {
            if self.setup.roles[worker.place] == role {
                worker.gate.close_after(steps);
            }
        }
    }
}

/// The worker that a room is at, in `phase`, falls silent while its engine is held after so many steps.
async fn check(roles: &[Role], at: Role, phase: PhaseKind, steps: u64) {
    check_cut(roles, at, phase, steps, (true, true)).await;
}

/// What it says is lost, or what is said to it, or both.
async fn check_cut(roles: &[Role], at: Role, phase: PhaseKind, steps: u64, (out, into): (bool, bool)) {
    let cluster = Cluster::start(Setup::of(roles)).await;
    let wanted = job(3, 18, 40);
    cluster.close_gates_after(at, steps);
    let mut answer = cluster.submit(wanted.clone()).await;
    let room = answer.rooms()[0];
    let mut tokens = Vec::new();
    if phase == PhaseKind::Decoding {
        tokens.extend(next_tokens(&mut answer).await);
    }
    cluster.until("it is there", |c| c.is_in(room, phase)).await;
    let place = cluster.waits_for(&answer);
    cluster.workers[place].faults.cut(out, into);
    cluster
        .until("another attempt", |c| {
            c.room(room).is_some_and(|view| view.generation > 1)
        })
        .await;
    cluster.heal();
    let got = finish(&mut answer).await;
    tokens.extend(&got[0].tokens);
    let all = expected(&cluster.setup.mock, &wanted, 0);
    assert_eq!(completed(tokens), completed(all), "INV-06");
    assert_eq!(got[0].outcome, Some(Outcome::Completed(Finish::Length)));
    assert!(cluster.gateway.counts().retries > 0);
    cluster.quiesce().await;
    assert_eq!(cluster.workers[place].incarnations(), 1, "a link is no worker");
}

#[tokio::test(flavor = "multi_thread")]
async fn decode_falls_silent_and_another_is_there() {
    check(
        &[Role::Prefill, Role::Decode, Role::Decode],
        Role::Decode,
        PhaseKind::Decoding,
        3,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mixed_falls_silent_and_another_is_there() {
    check(&[Role::Mixed, Role::Mixed], Role::Mixed, PhaseKind::Decoding, 6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prefill_falls_silent_and_another_is_there() {
    check(
        &[Role::Prefill, Role::Prefill, Role::Decode],
        Role::Prefill,
        PhaseKind::Prefilling,
        1,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_only_decode_falls_silent_and_comes_back() {
    check(
        &[Role::Prefill, Role::Decode],
        Role::Decode,
        PhaseKind::Decoding,
        3,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_only_mixed_falls_silent_and_comes_back() {
    check(&[Role::Mixed], Role::Mixed, PhaseKind::Decoding, 6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn decode_hears_and_says_nothing() {
    let roles = [Role::Prefill, Role::Decode, Role::Decode];
    check_cut(&roles, Role::Decode, PhaseKind::Decoding, 3, (true, false)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn decode_speaks_and_hears_nothing() {
    let roles = [Role::Prefill, Role::Decode, Role::Decode];
    check_cut(&roles, Role::Decode, PhaseKind::Decoding, 3, (false, true)).await;
}
