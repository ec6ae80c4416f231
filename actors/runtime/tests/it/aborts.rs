//! Nobody wants the answer any more: in every phase the client hears at once, and everything comes back.

use room::{AbortBy, Finish, NodeId, Outcome, PhaseKind, RoomId};

use crate::cluster::{OF_A_PAIR, Setup, Stuck, aborted, finish, job};

/// The client leaves.
async fn check_leaves(setup: Setup, phase: PhaseKind) {
    let mut stuck = Stuck::reach(setup, phase, job(1, 21, 30)).await;
    let room = stuck.answer.rooms()[0];
    let Stuck { cluster, answer, .. } = &mut stuck;
    let bystander = cluster.submit(job(2, 3, 3)).await;
    drop(std::mem::replace(answer, bystander));
    let outcome = Some(aborted(AbortBy::ClientGone));
    // Fixed while what holds the room still holds it.
    cluster
        .until("the outcome is fixed", |c| {
            let view = c.room(room).or_else(|| c.ended(room));
            view.is_some_and(|view| view.outcome == outcome)
        })
        .await;
    stuck.heal();
    let got = finish(&mut stuck.answer).await;
    assert_eq!(
        got[0].outcome,
        Some(Outcome::Completed(Finish::Length)),
        "after {phase}"
    );
    stuck.cluster.quiesce().await;
}

/// An operator ends it: the client hears while what holds the room still holds it.
async fn check_operator(setup: Setup, phase: PhaseKind, outcome: Outcome) {
    let mut stuck = Stuck::reach(setup, phase, job(1, 21, 30)).await;
    let room = stuck.answer.rooms()[0];
    let namesake = RoomId {
        gateway: NodeId(room.gateway.0 - 1),
        ..room
    };
    assert!(
        !stuck.cluster.gateway.abort(namesake),
        "of an earlier incarnation"
    );
    assert!(stuck.cluster.gateway.abort(room));
    let got = finish(&mut stuck.answer).await;
    assert_eq!(got[0].outcome, Some(outcome), "in {phase}");
    stuck.heal();
    stuck.cluster.quiesce().await;
    assert!(!stuck.cluster.gateway.abort(room), "it has ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_leaves_in_every_phase_of_a_pair() {
    for phase in OF_A_PAIR {
        check_leaves(Setup::pair(), phase).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_leaves_in_every_phase_of_a_mixed_worker() {
    for phase in OF_A_PAIR.into_iter().filter(|phase| *phase != PhaseKind::Pulling) {
        check_leaves(Setup::mixed(), phase).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_ends_a_room_in_every_phase() {
    for phase in OF_A_PAIR {
        check_operator(Setup::pair(), phase, aborted(AbortBy::Operator)).await;
    }
    // The outcome is fixed already.
    let whole = Outcome::Completed(Finish::Length);
    check_operator(Setup::pair(), PhaseKind::Draining, whole).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn siblings_of_a_room_that_fails_end_with_it() {
    let mut wanted = job(1, 6, 30);
    wanted.n = 3;
    let mut setup = Setup::pair();
    setup.desk.queue_rooms = 1;
    setup.slots = 1;
    let mut stuck = Stuck::reach(setup, PhaseKind::Decoding, job(2, 6, 30)).await;
    let mut refused = stuck.cluster.submit(wanted).await;
    let outcomes: Vec<_> = finish(&mut refused)
        .await
        .into_iter()
        .map(|got| got.outcome)
        .collect();
    assert!(
        outcomes.contains(&Some(Outcome::Failed(room::Failure::QueueFull))),
        "{outcomes:?}"
    );
    assert!(
        outcomes.contains(&Some(aborted(AbortBy::Sibling))),
        "{outcomes:?}"
    );
    stuck.heal();
    let got = finish(&mut stuck.answer).await;
    assert_eq!(got[0].outcome, Some(Outcome::Completed(Finish::Length)));
    stuck.cluster.quiesce().await;
}
