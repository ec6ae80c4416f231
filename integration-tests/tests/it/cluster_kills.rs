//! Workers that are killed and frozen while streams are open.

use std::time::{Duration, Instant};

use integration_tests::{Answer, Cluster, Room, Signal, Stream, answer, answers, completion};
use serde_json::Value;
use tokio::task::{JoinHandle, JoinSet};

use crate::prompts::{check_same, check_whole, eight, long};

/// Long enough that all streams are open at the time of the fault.
const TOKENS: u32 = 32;
/// How many each has then.
const AT_FAULT: usize = 4;

/// Opens the streams and reads a few tokens of each.
async fn open(cluster: &Cluster, requests: &[Value]) -> Vec<Stream> {
    let to = cluster.ports().http;
    let mut tasks = JoinSet::new();
    for (index, request) in requests.iter().cloned().enumerate() {
        tasks.spawn(async move {
            let mut stream = Stream::open(to, &request).await.unwrap();
            let so_far = stream.read_tokens(AT_FAULT).await.unwrap();
            assert!(so_far.tokens.len() >= AT_FAULT, "{so_far:?}");
            stream.mark();
            (index, stream)
        });
    }
    let mut streams = tasks.join_all().await;
    streams.sort_by_key(|(index, _)| *index);
    streams.into_iter().map(|(_, stream)| stream).collect()
}

/// Goes on reading all of them to their ends, at a time.
fn reading(streams: Vec<Stream>) -> JoinHandle<Vec<Answer>> {
    let mut tasks = JoinSet::new();
    for (index, stream) in streams.into_iter().enumerate() {
        tasks.spawn(async move { (index, stream.finish().await.unwrap()) });
    }
    tokio::spawn(async move {
        let mut answers = tasks.join_all().await;
        answers.sort_by_key(|(index, _)| *index);
        answers.into_iter().map(|(_, answer)| answer).collect()
    })
}

/// How many rooms are decoding at a worker.
fn decoding_at(rooms: &[Room], worker: &str) -> usize {
    let there =
        |room: &&Room| room.phase == "decoding" && room.held_by.iter().any(|held| held.worker == worker);
    rooms.iter().filter(there).count()
}

/// The decode worker that has most streams.
async fn busiest_decode(cluster: &Cluster) -> (String, usize) {
    let rooms = cluster.rooms().await;
    let counted = ["decode-0", "decode-1"].map(|name| (decoding_at(&rooms, name), name));
    let (count, name) = counted.into_iter().max().unwrap();
    assert!(count > 0, "no stream is decoding: {rooms:#?}");
    (name.to_owned(), count)
}

fn longest_gap(answers: &[Answer]) -> Duration {
    answers.iter().map(|answer| answer.longest_gap).max().unwrap()
}

async fn decode_is_killed(cluster: &mut Cluster, expected: &[Answer]) {
    let streams = reading(open(cluster, &eight(TOKENS)).await);
    let (victim, count) = busiest_decode(cluster).await;
    cluster.process(&victim).signal(Signal::Kill);
    let answers = streams.await.unwrap();
    println!(
        "kill -9 of {victim} with {count} of 8 streams: longest gap {:?}",
        longest_gap(&answers)
    );
    check_whole(&answers, TOKENS as usize);
    check_same(expected, &answers, "after a killed decode worker");
    println!("all blocks back after {:?}", cluster.all_back(2).await);
    cluster.start_worker("decode", &victim, &[]);
    cluster.ready(3).await;
}

async fn decode_is_frozen(cluster: &mut Cluster, expected: &[Answer]) {
    let streams = reading(open(cluster, &eight(TOKENS)).await);
    let (victim, count) = busiest_decode(cluster).await;
    cluster.process(&victim).signal(Signal::Stop);
    let answers = streams.await.unwrap();
    println!(
        "kill -STOP of {victim} with {count} of 8 streams: flow resumed after {:?}",
        longest_gap(&answers)
    );
    check_whole(&answers, TOKENS as usize);
    check_same(expected, &answers, "after a frozen decode worker");
    cluster.all_back(2).await;
    cluster.process(&victim).signal(Signal::Continue);
    // It is a new link of the same incarnation, and nothing of before is left on it.
    println!(
        "linked again with nothing held after {:?}",
        cluster.all_back(3).await
    );
    // And it works.
    check_same(
        expected,
        &answers_to_eight(cluster).await,
        "after a frozen decode worker is back",
    );
}

async fn answers_to_eight(cluster: &Cluster) -> Vec<Answer> {
    answers(cluster.ports().http, &eight(TOKENS)).await
}

/// Told to stop, a worker takes nothing new, finishes or hands over what it has, and ends in order.
async fn decode_leaves(cluster: &mut Cluster, expected: &[Answer]) {
    let streams = reading(open(cluster, &eight(TOKENS)).await);
    let (leaving, count) = busiest_decode(cluster).await;
    cluster.process(&leaving).signal(Signal::Terminate);
    let answers = streams.await.unwrap();
    let started = Instant::now();
    let status = cluster.process(&leaving).ended(Duration::from_secs(30)).await;
    println!(
        "SIGTERM of {leaving} with {count} of 8 streams: longest gap {:?}, {status} {:?} after the last stream's end",
        longest_gap(&answers),
        started.elapsed()
    );
    assert!(status.success(), "{status}");
    check_whole(&answers, TOKENS as usize);
    check_same(expected, &answers, "after a decode worker left");
    cluster.all_back(2).await;
    cluster.start_worker("decode", &leaving, &[]);
    cluster.ready(3).await;
}

/// Without any decode worker, new requests are refused, and answers that clients have begun to read wait for one.
async fn every_decode_is_killed(cluster: &mut Cluster, expected: &[Answer]) {
    let streams = reading(open(cluster, &eight(TOKENS)).await);
    for name in ["decode-0", "decode-1"] {
        cluster.process(name).signal(Signal::Kill);
    }
    let refused = answer(cluster.ports().http, &completion("Is anybody there?", 4, 0.0, 0)).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    // The refusal came because the loss was known: those that wait are seen to.
    let rooms = cluster.rooms().await;
    let waiting = rooms.iter().filter(|room| room.phase == "queued");
    let waiting: Vec<_> = waiting.map(|room| room.waits_for.as_str()).collect();
    assert!(!waiting.is_empty(), "no stream is open any more");
    assert!(waiting.iter().all(|what| what.contains("none of")), "{waiting:?}");
    for name in ["decode-0", "decode-1"] {
        cluster.start_worker("decode", name, &[]);
    }
    let answers = streams.await.unwrap();
    println!(
        "kill -9 of every decode worker, begun anew: longest gap {:?}",
        longest_gap(&answers)
    );
    check_whole(&answers, TOKENS as usize);
    check_same(expected, &answers, "after no decode worker was left");
    cluster.ready(3).await;
    cluster.all_back(3).await;
}

async fn prefill_is_killed(cluster: &mut Cluster, expected: &[Answer]) {
    let streams = reading(open(cluster, &eight(TOKENS)).await);
    let mut running = cluster.rooms().await;
    running.retain(|room| room.phase == "decoding");
    assert!(!running.is_empty(), "no stream is open any more");
    cluster.process("prefill-0").signal(Signal::Kill);
    let started = Instant::now();
    let refused = answer(cluster.ports().http, &completion("Is anybody there?", 4, 0.0, 0)).await;
    println!(
        "kill -9 of the only prefill worker: {} after {:?}",
        refused.status,
        started.elapsed()
    );
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.error.is_some(), "a refusal says why");
    let answers = streams.await.unwrap();
    println!("the running streams' longest gap: {:?}", longest_gap(&answers));
    check_whole(&answers, TOKENS as usize);
    check_same(expected, &answers, "without a prefill worker");
    cluster.all_back(2).await;
    // Each of them ended in the attempt it was in.
    let ended = cluster.rooms_ended().await;
    for room in running {
        let end = ended.iter().find(|end| end.room == room.room).unwrap();
        assert_eq!(
            (end.generation, end.outcome.as_deref()),
            (room.generation, Some("completed"))
        );
    }
    cluster.start_worker("prefill", "prefill-0", &[]);
    cluster.ready(3).await;
}

#[tokio::test]
async fn cluster_survives_its_workers() {
    let mut cluster = Cluster::apart(1, 2, &[]).await;
    let undisturbed = answers_to_eight(&cluster).await;
    check_whole(&undisturbed, TOKENS as usize);
    decode_is_killed(&mut cluster, &undisturbed).await;
    decode_is_frozen(&mut cluster, &undisturbed).await;
    decode_leaves(&mut cluster, &undisturbed).await;
    every_decode_is_killed(&mut cluster, &undisturbed).await;
    prefill_is_killed(&mut cluster, &undisturbed).await;

    // With another one there, a prompt is computed at that one.
    cluster.start_worker("prefill", "prefill-1", &[]);
    cluster.ready(4).await;
    let victim = prefill_is_lost_at_work(&mut cluster, Signal::Kill).await;
    cluster.start_worker("prefill", &victim, &[]);
    cluster.ready(4).await;
    let victim = prefill_is_lost_at_work(&mut cluster, Signal::Stop).await;
    cluster.process(&victim).signal(Signal::Continue);
    cluster.all_back(4).await;
}

/// A prefill worker is lost in the middle of a prompt.
async fn prefill_is_lost_at_work(cluster: &mut Cluster, signal: Signal) -> String {
    let to = cluster.ports().http;
    let undisturbed = answer(
        to,
        &completion(&long(300, &format!("{signal:?} later:")), 4, 0.0, 0),
    )
    .await;
    // Another first word: nothing of it is cached.
    let request = completion(&long(300, &format!("Now {signal:?}:")), 4, 0.0, 0);
    let asked = tokio::spawn(async move { answer(to, &request).await });
    let at_work = || async {
        let rooms = cluster.rooms().await;
        let room = rooms.iter().find(|room| room.phase == "prefilling")?;
        let mut holders = room.held_by.iter().map(|held| held.worker.clone());
        holders.find(|worker| worker.starts_with("prefill"))
    };
    let (victim, _) = cluster.until("a prompt is being computed", at_work).await;
    let before = cluster
        .metrics()
        .await
        .sum("innkeeper_attempts_retried_total", "");
    cluster.process(&victim).signal(signal);
    let answer = asked.await.unwrap();
    println!(
        "{signal:?} of a prefill worker at work: first token after {:?}, undisturbed {:?}",
        answer.first, undisturbed.first
    );
    check_whole(&[answer], 4);
    cluster.all_back(3).await;
    let retried = cluster
        .metrics()
        .await
        .sum("innkeeper_attempts_retried_total", "");
    assert!(retried > before, "the prompt was computed again");
    victim
}
