//! F27: every worker is restarted in order, one after the other, under load. Nobody notices.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::{longest_gap, same, whole};
use crate::matrix::worlds::PATIENT;
use crate::process::Signal;
use crate::stream::{Answer, Stream, completion};

pub(super) const CELLS: &[Cell] = &[Cell {
    id: "F27.workers",
    what: "each worker SIGTERMed and started anew, one after the other, under load: 0 failed, same tokens; client: longest gap",
    setup: &PATIENT,
    bound: Bound::ms(5_000, 60_000),
    run: |ctx| Box::pin(rolling(ctx)),
}];

const CLIENTS: usize = 4;
const LIMIT: Duration = Duration::from_secs(20);

async fn rolling(ctx: &mut Ctx) -> Measured {
    let stop = Arc::new(AtomicBool::new(false));
    let mut load = JoinSet::new();
    for _ in 0..CLIENTS {
        let (to, prompt, stop) = (ctx.cluster.ports().http, ctx.fresh(), Arc::clone(&stop));
        load.spawn(async move { again_and_again(to, prompt, &stop).await });
    }
    ctx.injected();
    for (role, name) in [
        ("prefill", "prefill-0"),
        ("decode", "decode-0"),
        ("prefill", "prefill-1"),
        ("decode", "decode-1"),
    ] {
        ctx.cluster.process(name).signal(Signal::Terminate);
        let status = ctx.cluster.process(name).ended(LIMIT).await;
        assert!(status.success(), "{name} ends with {status}");
        ctx.cluster.start_worker(role, name, &[]);
        ctx.cluster.ready(ctx.workers).await;
    }
    stop.store(true, Ordering::Relaxed);
    let answers: Vec<(String, Vec<Answer>)> = load.join_all().await;
    let back = ctx.back(ctx.workers).await;
    let mut count = 0;
    for (prompt, answers) in &answers {
        let expected = ctx.reference(&request(prompt)).await;
        answers.iter().for_each(|answer| same(&expected, answer));
        count += answers.len();
    }
    let gap = longest_gap(answers.iter().flat_map(|(_, answers)| answers));
    Measured::new(gap, back).note(format!("{count} requests, none failed"))
}

fn request(prompt: &str) -> serde_json::Value {
    completion(prompt, 32, 0.0, 0)
}

/// One client, who asks the same again and again; the first answer that is not whole ends it all.
async fn again_and_again(to: SocketAddr, prompt: String, stop: &AtomicBool) -> (String, Vec<Answer>) {
    let mut answers = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let stream = Stream::open(to, &request(&prompt)).await.expect("an answer");
        let answer = stream.finish().await.expect("the rest of an answer");
        whole(&answer);
        answers.push(answer);
    }
    (prompt, answers)
}
