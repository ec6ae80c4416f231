//! Several gateways share workers, and know nothing of each other.

use std::sync::Arc;
use std::time::Duration;

use mesh::{DevCa, Fault};
use room::{AbortBy, Failure, Outcome, PhaseKind};
use runtime::{Bookkeeping, GatewayHandle, Node, Refused};
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};
use wire::Kind;

use crate::cluster::{Cluster, PATIENCE, Setup, Stuck, completed, expected, finish, job};

/// A second gateway, in a runtime of its own.
struct Other {
    runtime: Runtime,
    node: Node,
    gateway: GatewayHandle,
}

/// How it goes.
#[derive(Copy, Clone)]
enum End {
    /// With its runtime: nobody hears of it.
    Dies,
    /// In order.
    Leaves,
}

impl Other {
    fn start(setup: &Setup, ca: &DevCa) -> (Self, mesh::Target) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (node, gateway, target) = runtime.block_on(async {
            let (spec, target) = setup.gateway(ca, &Arc::default());
            let mut node = Node::start().await.unwrap();
            let gateway = node.gateway(spec).await.unwrap();
            (node, gateway, target)
        });
        let other = Self {
            runtime,
            node,
            gateway,
        };
        (other, target)
    }

    /// Blocks.
    fn end(self, how: End) {
        if let End::Leaves = how {
            self.runtime.block_on(async {
                self.node.leave().await;
                let empty = async {
                    while self.gateway.bookkeeping() != Bookkeeping::default() {
                        sleep(Duration::from_millis(2)).await;
                    }
                };
                timeout(PATIENCE, empty).await.unwrap();
                assert!(self.gateway.workers().is_empty());
                let refused = self.gateway.submit(job(3, 3, 3)).await.err();
                assert_eq!(refused, Some(Refused::ShuttingDown));
            });
        }
        self.runtime.shutdown_background();
    }
}

/// Our room is held in `phase` at the last worker, the other's is reserved there and hears of nothing, when the other gateway ends.
async fn check(setup: Setup, phase: PhaseKind, how: End) {
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
    let others_end = match how {
        End::Dies => Outcome::Failed(Failure::OwnerLost),
        End::Leaves => Outcome::Aborted(AbortBy::Shutdown),
    };
    tokio::task::spawn_blocking(move || other.end(how)).await.unwrap();
    // Nobody is left to end the other's room: the end of its lease does, or of its link.
    cluster.until("only ours has one", |c| has_stays(c, 1)).await;
    let ends = finish(&mut orphan).await;
    assert_eq!(ends[0].outcome, Some(others_end));
    cluster.heal();
    let tokens = expected(&cluster.setup.mock, &wanted, 0);
    assert_eq!(finish(&mut ours).await, [completed(tokens)]);
    cluster.quiesce().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_dies_and_its_leases_end() {
    check(Setup::pair(), PhaseKind::Decoding, End::Dies).await;
    check(Setup::mixed(), PhaseKind::Prefilling, End::Dies).await;
}

/// Its leases are far longer than this test's patience.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_leaves_gives_its_rooms_back_at_once() {
    for (mut setup, phase) in [
        (Setup::pair(), PhaseKind::Decoding),
        (Setup::mixed(), PhaseKind::Prefilling),
    ] {
        setup.lease = PATIENCE * 9;
        check(setup, phase, End::Leaves).await;
    }
}

/// Whoever drops a node ends what is beneath it.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_dropped_serves_no_more() {
    let stuck = Stuck::reach(Setup::pair(), PhaseKind::Decoding, job(1, 5, 20)).await;
    let gateway = stuck.cluster.gateway.clone();
    let Stuck {
        cluster, mut answer, ..
    } = stuck;
    let workers = cluster.workers.clone();
    drop(cluster);
    let ends = finish(&mut answer).await;
    assert_eq!(ends[0].outcome, Some(Outcome::Failed(Failure::OwnerLost)));
    let refused = gateway.submit(job(2, 5, 5)).await.err();
    assert_eq!(refused, Some(Refused::ShuttingDown));
    workers.iter().for_each(|worker| worker.gate.open());
}
