//! Two workers at a time, and what the end of a link is called.

use std::sync::Arc;
use std::time::Duration;

use mesh::{DownReason, GatewayLinks, Link, LinkEvent};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use room::{Attempt, DeskLimits, Generation, Limits, NodeId, RoomId, Span};
use wire::{HeaderError, Hello, Order, RoomKey, ToGateway, ToWorker, WorkerStats};

use observe::LinkEnd;

use super::Links;
use crate::clock::Clock;
use crate::convert::link_end;
use crate::gateway::directory::{Directory, Inbox, Mail, News};
use crate::gateway::fabric::Fabric;
use crate::gateway::orders::OrderError;
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

    fn closes_leg(&self, worker: NodeId) {
        let attempt = Attempt {
            room: ROOM,
            generation: Generation(KEY.generation),
        };
        let close = ToWorker::Close { key: KEY };
        self.shared.fabric.send(worker, attempt, &close).unwrap();
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

/// The same for what operators want: whoever does not know it is named as too old.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_of_the_version_before_takes_no_orders() {
    let mut older = hello("older", 1, 7);
    older.max_version = 3;
    let newer = hello("newer", 2, 7);
    let linked = links(&[older.clone(), newer.clone()], 1).await;
    let gateway = unlinked().await;
    let results = [Err(OrderError::TooOld), Ok(())];
    for ((link, hello), result) in linked.at_gateways.iter().zip([older, newer]).zip(results) {
        gateway.is_up(link, &hello);
        let node = NodeId(hello.epoch);
        let (n, answer) = gateway.board.orders.ask(node).unwrap();
        assert_eq!(gateway.shared.fabric.order(node, n, Order::Drain), result);
        assert!(!link.is_down(), "{}", hello.node);
        let refused = Some("no".to_owned());
        gateway.frame(link.id(), ToGateway::Ordered { n, refused });
        assert_eq!(answer.await, Ok(Err("no".to_owned())));
    }
}

/// When the order to close a leg goes out.
#[derive(Copy, Clone, Debug)]
enum Close {
    Never,
    BeforeTheDigest,
    AfterTheDigest,
}

/// A worker with a leg says `word`, and then answers a digest that it holds nothing: what the leg's owner hears of that.
async fn answered(word: Option<ToGateway>, close: Close) -> News {
    let worker = hello("w", 1, 7);
    let linked = links(std::slice::from_ref(&worker), 1).await;
    let link = &linked.at_gateways[0];
    let gateway = unlinked().await;
    let (owner, _) = Actor::spawn(None, Owner, ()).await.unwrap();
    let inbox = Inbox::new(owner);
    gateway.shared.directory.insert(ROOM, &inbox, 0);
    gateway.is_up(link, &worker);
    gateway.opens_leg(NodeId(1));
    if let Close::BeforeTheDigest = close {
        gateway.closes_leg(NodeId(1));
    }
    gateway.beat(link, 1);
    if let Close::AfterTheDigest = close {
        gateway.closes_leg(NodeId(1));
    }
    if let Some(word) = word {
        gateway.frame(link.id(), word);
    }
    let ack = ToGateway::HeartbeatAck {
        n: 1,
        held: Vec::new(),
        stats: WorkerStats::default(),
    };
    gateway.frame(link.id(), ack);
    assert_eq!(gateway.shared.fabric.open_legs(), 0, "it is proven in any case");
    match inbox.take().pop() {
        Some((_, Mail::Worker { frame, .. })) => frame.news,
        other => panic!("{other:?}"),
    }
}

/// Whether a message was lost, where a worker that has said `word` does not hold the attempt any more.
async fn check_lost(word: Option<ToGateway>, close: Close, is_lost: bool) {
    let of = format!("{word:?}, {close:?}");
    match answered(word, close).await {
        News::NotHeld => assert!(is_lost, "{of}"),
        News::Closed => assert!(!is_lost, "{of}"),
        other => panic!("{other:?}: {of}"),
    }
}

fn tokens(finish: Option<wire::Finish>) -> ToGateway {
    let room = wire::RoomTokens {
        key: KEY,
        from: 0,
        tokens: Vec::new(),
        finish,
    };
    ToGateway::Tokens { batch: vec![room] }
}

/// A stay that ended by its worker's own word is not there any more when the next digest is answered, and may not have been told to
/// close by then. That is no message lost, and nobody is to be alarmed.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_worker_has_ended_by_its_own_word_was_not_lost() {
    let failed = ToGateway::Failed {
        key: KEY,
        why: wire::AttemptError::PullFailed,
    };
    // A room may not take a refusal for proof: it gets that here, even if nothing else is ever heard of the attempt.
    let refused = ToGateway::Refused {
        key: KEY,
        why: wire::Refusal::OutOfOrder,
    };
    for word in [failed, refused, tokens(Some(wire::Finish::Stop))] {
        check_lost(Some(word.clone()), Close::Never, false).await;
        check_lost(Some(word.clone()), Close::AfterTheDigest, false).await;
        // It was sent before the digest, so the answer to it must come before that to the digest.
        check_lost(Some(word), Close::BeforeTheDigest, true).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_gone_without_a_word_was_lost() {
    let progress = ToGateway::Progress {
        key: KEY,
        positions: 1,
    };
    for word in [None, Some(progress), Some(tokens(None))] {
        for close in [Close::Never, Close::AfterTheDigest, Close::BeforeTheDigest] {
            check_lost(word.clone(), close, true).await;
        }
    }
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
