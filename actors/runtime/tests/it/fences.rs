//! Leases that are not returned as they should be: every Close lost, and a worker that never lets go.

use mesh::Fault;
use room::{AbortBy, Finish, Outcome, PhaseKind, Span};
use wire::Kind;

use crate::cluster::{Cluster, Setup, Stuck, aborted, completed, expected, finish, job};

#[tokio::test(flavor = "multi_thread")]
async fn every_close_is_lost() {
    for setup in [Setup::mixed(), Setup::pair()] {
        let mut setup = setup;
        setup.limits.drain_overdue = Span::from_millis(200);
        let mut stuck = Stuck::reach(setup, PhaseKind::Decoding, job(1, 9, 40)).await;
        let lost = [Kind::Close, Kind::Release];
        for kind in lost {
            stuck.cluster.faults.set(kind, Some(Fault::Drop));
        }
        assert!(stuck.cluster.gateway.abort(stuck.answer.rooms()[0]));
        let got = finish(&mut stuck.answer).await;
        assert_eq!(got[0].outcome, Some(aborted(AbortBy::Operator)), "at once");
        // Its engine is in the middle of a step: nothing can come back yet.
        let overdue = |c: &Cluster| c.gateway.counts().drains_overdue > 0;
        stuck
            .cluster
            .until("the supervisor's timers saw it", overdue)
            .await;
        let hits = stuck.cluster.faults.hits();
        assert!(hits > 1, "Close is repeated");
        // All is well but the orders to close, which stay lost: the digest is what closes.
        for worker in &stuck.cluster.workers {
            worker.gate.open();
        }
        stuck.cluster.quiesce().await;
        assert_eq!(stuck.cluster.gateway.counts().fences, 0);
        assert!(stuck.cluster.heard.healed() > 0);
    }
}

/// A stay that nothing else would end.
#[tokio::test(flavor = "multi_thread")]
async fn every_close_is_lost_and_the_digest_closes() {
    for setup in [Setup::mixed(), Setup::pair()] {
        let stuck = Stuck::reach(setup, PhaseKind::Reserving, job(1, 9, 40)).await;
        stuck.cluster.faults.set(Kind::Close, Some(Fault::Drop));
        drop(stuck.answer);
        stuck.cluster.quiesce().await;
        assert!(stuck.cluster.faults.hits() > 0);
        assert!(stuck.cluster.heard.healed() > 0);
        stuck.cluster.heal();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_proof_is_lost() {
    let cluster = Cluster::start(Setup::pair()).await;
    for worker in &cluster.workers {
        worker.faults.set(Kind::Closed, Some(Fault::Drop));
    }
    let wanted = job(1, 9, 10);
    let mut answer = cluster.submit(wanted.clone()).await;
    let tokens = expected(&cluster.setup.mock, &wanted, 0);
    assert_eq!(finish(&mut answer).await, [completed(tokens)]);
    cluster.quiesce().await;
    assert_eq!(cluster.gateway.counts().fences, 0);
    assert!(cluster.heard.healed() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_never_lets_go_is_fenced() {
    let mut setup = Setup::pair();
    setup.limits.drain_fence = Span::from_millis(300);
    setup.limits.drain_max = Span::from_millis(600);
    let mut stuck = Stuck::reach(setup, PhaseKind::Draining, job(1, 9, 10)).await;
    let got = finish(&mut stuck.answer).await;
    assert_eq!(got[0].outcome, Some(Outcome::Completed(Finish::Length)));
    let room = stuck.answer.rooms()[0];
    let is_over = |c: &Cluster| c.ended(room).is_some();
    stuck.cluster.until("the fence ends the room", is_over).await;
    assert!(stuck.cluster.gateway.counts().fences > 0);
    // Its blocks stay away from everybody until the transfer lets go of them.
    let quarantined = |c: &Cluster| {
        let prefill = c.linked_as(0);
        prefill.is_some_and(|worker| worker.peer.stats.blocks_quarantined > 0)
    };
    stuck.cluster.until("it is linked again", quarantined).await;
    stuck.heal();
    stuck.cluster.quiesce().await;
}
