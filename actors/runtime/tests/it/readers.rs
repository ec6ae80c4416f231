//! Clients that read slowly: their answers are paused, nobody is blamed for it, and what they read in the end is what it would have been.

use std::time::Duration;

use mesh::Fault;
use room::{Outcome, PhaseKind, Span, WaitsFor};
use runtime::{Answer, AnswerEvent, Job, RoomView};
use tokio::time::sleep;
use wire::{Kind, Role};

use crate::cluster::{Cluster, PATIENCE, Setup, completed, expected, finish, job};

/// Tokens that may be unread.
const UNREAD: u32 = 8;

fn slow(setup: Setup) -> Setup {
    let mut setup = setup;
    setup.limits.unread_tokens = UNREAD;
    setup
}

fn waits_for_reader(view: &RoomView) -> bool {
    view.waits_for == WaitsFor::Reader
}

impl Cluster {
    /// Waits until the first room of an answer is paused; how many tokens were delivered by then.
    async fn until_paused(&self, answer: &Answer) -> u32 {
        let room = answer.rooms()[0];
        self.until("it is paused", |c| {
            c.room(room).is_some_and(|view| waits_for_reader(&view))
        })
        .await;
        self.room(room).unwrap().delivered
    }

    /// Reads an answer of one room step by step, each time not before as much has been computed as may be. Finds that this is never
    /// more, but for `more`; and that nothing is missing in the end (INV-06).
    async fn read_slowly(&self, mut answer: Answer, job: &Job, more: u32) {
        let room = answer.rooms()[0];
        let mut tokens = Vec::new();
        loop {
            self.until("it is paused or over", |c| {
                c.room(room)
                    .is_none_or(|view| waits_for_reader(&view) || view.outcome.is_some())
            })
            .await;
            let delivered = self.room(room).or_else(|| self.ended(room)).unwrap().delivered;
            // What it was given last it has not asked beyond, and so counts as unread.
            let read = u32::try_from(tokens.len()).unwrap();
            assert!(
                delivered <= read + UNREAD + more,
                "{delivered} of which {read} are read"
            );
            match tokio::time::timeout(PATIENCE, answer.next()).await.unwrap() {
                Some(AnswerEvent::Tokens { tokens: some, .. }) => {
                    tokens.extend(some.iter().map(|out| out.token));
                }
                Some(AnswerEvent::Ended { outcome, .. }) => {
                    let whole = completed(expected(&self.setup.mock, job, 0));
                    assert_eq!(Some(outcome), whole.outcome);
                    assert_eq!(tokens, whole.tokens, "INV-06");
                    return;
                }
                None => panic!("no outcome"),
            }
        }
    }
}

/// A reader that waits, another that does not, and then the first one to its end.
async fn check(setup: Setup, lost: Option<Kind>) {
    let cluster = Cluster::start(slow(setup)).await;
    if let Some(kind) = lost {
        cluster.faults.set(kind, Some(Fault::Drop));
    }
    let wanted = job(1, 9, 70);
    let paused = cluster.submit(wanted.clone()).await;
    assert_eq!(cluster.until_paused(&paused).await, UNREAD);
    let other = job(2, 9, 60);
    let mut answer = cluster.submit(other.clone()).await;
    let tokens = expected(&cluster.setup.mock, &other, 0);
    assert_eq!(finish(&mut answer).await, [completed(tokens)]);
    // All the while nothing was computed for the one that is not read.
    assert_eq!(cluster.until_paused(&paused).await, UNREAD);
    cluster.read_slowly(paused, &wanted, 0).await;
    let counts = cluster.gateway.counts();
    assert_eq!(counts.retries, 0);
    assert!(counts.pauses >= 8, "{} pauses", counts.pauses);
    assert_eq!(cluster.faults.hits() > 0, lost.is_some());
    cluster.quiesce().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_pauses_its_own_answer_and_no_other() {
    for setup in [Setup::pair(), Setup::mixed()] {
        check(setup, None).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_leave_is_made_good_by_the_digest() {
    for setup in [Setup::pair(), Setup::mixed()] {
        check(setup, Some(Kind::Allow)).await;
    }
}

/// It lasts longer than any stall is let pass, here and at the worker.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_pause_is_no_fault() {
    for mut setup in [Setup::pair(), Setup::mixed()] {
        setup.limits.token_stall = Span::from_millis(300);
        setup.host_limits.stall = Span::from_millis(400);
        let cluster = Cluster::start(slow(setup)).await;
        let wanted = job(3, 5, 30);
        let answer = cluster.submit(wanted.clone()).await;
        cluster.until_paused(&answer).await;
        sleep(Duration::from_millis(1_200)).await;
        cluster.until_paused(&answer).await;
        cluster.read_slowly(answer, &wanted, 0).await;
        assert_eq!(cluster.gateway.counts().retries, 0);
        cluster.quiesce().await;
    }
}

/// Its next attempt begins with what it has leave for, and ends its prefill with one token at any rate.
#[tokio::test(flavor = "multi_thread")]
async fn a_paused_answer_moves_to_another_worker() {
    for roles in [
        &[Role::Prefill, Role::Decode, Role::Decode][..],
        &[Role::Mixed, Role::Mixed],
    ] {
        let cluster = Cluster::start(slow(Setup::of(roles))).await;
        let wanted = job(4, 9, 40);
        let answer = cluster.submit(wanted.clone()).await;
        cluster.until_paused(&answer).await;
        let room = answer.rooms()[0];
        let holder = cluster.room(room).unwrap().legs[0].worker;
        let holder = cluster
            .linked()
            .into_iter()
            .find(|worker| worker.peer.node == holder)
            .unwrap();
        let worker = cluster
            .workers
            .iter()
            .find(|worker| worker.name == holder.peer.name)
            .unwrap();
        worker.faults.cut(true, true);
        cluster
            .until("another attempt is paused", |c| {
                c.room(room)
                    .is_some_and(|view| view.generation == 2 && waits_for_reader(&view))
            })
            .await;
        worker.faults.cut(false, false);
        assert_eq!(cluster.until_paused(&answer).await, UNREAD + 1);
        cluster.read_slowly(answer, &wanted, 1).await;
        cluster.quiesce().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn siblings_pause_each_by_its_own() {
    let cluster = Cluster::start(slow(Setup::mixed())).await;
    let mut wanted = job(5, 9, 30);
    wanted.n = 4;
    wanted.sampling.temperature = 1.0;
    let mut answer = cluster.submit(wanted.clone()).await;
    let rooms = answer.rooms().to_vec();
    cluster
        .until("all are paused", |c| {
            let paused = |room| {
                c.room(room)
                    .is_some_and(|view| waits_for_reader(&view) && view.delivered == UNREAD)
            };
            rooms.iter().all(|room| paused(*room))
        })
        .await;
    for (index, got) in finish(&mut answer).await.into_iter().enumerate() {
        let tokens = expected(&cluster.setup.mock, &wanted, index as u64);
        assert_eq!(got, completed(tokens), "{index}");
    }
    cluster.quiesce().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_never_reads_is_ended_by_its_deadline() {
    for setup in [Setup::pair(), Setup::mixed()] {
        let cluster = Cluster::start(slow(setup)).await;
        let mut wanted = job(6, 9, 30);
        wanted.timeout = Duration::from_secs(1);
        let answer = cluster.submit(wanted).await;
        let room = answer.rooms()[0];
        cluster.until_paused(&answer).await;
        cluster.until("it has ended", |c| c.ended(room).is_some()).await;
        let view = cluster.ended(room).unwrap();
        assert_eq!(view.outcome, Some(Outcome::Expired(PhaseKind::Decoding)));
        assert_eq!((view.delivered, view.generation), (UNREAD, 1));
        drop(answer);
        cluster.quiesce().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_leaves_a_paused_answer_gives_everything_back() {
    for setup in [Setup::pair(), Setup::mixed()] {
        let cluster = Cluster::start(slow(setup)).await;
        let answer = cluster.submit(job(7, 9, 30)).await;
        cluster.until_paused(&answer).await;
        drop(answer);
        cluster.quiesce().await;
    }
}
