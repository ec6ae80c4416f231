//! Two workers at a time, and what the end of a link is called.

use std::sync::Arc;
use std::time::Duration;

use mesh::{DownReason, GatewayLinks, Link, LinkEvent};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use room::{Attempt, DeskLimits, Generation, Limits, NodeId, RoomId, Span};
use wire::{HeaderError, Hello, RoomKey, ToGateway, ToWorker, WorkerStats};

use observe::LinkEnd;

use super::Links;
use crate::clock::Clock;
use crate::convert::link_end;
use crate::gateway::directory::{Directory, Inbox, Mail, News};
use crate::gateway::fabric::Fabric;
use crate::gateway::placement::{DeskBoard, Placement, PlacementArguments};
use crate::gateway::request::RequestMessage;
use crate::gateway::shared::Shared;
use crate::gateway::watch::Watch;
use crate::testing::{GATEWAY, hello, job, links};

const ROOM: RoomId = RoomId {
    gateway: NodeId(GATEWAY),
    seq: 5,
};

const KEY: RoomKey = RoomKey {
    seq: 5,
    generation: 1,
};

/// An owner that never reads its mail: the test does.
struct Owner;

impl Actor for Owner {
    type Msg = RequestMessage;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<RequestMessage>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}

/// A gateway's links with nothing behind them.
async fn unlinked() -> Links {
    let clock = Clock::start();
    let directory = Arc::new(Directory::new(observe::Recorder::default(), clock));
    let arguments = PlacementArguments {
        clock,
        limits: DeskLimits::default(),
        directory: Arc::clone(&directory),
        board: Arc::<DeskBoard>::default(),
    };
    let (placement, _) = Actor::spawn(None, Placement, arguments).await.unwrap();
    let shared = Shared {
        clock,
        limits: Limits::default(),
        fabric: Arc::new(Fabric::new(NodeId(GATEWAY), Arc::clone(&directory))),
        directory,
        watch: Watch::new(Span::from_millis(1_000)),
        board: Arc::default(),
        recorder: observe::Recorder::default(),
        model: "mock".into(),
        placement,
        #[cfg(feature = "faults")]
        doom: crate::gateway::request::Doom::default(),
    };
    Links {
        model: "mock".to_owned(),
        board: Arc::default(),
        shared: Arc::new(shared),
    }
}

impl Links {
    fn is_up(&self, link: &Link<ToWorker>, hello: &Hello) {
        let (link, peer) = (link.clone(), hello.clone());
        self.event(LinkEvent::Up { link, peer });
    }

    /// Opens a leg of the room's at the worker.
    fn opens_leg(&self, worker: NodeId) {
        let attempt = Attempt {
            room: ROOM,
            generation: Generation(KEY.generation),
        };
        let work = job(vec![1], 1).work(0, &[]);
        let reserve = ToWorker::Reserve {
            key: KEY,
            work,
            until: 9,
            deadline_ms: 1,
        };
        self.shared.fabric.send(worker, attempt, &reserve).unwrap();
    }
}

/// Two workers said hello before either was there.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_layouts_at_a_time_the_first_stays() {
    let (first, second) = (hello("first", 1, 7), hello("second", 2, 8));
    let linked = links(&[first.clone(), second.clone()], 1).await;
    let [one, two] = linked.at_gateways.as_slice() else {
        panic!("two links");
    };
    let gateway = unlinked().await;
    assert_eq!(gateway.accept(&first), Ok(()));
    assert_eq!(gateway.accept(&second), Ok(()));
    gateway.is_up(one, &first);
    assert!(gateway.accept(&second).is_err_and(|why| why.contains("weights")));
    gateway.opens_leg(NodeId(1));
    gateway.is_up(two, &second);
    assert!(two.is_down() && !one.is_down());
    gateway.event(LinkEvent::Down {
        link: two.id(),
        why: DownReason::Stopped,
    });
    let names: Vec<String> = gateway.board.read().into_iter().map(|peer| peer.name).collect();
    assert_eq!(names, ["first"], "the end of the other is none of its own");
    assert_eq!(gateway.shared.fabric.open_legs(), 1);
}

/// What the version before does not have is not sent to it, and is no reason to end its link.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_is_asked_for_a_trace_if_it_knows_how() {
    let mut older = hello("older", 1, 7);
    older.max_version = 2;
    let newer = hello("newer", 2, 7);
    let linked = links(&[older.clone(), newer.clone()], 1).await;
    let gateway = unlinked().await;
    for ((link, hello), is_sent) in linked.at_gateways.iter().zip([older, newer]).zip([false, true]) {
        gateway.is_up(link, &hello);
        let ask = ToWorker::KeepTrace { seq: KEY.seq };
        assert_eq!(link.send(&ask).is_ok(), is_sent, "{}", hello.node);
        gateway.shared.fabric.keep_trace(NodeId(hello.epoch), KEY.seq);
        assert!(!link.is_down(), "{}", hello.node);
    }
}

/// A room may not take a refusal for proof: it gets that with the next digest, even if nothing else is ever heard of the attempt.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_is_proven_gone_by_the_next_digest() {
    let worker = hello("w", 1, 7);
    let linked = links(std::slice::from_ref(&worker), 1).await;
    let link = &linked.at_gateways[0];
    let gateway = unlinked().await;
    let (owner, _) = Actor::spawn(None, Owner, ()).await.unwrap();
    let inbox = Inbox::new(owner);
    gateway.shared.directory.insert(ROOM, &inbox, 0);
    gateway.is_up(link, &worker);
    gateway.opens_leg(NodeId(1));
    let why = wire::Refusal::OutOfOrder;
    gateway.frame(link.id(), ToGateway::Refused { key: KEY, why });
    gateway.beat(link, 1);
    let ack = ToGateway::HeartbeatAck {
        n: 1,
        held: Vec::new(),
        stats: WorkerStats::default(),
    };
    gateway.frame(link.id(), ack);
    let news: Vec<News> = inbox
        .take()
        .into_iter()
        .filter_map(|(_, mail)| match mail {
            Mail::Worker { frame, .. } => Some(frame.news),
            Mail::Input(_) => None,
        })
        .collect();
    assert!(
        matches!(news.as_slice(), [News::Refused(_), News::NotHeld]),
        "{news:?}"
    );
    assert_eq!(gateway.shared.fabric.open_legs(), 0);
}

/// What is queued on it is still delivered.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_does_not_cut_a_link_that_ends_in_order() {
    let worker = hello("w", 1, 7);
    let linked = links(std::slice::from_ref(&worker), 1).await;
    let link = linked.at_gateways[0].clone();
    let gateway = unlinked().await;
    gateway.is_up(&link, &worker);
    let order = async {
        while !link.is_down() {
            tokio::task::yield_now().await;
        }
        gateway.opens_leg(NodeId(1));
        gateway.beat(&link, 1);
    };
    let (downs, ()) = tokio::join!(linked.stop_gateways(), order);
    assert_eq!(downs, [DownReason::Stopped]);
}

#[test]
fn only_a_cut_is_called_a_fence() {
    let ms = Duration::from_millis;
    let (silence, lease, stalled) = (ms(2), ms(1), ms(1));
    let reason = String::new;
    for (why, end) in [
        (DownReason::Stopped, LinkEnd::InOrder),
        (DownReason::PeerStopped, LinkEnd::InOrder),
        (DownReason::Replaced, LinkEnd::InOrder),
        (DownReason::PeerClosed(reason()), LinkEnd::Loss),
        (DownReason::Closed(reason()), LinkEnd::Fence),
        (DownReason::Silent { silence, lease }, LinkEnd::Loss),
        (DownReason::NotReading { stalled }, LinkEnd::Loss),
        (DownReason::Behind { lease }, LinkEnd::Loss),
        (DownReason::Lost(reason()), LinkEnd::Loss),
        (
            DownReason::Framing(HeaderError::TooLarge { bytes: 2, limit: 1 }),
            LinkEnd::Loss,
        ),
    ] {
        assert_eq!(link_end(&why), end, "{why}");
    }
}
