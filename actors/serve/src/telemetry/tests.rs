//! What is made of spans, and that nobody waits for a collector.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use observe::{
    Drawing, Facts, Keep, LinkEnd, Listener, NodeEvent, NodeWhat, Prepared, RoomHistory, RoomWhat, Roster,
    SpanId, SpanKind, Told, Trace, TraceId, TraceSink,
};
use opentelemetry::KeyValue;
use opentelemetry::trace::{self, Status, TraceFlags};
use room::{AbortBy, Failure, NodeId, Outcome, Priority, RoomId, Span, Time};
use runtime::Clock;

use super::convert::{self, Wall};
use super::export::Exporting;
use super::links::Links;
use super::queue::{Item, Queue, WAITING};
use super::{Telemetry, Who, sampling};
use crate::config::{Tracing, TracingProtocol};

const ROOM: RoomId = RoomId {
    gateway: NodeId(9),
    seq: 7,
};

const WORKER: NodeId = NodeId(4);

fn called(node: NodeId) -> String {
    match node {
        WORKER => "decode-1".to_owned(),
        other => other.to_string(),
    }
}

/// A room that was refused a second after it was opened.
fn history(outcome: Outcome) -> Arc<RoomHistory> {
    let at = |ms: u64| Time { micros: ms * 1_000 };
    let mut history = RoomHistory::new(Arc::new(Facts {
        room: ROOM,
        first: ROOM,
        index: 0,
        of: 1,
        request_id: "req-1".into(),
        trace: Trace {
            parent: Some(SpanId::new(0xbee)),
            ..Trace::new(TraceId::new(0xabc))
        },
        model: "m".into(),
        prompt_tokens: 3,
        max_tokens: 5,
        drawing: Drawing {
            temperature: 0.5,
            top_p: 1.0,
            seed: 3,
        },
        priority: Priority(1),
        opened: at(1_000),
        prepared: Prepared::default(),
        deadline: at(60_000),
    }));
    for what in [
        RoomWhat::NotSent {
            worker: WORKER,
            why: "too long".into(),
        },
        RoomWhat::Answered {
            outcome,
            delivered: 0,
        },
        RoomWhat::Ended { outcome },
    ] {
        history.push(&observe::RoomEvent {
            at: at(2_000),
            room: ROOM,
            generation: room::Generation::FIRST,
            what,
        });
    }
    Arc::new(history)
}

#[test]
fn a_span_keeps_its_names_its_times_and_its_failure() {
    let before = SystemTime::now();
    let wall = Wall::new(Clock::start());
    let rooms = [history(Outcome::Failed(Failure::NoWorker))];
    let spans = observe::span::of_request(&rooms, Keep::Failed);
    let ours: Vec<_> = spans
        .into_iter()
        .map(|span| convert::span(span, &wall, &called))
        .collect();
    let request = &ours[0];
    let id = SpanId::of_room(TraceId::new(0xabc), ROOM, SpanKind::Request);
    assert_eq!(request.name, "request");
    assert_eq!(request.span_kind, trace::SpanKind::Server);
    assert_eq!(request.span_context.trace_id(), trace::TraceId::from(0xabc));
    assert_eq!(request.span_context.span_id(), trace::SpanId::from(id.bits()));
    assert_eq!(request.span_context.trace_flags(), TraceFlags::SAMPLED);
    assert_eq!(request.parent_span_id, trace::SpanId::from(0xbee));
    assert!(request.parent_span_is_remote);
    assert_eq!(request.status, Status::error("no_worker"));
    let lasted = request
        .end_time
        .duration_since(request.start_time)
        .expect("in order");
    assert_eq!(lasted, Duration::from_secs(1));
    assert!(request.start_time >= before + Duration::from_millis(900));
    let value = |name: &str| {
        let found = request.attributes.iter().find(|kv| kv.key.as_str() == name);
        found.map(|kv| kv.value.to_string())
    };
    for (name, expected) in [
        ("innkeeper.room", "0000000000000009-7"),
        ("innkeeper.reason", "no_worker"),
        ("gen_ai.request.model", "m"),
        ("gen_ai.request.temperature", "0.5"),
        ("gen_ai.usage.input_tokens", "3"),
    ] {
        assert_eq!(value(name).as_deref(), Some(expected), "{name}");
    }
    // Workers are called by their names.
    let mut told = ours.iter().flat_map(|span| &span.events.events);
    let not_sent = told.find(|event| event.name == "not_sent").expect("an event");
    assert!(
        not_sent
            .attributes
            .contains(&KeyValue::new("innkeeper.worker", "decode-1"))
    );
    // All others hang below it.
    assert!(ours[1..].iter().all(|span| {
        span.span_context.trace_id() == request.span_context.trace_id()
            && span.parent_span_id != trace::SpanId::INVALID
            && span.span_kind == trace::SpanKind::Internal
    }));
}

#[test]
fn a_full_queue_drops_and_counts() {
    let (queue, mut items) = Queue::new();
    let rooms = [history(Outcome::Aborted(AbortBy::ClientGone))];
    for _ in 0..WAITING + 5 {
        queue.request(&rooms, Keep::Head);
    }
    assert_eq!(queue.counts().dropped(), 5);
    assert!(matches!(items.try_recv(), Ok(Item::Request(..))));
    queue.request(&rooms, Keep::Head);
    assert_eq!(queue.counts().dropped(), 5);
}

fn to(endpoint: String, protocol: TracingProtocol) -> Tracing {
    Tracing {
        endpoint,
        protocol,
        ..Tracing::default()
    }
}

fn nodes() -> Vec<Who> {
    vec![Who {
        name: "gateway-0".to_owned(),
        role: "gateway",
    }]
}

/// It takes connections, as the system does so for it, and never says a word.
#[tokio::test]
async fn the_end_does_not_wait_for_a_collector_that_does_not_answer() {
    for protocol in [TracingProtocol::Grpc, TracingProtocol::Http] {
        let mute = TcpListener::bind("127.0.0.1:0").expect("a port");
        let config = to(
            format!("http://{}", mute.local_addr().expect("its port")),
            protocol,
        );
        let telemetry = Telemetry::new(&config).expect("traces are wanted");
        let running = telemetry
            .start(&config, nodes(), Clock::start(), Roster::default())
            .expect("starts");
        let rooms = [history(Outcome::Failed(Failure::NoWorker))];
        running.sink().request(&rooms, Keep::Failed);
        let counts = running.counts();
        running.finish().await;
        assert_eq!((counts.sent(), counts.failed()), (0, 0));
    }
}

/// Nobody is there.
#[tokio::test]
async fn what_is_not_taken_is_counted() {
    for protocol in [TracingProtocol::Grpc, TracingProtocol::Http] {
        let free = TcpListener::bind("127.0.0.1:0")
            .expect("a port")
            .local_addr()
            .expect("its port");
        let config = to(format!("http://{free}"), protocol);
        let (queue, items) = Queue::new();
        let exporting = Exporting::new(
            &config,
            nodes(),
            (Clock::start(), Roster::default()),
            queue.counts(),
        )
        .expect("starts");
        queue.request(&[history(Outcome::Failed(Failure::NoWorker))], Keep::Failed);
        let counts = queue.counts();
        // Nobody can put anything any more: it sends what is there, and ends.
        drop(queue);
        exporting
            .run(items, tokio_util::sync::CancellationToken::new())
            .await;
        assert_eq!(counts.sent(), 0);
        assert_eq!(counts.failed(), 3, "request, attempt, queue");
    }
}

/// A worker that starts, and one that loses the last of two gateways.
#[test]
fn a_link_is_told_when_there_is_one_again() {
    let (queue, mut items) = Queue::new();
    let links = Links::new(queue);
    let (name, why): (observe::Text, observe::Text) = ("decode-0".into(), "silent".into());
    let linked = |gateway, gateways| NodeWhat::GatewayLinked {
        name: name.clone(),
        gateway: NodeId(gateway),
        gateways,
    };
    let unlinked = |gateway, gateways| NodeWhat::GatewayUnlinked {
        name: name.clone(),
        gateway: NodeId(gateway),
        gateways,
        end: LinkEnd::Loss,
        why: why.clone(),
    };
    let started = NodeWhat::WorkerStarted {
        name: name.clone(),
        worker: NodeId(1),
    };
    let life = [
        started,
        linked(8, 1),
        linked(9, 2),
        unlinked(8, 1),
        linked(8, 2),
        unlinked(8, 1),
        unlinked(9, 0),
        linked(9, 1),
    ];
    for (seconds, what) in (0..).zip(life) {
        let at = Time {
            micros: seconds * 1_000_000,
        };
        links.told(&Told::Node(&NodeEvent { at, what }));
    }
    let mut told = Vec::new();
    while let Ok(Item::Link(link)) = items.try_recv() {
        told.push((link.gateway.0, link.start.micros, link.end.micros, link.lost));
    }
    assert_eq!(
        told,
        [
            (8, 0, 1_000_000, None),
            (9, 6_000_000, 7_000_000, Some(why.clone()))
        ]
    );
}

#[test]
fn without_a_collector_there_is_nothing() {
    let off = Tracing::default();
    assert!(Telemetry::new(&off).is_none());
    // Nothing is said to be recorded that is not.
    assert_eq!(sampling(&off).ratio.to_bits(), 0.0_f64.to_bits());
    let on = Tracing {
        slow_total_ms: 7,
        ..to("http://127.0.0.1:4317".to_owned(), TracingProtocol::Grpc)
    };
    let kept = sampling(&on);
    assert_eq!((kept.ratio, kept.slow_total), (0.01, Span::from_millis(7)));
}
