//! F30: clients that read a token every few seconds. Their streams are paused: what is computed for them stays near what they read, and
//! the others' tokens come as often as before. (A token a second for each of a hundred is nearly all that two cores compute: the others
//! would be slower with any server.)

use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::h2::Http2;
use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::{longest_gap, whole};
use crate::matrix::setup::{Setup, apart};
use crate::stream::{Answer, answers, completion};

/// Room for all of them, if each holds a few blocks. None may get far ahead of its reader: what they are computed until then is the
/// others' loss, and not what is asked about here.
static CROWD: Setup = Setup {
    name: "1 prefill, 2 decode, 64 slots, tcp",
    start: || {
        Box::pin(async {
            let sets = [
                "ucx.tls=tcp",
                "worker.slots=64",
                "worker.pool_mib=700",
                "limits.queue_ms=30000",
                "limits.unread_tokens=16",
            ];
            apart(1, 2, &sets).await
        })
    },
};

pub(super) const CELLS: &[Cell] = &[Cell {
    id: "F30.readers",
    what: "100 clients read a token every 4 s: few more tokens are computed for them; others' tokens as often as before",
    setup: &CROWD,
    bound: Bound::ms(1_000, 4_000),
    run: |ctx| Box::pin(slow(ctx)),
}];

const READERS: usize = 100;
const CONNECTIONS: usize = 10;
/// What a server may be ahead by, in HTTP/2's own terms.
const WINDOW: u32 = 2_048;
/// Tokens beyond those read: the window, and what is on its way between engine and door.
const AHEAD: u32 = 64;
const TOKENS: u32 = 200;
/// Between two tokens that a slow reader takes.
const READS_EVERY: Duration = Duration::from_secs(4);

async fn slow(ctx: &mut Ctx) -> Measured {
    let before = pace(ctx).await;
    let mut readers = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let to = ctx.cluster.ports().http;
        let prompts: Vec<String> = (0..READERS / CONNECTIONS).map(|_| ctx.fresh()).collect();
        readers.spawn(async move { read_slowly(to, prompts).await });
    }
    let all = || async {
        let rooms = ctx.cluster.rooms().await;
        let served = rooms.iter().filter(|room| room.delivered_tokens > 0).count();
        (served >= READERS).then_some(())
    };
    ctx.cluster.until("all slow readers have begun", all).await;
    ctx.injected();
    // A reader takes a token now and then, and its answer goes on for a moment.
    let paused = || async {
        let rooms = ctx.cluster.rooms().await;
        let waiting = rooms.iter().filter(|room| room.waits_for.contains("its client"));
        (waiting.count() >= READERS * 3 / 4).then_some(())
    };
    ctx.cluster
        .until("nearly all of them are waited for", paused)
        .await;
    let during = pace(ctx).await;
    let rooms = ctx.cluster.rooms().await;
    let most = rooms
        .iter()
        .map(|room| room.delivered_tokens)
        .max()
        .unwrap_or_default();
    let lasted = ctx.since();
    readers.shutdown().await;
    let left = Instant::now();
    ctx.cluster.all_back(ctx.workers).await;
    let back = left.elapsed();
    let (gap, ratio) = (during.0, during.1.as_secs_f64() / before.1.as_secs_f64());
    // Some begin earlier than others, and read for longer.
    let times = lasted.as_secs() / READS_EVERY.as_secs();
    let read = u32::try_from(times).unwrap_or(u32::MAX).saturating_add(10);
    assert!(
        most <= read + AHEAD,
        "{most} tokens were computed for a client that has read {read} at most"
    );
    assert!(
        ratio < 1.5,
        "others' tokens come {ratio:.1} times as far apart: {before:?}, {during:?}"
    );
    Measured::new(gap, back).note(format!(
        "at most {most} tokens computed in {lasted:.0?}; others' mean gap {:?}, {ratio:.2} of before",
        during.1
    ))
}

/// Reads a token's worth now and then from each of some streams on one connection, until it is ended.
async fn read_slowly(to: std::net::SocketAddr, prompts: Vec<String>) {
    let connection = Http2::connect(to, WINDOW).await.expect("a connection");
    let mut bodies = Vec::new();
    for prompt in prompts {
        let request = completion(&prompt, TOKENS, 0.0, 0);
        let response = connection
            .post("/v1/completions", &request)
            .await
            .expect("an answer");
        assert_eq!(response.status(), 200);
        bodies.push(response.into_body());
    }
    loop {
        for body in &mut bodies {
            // One piece: a token's event.
            let _ = timeout(Duration::from_millis(50), body.frame()).await;
        }
        sleep(READS_EVERY).await;
    }
}

/// Longest and mean gap of a few streams that are read at once.
async fn pace(ctx: &mut Ctx) -> (Duration, Duration) {
    let mut best: Option<(Duration, Duration)> = None;
    for _ in 0..3 {
        let requests: Vec<_> = (0..4).map(|_| completion(&ctx.fresh(), 32, 0.0, 0)).collect();
        let started = Instant::now();
        let got: Vec<Answer> = answers(ctx.cluster.ports().http, &requests).await;
        let took = started.elapsed();
        got.iter().for_each(whole);
        let first = got.iter().map(|answer| answer.first).min().unwrap_or_default();
        let mean = (took - first) / 31;
        if best.is_none_or(|(_, best)| mean < best) {
            best = Some((longest_gap(&got), mean));
        }
    }
    best.unwrap_or_default()
}
