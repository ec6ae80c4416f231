//! Several gateways share workers, and know nothing of each other.

use std::sync::Arc;

use mesh::DevCa;
use room::{Failure, Outcome, PhaseKind};
use runtime::{GatewayHandle, Node};
use tokio::runtime::Runtime;

use crate::cluster::{Cluster, Setup, completed, expected, finish, job};

/// A second gateway, which dies with its runtime.
struct Other {
    runtime: Runtime,
    gateway: GatewayHandle,
}

impl Other {
    fn start(setup: &Setup, ca: &DevCa) -> (Self, mesh::Target) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (gateway, target) = runtime.block_on(async {
            let (spec, target) = setup.gateway(ca, &Arc::default());
            let mut node = Node::start().await.unwrap();
            (node.gateway(spec).await.unwrap(), target)
        });
        (Self { runtime, gateway }, target)
    }
}

/// Each gateway has a room in `phase` at the last worker when the other one dies.
async fn check(setup: Setup, phase: PhaseKind) {
    let ca = Arc::new(DevCa::new().unwrap());
    let of_other = setup.clone();
    let (other, target) = tokio::task::spawn_blocking({
        let ca = Arc::clone(&ca);
        move || Other::start(&of_other, &ca)
    })
    .await
    .unwrap();
    let cluster = Cluster::start_beside(setup, &ca, vec![target]).await;
    cluster
        .until("the other has all workers", |c| {
            other.gateway.workers().len() == c.workers.len()
        })
        .await;

    let last = cluster.workers.last().unwrap();
    last.gate.close_after(0);
    let wanted = job(2, 7, 40);
    let mut ours = cluster.submit(wanted.clone()).await;
    let mut orphan = other.gateway.submit(job(1, 9, 40)).await.unwrap();
    cluster
        .until("both are at it", |c| {
            let theirs = other.gateway.rooms();
            c.is_in(ours.rooms()[0], phase) && theirs.iter().all(|view| view.phase == phase)
        })
        .await;
    other.runtime.shutdown_background();
    cluster.heal();
    let tokens = expected(&cluster.setup.mock, &wanted, 0);
    assert_eq!(finish(&mut ours).await, [completed(tokens)]);
    // Nobody is left to end the other's room: its lease does.
    cluster.quiesce().await;
    let ends = finish(&mut orphan).await;
    assert_eq!(ends[0].outcome, Some(Outcome::Failed(Failure::OwnerLost)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_dies_and_its_leases_end() {
    check(Setup::pair(), PhaseKind::Decoding).await;
    check(Setup::mixed(), PhaseKind::Prefilling).await;
}
