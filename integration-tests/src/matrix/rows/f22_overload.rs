//! F22: three times of what the cluster can do is offered. The queue has its bound, who does not fit is told at once, and no deadline
//! takes time in the queue for a fault.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::Cluster;
use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::whole;
use crate::matrix::setup::Setup;
use crate::stream::{Answer, Stream, answers, completion};

/// A queue of eight rooms, and deadlines as a site has them.
static QUEUE: Setup = Setup {
    name: "1 prefill, 1 decode, 4 slots, queue of 8 rooms, tcp",
    start: || {
        Box::pin(async {
            let sets = ["ucx.tls=tcp", "worker.slots=4", "limits.queue_rooms=8"];
            Ctx::new(Cluster::apart(1, 1, &sets).await, 2)
        })
    },
};

const QUEUE_ROOMS: usize = 8;

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F22.short",
        what: "3 x capacity for 10 s: the queue keeps its bound; client: longest time to a 429, which has Retry-After; no 5xx",
        setup: &QUEUE,
        bound: Bound::ms(500, 10_000),
        run: |ctx| Box::pin(offered(ctx, Duration::from_secs(10))),
    },
    Cell {
        id: "F22.minute",
        what: "the same for 60 s",
        setup: &QUEUE,
        bound: Bound::ms(500, 10_000),
        run: |ctx| Box::pin(offered(ctx, Duration::from_secs(60))),
    },
];

#[derive(Default)]
struct Counts {
    served: u32,
    refused: u32,
    longest_refusal: Duration,
}

async fn offered(ctx: &mut Ctx, lasts: Duration) -> Measured {
    let each = capacity(ctx).await / 3;
    let ends = Instant::now() + lasts;
    let mut asked = JoinSet::new();
    let mut counts = Counts::default();
    let mut longest_queue = 0;
    let mut next_look = Instant::now();
    while Instant::now() < ends {
        let (to, prompt) = (ctx.cluster.ports().http, ctx.fresh());
        asked.spawn(async move { ask(to, &prompt).await });
        sleep(each).await;
        while let Some(answer) = asked.try_join_next() {
            counts.add(answer.expect("a guest does not panic"));
        }
        if Instant::now() >= next_look {
            next_look = Instant::now() + Duration::from_millis(200);
            let rooms = ctx.cluster.rooms().await;
            let queued = rooms.iter().filter(|room| room.phase == "queued").count();
            longest_queue = longest_queue.max(queued);
        }
    }
    ctx.injected();
    for answer in asked.join_all().await {
        counts.add(answer);
    }
    let back = ctx.back(ctx.workers).await;
    assert!(longest_queue <= QUEUE_ROOMS, "{longest_queue} rooms were queued");
    assert!(counts.served > 0 && counts.refused > 0);
    let retried = ctx.metric("innkeeper_attempts_retried_total", "").await;
    assert_eq!(retried, 0.0, "time in a queue was taken for a fault");
    Measured::new(counts.longest_refusal, back).note(format!(
        "one each {} ms: {} served, {} refused, at most {longest_queue} queued",
        each.as_millis(),
        counts.served,
        counts.refused
    ))
}

impl Counts {
    fn add(&mut self, (answer, retry_after, took): (Answer, Option<String>, Duration)) {
        match answer.status {
            429 => {
                let seconds = retry_after.as_deref().map(str::parse::<u64>);
                assert!(matches!(seconds, Some(Ok(1..))), "Retry-After: {retry_after:?}");
                self.refused += 1;
                self.longest_refusal = self.longest_refusal.max(took);
            }
            _ => {
                whole(&answer);
                self.served += 1;
            }
        }
    }
}

async fn ask(to: std::net::SocketAddr, prompt: &str) -> (Answer, Option<String>, Duration) {
    let started = Instant::now();
    let request = completion(prompt, 16, 0.0, 0);
    let stream = Stream::open(to, &request).await.expect("an answer");
    let (took, retry_after) = (started.elapsed(), stream.retry_after());
    (stream.finish().await.expect("its rest"), retry_after, took)
}

/// How long one request takes of the cluster's time when it is full.
async fn capacity(ctx: &mut Ctx) -> Duration {
    let requests: Vec<_> = (0..8).map(|_| completion(&ctx.fresh(), 16, 0.0, 0)).collect();
    let started = Instant::now();
    answers(ctx.cluster.ports().http, &requests)
        .await
        .iter()
        .for_each(whole);
    started.elapsed() / 8
}
