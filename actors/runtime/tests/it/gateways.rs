//! Several gateways share workers, and know nothing of each other.

use std::sync::Arc;

use mesh::{DevCa, Fault};
use room::{Failure, Outcome, PhaseKind};
use runtime::{GatewayHandle, Node};
use tokio::runtime::Runtime;
use wire::Kind;

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

/// Our room is held in `phase` at the last worker, the other's is reserved there and hears of nothing, when the other gateway dies.
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
    let has_stays = |c: &Cluster, stays: u32| {
        let last = c.linked_as(c.workers.len() - 1);
        last.is_some_and(|worker| worker.peer.stats.slots_used == stays)
    };
    last.gate.close_after(0);
    let wanted = job(2, 7, 40);
    let mut ours = cluster.submit(wanted.clone()).await;
    let what = format!("ours is {phase}");
    cluster.until(&what, |c| c.is_in(ours.rooms()[0], phase)).await;
    last.faults.set(Kind::Reserved, Some(Fault::Drop));
    let mut orphan = other.gateway.submit(job(1, 9, 40)).await.unwrap();
    cluster.until("both have stays", |c| has_stays(c, 2)).await;
    other.runtime.shutdown_background();
    // Nobody is left to end the other's room: the end of its lease does.
    cluster.until("only ours has one", |c| has_stays(c, 1)).await;
    let ends = finish(&mut orphan).await;
    assert_eq!(ends[0].outcome, Some(Outcome::Failed(Failure::OwnerLost)));
    cluster.heal();
    let tokens = expected(&cluster.setup.mock, &wanted, 0);
    assert_eq!(finish(&mut ours).await, [completed(tokens)]);
    cluster.quiesce().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_dies_and_its_leases_end() {
    check(Setup::pair(), PhaseKind::Decoding).await;
    check(Setup::mixed(), PhaseKind::Prefilling).await;
}
