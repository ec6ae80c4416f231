//! What operators want of a worker: it is the worker's own state, told to all its gateways, and its role can change while it runs.

use std::sync::Arc;
use std::time::Duration;

use mesh::DevCa;
use room::{Failure, NodeId, Outcome, PhaseKind, Span};
use runtime::{GatewayHandle, LocalWorker, OrderError};
use wire::{Order, Role};

use crate::cluster::{Cluster, PATIENCE, Setup, Stuck, completed, expected, finish, job};

fn local(cluster: &Cluster, place: usize) -> LocalWorker {
    cluster.node.workers().all().swap_remove(place)
}

fn drains(gateway: &GatewayHandle, name: &str) -> bool {
    let workers = gateway.workers();
    workers
        .iter()
        .any(|worker| worker.peer.name == name && worker.peer.is_draining())
}

async fn outcome(cluster: &Cluster, seed: u32) -> Option<Outcome> {
    let mut answer = cluster.submit(job(seed, 5, 5)).await;
    finish(&mut answer).await[0].outcome
}

/// Role and incarnation of what is linked under a worker's name, once it takes rooms.
fn stands(cluster: &Cluster, place: usize) -> Option<(Role, NodeId)> {
    let worker = cluster.linked_as(place)?;
    (!worker.peer.is_draining()).then_some((worker.peer.role, worker.peer.node))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_worker_finishes_what_it_has_and_takes_rooms_again() {
    let mut setup = Setup::pair();
    setup.desk.no_worker_grace = Span::from_millis(100);
    let wanted = job(1, 5, 20);
    let mut stuck = Stuck::reach(setup, PhaseKind::Decoding, wanted.clone()).await;
    let c = &stuck.cluster;
    let node = c.linked_as(1).unwrap().peer.node;
    c.gateway.order("worker-1", Order::Drain).await.unwrap();
    assert!(drains(&c.gateway, "worker-1"), "known before the answer is");
    assert!(local(c, 1).is_drained());
    assert!(c.gateway.ready().is_err());
    assert_eq!(outcome(c, 2).await, Some(Outcome::Failed(Failure::NoWorker)));
    assert_eq!(c.gateway.counts().retries, 0, "nobody was asked in vain");
    c.gateway.order("worker-1", Order::Drain).await.unwrap();

    stuck.heal();
    let tokens = expected(&stuck.cluster.setup.mock, &wanted, 0);
    assert_eq!(finish(&mut stuck.answer).await, [completed(tokens)]);
    let c = &stuck.cluster;
    c.quiesce().await;
    c.gateway.order("worker-1", Order::Undrain).await.unwrap();
    c.until("it takes rooms", |c| stands(c, 1).is_some()).await;
    assert!(!local(c, 1).is_drained());
    assert_eq!(
        stands(c, 1),
        Some((Role::Decode, node)),
        "all the same incarnation"
    );
    assert!(matches!(outcome(c, 3).await, Some(Outcome::Completed(_))));
    c.quiesce().await;

    let nobody = c.gateway.order("nobody", Order::Drain).await;
    assert_eq!(nobody, Err(OrderError::NotLinked));
}

/// Whoever drains it, and whichever gateway looks.
#[tokio::test(flavor = "multi_thread")]
async fn a_drain_is_told_to_all_gateways() {
    let setup = Setup::pair();
    let ca = Arc::new(DevCa::new().unwrap());
    let (spec, target) = setup.gateway(&ca, &Arc::default());
    let mut node = runtime::Node::start().await.unwrap();
    let other = node.gateway(spec).await.unwrap();
    let c = Cluster::start_beside(setup, &ca, vec![target]).await;
    c.until("the other has both", |_| other.workers().len() == 2)
        .await;
    let both = |c: &Cluster| [&c.gateway, &other].map(|gateway| drains(gateway, "worker-0"));
    c.gateway.order("worker-0", Order::Drain).await.unwrap();
    c.until("both know", |c| both(c) == [true, true]).await;
    local(&c, 0).order(Order::Undrain).await.unwrap();
    c.until("both know better", |c| both(c) == [false, false]).await;
    c.quiesce().await;
    drop(node);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefill_worker_becomes_one_of_decode_and_streams_go_on() {
    let setup = Setup::of(&[Role::Prefill, Role::Prefill, Role::Decode]);
    let c = Cluster::start(setup).await;
    let (_, before) = stands(&c, 0).unwrap();
    // It goes on until the worker has changed.
    c.workers[2].gate.close_after(2);
    let wanted = job(1, 5, 40);
    let mut stream = c.submit(wanted.clone()).await;
    let room = stream.rooms()[0];
    c.until("it streams", |c| c.is_in(room, PhaseKind::Decoding))
        .await;

    let within_ms = 60_000;
    let role = Role::Decode;
    c.gateway
        .order("worker-0", Order::Role { role, within_ms })
        .await
        .unwrap();
    let is_back =
        |c: &Cluster| stands(c, 0).is_some_and(|(role, node)| role == Role::Decode && node > before);
    c.until("it is back", is_back).await;
    assert_eq!(c.workers[0].incarnations(), 2);
    let counted = c.gateway.counts();
    assert_eq!(counted.retries, 0, "nobody lost anything by it");

    // What the first decode worker, which is held, cannot answer.
    for seed in 2..6 {
        assert!(matches!(outcome(&c, seed).await, Some(Outcome::Completed(_))));
    }
    c.workers[2].gate.open();
    let tokens = expected(&c.setup.mock, &wanted, 0);
    assert_eq!(finish(&mut stream).await, [completed(tokens)]);
    c.quiesce().await;
    let role = Role::Decode;
    c.gateway
        .order("worker-0", Order::Role { role, within_ms })
        .await
        .unwrap();
    assert_eq!(c.workers[0].incarnations(), 2, "it is that already");
}

/// The room has been there for too long: it goes on elsewhere, and nothing is lost.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_when_a_role_changes_goes_on_elsewhere() {
    let setup = Setup::of(&[Role::Prefill, Role::Decode]);
    let wanted = job(1, 5, 20);
    let mut stuck = Stuck::reach(setup, PhaseKind::Decoding, wanted.clone()).await;
    let c = &stuck.cluster;
    let (role, within_ms) = (Role::Mixed, 50);
    let order = Order::Role { role, within_ms };
    let worker = local(c, 1);
    let (one, other) = tokio::join!(worker.order(order), worker.order(order));
    let refused = one.err().xor(other.err());
    assert!(refused.is_some_and(|why| why.contains("mixed already")));
    let is_back = |c: &Cluster| stands(c, 1).is_some_and(|(role, _)| role == Role::Mixed);
    c.until("it is back", is_back).await;
    stuck.heal();
    let tokens = expected(&stuck.cluster.setup.mock, &wanted, 0);
    assert_eq!(finish(&mut stuck.answer).await, [completed(tokens)]);
    stuck.cluster.quiesce().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_worker_is_drained_in_its_new_role_too_until_its_process_stops() {
    let c = Cluster::start(Setup::of(&[Role::Mixed, Role::Mixed])).await;
    let worker = local(&c, 1);
    worker.order(Order::Drain).await.unwrap();
    let (role, within_ms) = (Role::Prefill, 60_000);
    worker.order(Order::Role { role, within_ms }).await.unwrap();
    let is_back = |c: &Cluster| c.linked_as(1).is_some_and(|worker| worker.peer.role == role);
    c.until("it is back", is_back).await;
    assert!(worker.is_drained() && drains(&c.gateway, "worker-1"));
    assert!(matches!(outcome(&c, 1).await, Some(Outcome::Completed(_))));
    c.quiesce().await;

    assert!(c.node.drain_within(PATIENCE).await);
    for order in [
        Order::Undrain,
        Order::Role {
            role: Role::Decode,
            within_ms,
        },
    ] {
        let refused = worker.order(order).await;
        assert!(
            refused.is_err_and(|why| why.contains("process stops")),
            "{order:?}"
        );
    }
    tokio::time::timeout(Duration::from_secs(30), c.node.leave())
        .await
        .unwrap();
}
