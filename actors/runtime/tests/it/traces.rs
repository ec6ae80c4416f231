//! What is kept for a trace: by the owner when the request comes or when the room is over, and by workers when they are told so.

use std::collections::BTreeSet;
use std::time::Duration;

use observe::{Keep, RoomHistory, RoomWhat, Sampling, SpanId, SpanKind, TraceId};
use room::{Happening, Outcome, PhaseKind, Span};
use runtime::Find;
use wire::TraceContext;

use crate::cluster::{Cluster, Setup, completed, expected, finish, job};

const LONG: Span = Span::from_millis(600_000);

fn never() -> Sampling {
    Sampling {
        ratio: 0.0,
        slow_first_token: LONG,
        slow_total: LONG,
    }
}

/// Serves one request, and gives why its room was traced, and by how many workers.
async fn check(sampling: Sampling, flags: u8, keep: Option<Keep>) {
    let mut setup = Setup::pair();
    setup.sampling = sampling;
    let cluster = Cluster::start(setup).await;
    let mut wanted = job(1, 21, 5);
    wanted.trace = Some(TraceContext {
        trace_id: 0xfeed,
        span_id: 0xbee,
        flags,
    });
    let mut answer = cluster.submit(wanted.clone()).await;
    let (room, trace) = (answer.rooms()[0], answer.trace());
    assert_eq!(trace.id, TraceId::new(0xfeed));
    let request = SpanId::of_room(trace.id, room, SpanKind::Request);
    let sampled = u8::from(flags == 1 || keep == Some(Keep::Head));
    assert_eq!(
        answer.traceparent(),
        Some(format!("00-{}-{request}-0{sampled}", trace.id))
    );
    let tokens = expected(&cluster.setup.mock, &wanted, 0);
    assert_eq!(finish(&mut answer).await, [completed(tokens)]);
    cluster.quiesce().await;
    // What workers are asked for when a room is over comes after it.
    let stays = if keep.is_some() { 2 } else { 0 };
    cluster
        .until("both workers have given what they have", |c| {
            c.heard.traced_stays().len() == stays
        })
        .await;
    let rooms = cluster.heard.traced_rooms();
    let kept: Vec<_> = rooms
        .iter()
        .map(|(history, keep)| (history.facts().room, *keep))
        .collect();
    assert_eq!(
        kept,
        keep.map(|keep| (room, keep)).into_iter().collect::<Vec<_>>()
    );
    let workers: BTreeSet<_> = cluster
        .heard
        .traced_stays()
        .iter()
        .map(|history| {
            let facts = history.facts();
            let told = facts.trace.unwrap();
            assert_eq!((told.id, told.parent), (trace.id, Some(request)));
            assert_eq!(facts.attempt.room, room);
            assert!(history.ended().is_some());
            facts.worker
        })
        .collect();
    assert_eq!(workers.len(), stays);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_traced_that_is_neither_drawn_nor_slow() {
    check(never(), 0, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_caller_traces_is_traced() {
    check(never(), 1, Some(Keep::Head)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_drawn_is_traced() {
    check(
        Sampling {
            ratio: 1.0,
            ..never()
        },
        0,
        Some(Keep::Head),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_slow_is_asked_of_its_workers() {
    let slow_total = Span::default();
    check(
        Sampling {
            slow_total,
            ..never()
        },
        0,
        Some(Keep::Slow),
    )
    .await;
}

/// What happens to an undisturbed room, besides its phases.
const MILESTONES: [&str; 8] = [
    "opened",
    "routed",
    "granted",
    "first token",
    "published",
    "moved",
    "answered",
    "nothing left",
];

/// Its phases, in order.
const PHASES: [&str; 6] = [
    "reserving",
    "prefilling",
    "pulling",
    "decoding",
    "draining",
    "ended",
];

/// The whole life of a room, found by each of its names.
#[tokio::test(flavor = "multi_thread")]
async fn a_room_is_found_with_all_that_happened_to_it() {
    let cluster = Cluster::start(Setup::pair()).await;
    let mut wanted = job(1, 21, 5);
    wanted.prepared.in_all = Duration::from_millis(7);
    let mut answer = cluster.submit(wanted).await;
    let (room, trace) = (answer.rooms()[0], answer.trace());
    finish(&mut answer).await;
    cluster.quiesce().await;
    let found = |name: &Find| cluster.gateway.find(name);
    let (view, history) = found(&Find::Room(room)).remove(0);
    for name in [Find::Request("job-1".to_owned()), Find::Trace(trace.id)] {
        let again = found(&name);
        assert_eq!(again.len(), 1);
        assert_eq!(again[0].1, history);
    }
    assert!(found(&Find::Request("job-2".to_owned())).is_empty());
    assert!(matches!(view.outcome, Some(Outcome::Completed(_))));
    let facts = history.facts();
    assert_eq!(facts.opened - facts.arrived(), Span::from_millis(7));
    assert_eq!(history.state().ended_in, Some(PhaseKind::Decoding));
    check_life(&history);
    for worker in cluster.node.workers().all() {
        let stays = worker.find(room);
        assert_eq!(stays.len(), 1, "{}", worker.name());
        assert_eq!(stays[0].facts().trace.map(|told| told.id), Some(trace.id));
        let figures = worker.figures().unwrap();
        assert_eq!((figures.node, figures.gateways), (stays[0].facts().worker, 1));
    }
}

fn check_life(history: &RoomHistory) {
    let happened = history.events().iter().filter_map(|event| milestone(&event.what));
    let happened: Vec<&str> = happened.collect();
    let missing: Vec<_> = MILESTONES
        .iter()
        .filter(|want| !happened.contains(want))
        .collect();
    assert!(missing.is_empty(), "{missing:?} of {happened:?}");
    let phases = happened.iter().filter(|name| PHASES.contains(*name));
    assert_eq!(phases.copied().collect::<Vec<_>>(), PHASES);
    let moved = history.events().iter().find_map(|event| match &event.what {
        RoomWhat::Moved(moved) => Some(moved.clone()),
        _ => None,
    });
    let (moved, route) = (moved.unwrap(), history.state().route.unwrap());
    assert_eq!((moved.from, moved.to), (route.prefill, route.decode));
    assert!(moved.bytes > 0 && moved.descriptors > 0, "{moved:?}");
}

fn milestone(what: &RoomWhat) -> Option<&'static str> {
    match what {
        RoomWhat::Opened(_) => Some("opened"),
        RoomWhat::Room(Happening::Transition(step)) => Some(step.to.name()),
        RoomWhat::Room(Happening::Routed(_)) => Some("routed"),
        RoomWhat::Room(Happening::Granted { .. }) => Some("granted"),
        RoomWhat::Room(Happening::Delivered { from: 0, .. }) => Some("first token"),
        RoomWhat::Room(Happening::Published { .. }) => Some("published"),
        RoomWhat::Moved(_) => Some("moved"),
        RoomWhat::Answered { .. } => Some("answered"),
        RoomWhat::Ended { .. } => Some("nothing left"),
        _ => None,
    }
}
