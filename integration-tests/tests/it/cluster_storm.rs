//! Clients that leave, and requests at the edges of what is allowed. After all of them everything is as before.

use std::time::{Duration, Instant};

use integration_tests::{Answer, Cluster, MODEL, Stream, answer, completion, post};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::prompts::{check_whole, eight, long};

const WORKERS: usize = 2;
const CLIENTS: u64 = 200;
const SEED: u64 = 20_260;

/// Two hundred clients, each gone at a moment of its own: before the head of its answer, before the first token, or later.
async fn storm(cluster: &Cluster) {
    let to = cluster.ports().http;
    let mut random = StdRng::seed_from_u64(SEED);
    let mut clients = JoinSet::new();
    for index in 0..CLIENTS {
        let pause = Duration::from_millis(random.random_range(0..8_000));
        let stay = Duration::from_millis(random.random_range(0..3_000));
        // Every eighth prompt is long.
        let tokens = random.random_range(0..16) + if index % 8 == 0 { 200 } else { 0 };
        let prompt = long(tokens, &format!("Guest {index}:"));
        let mut request = completion(&prompt, random.random_range(1..12), 1.0, index);
        if index % 10 == 0 {
            request["n"] = json!(2);
        }
        clients.spawn(async move {
            sleep(pause).await;
            let whole = timeout(stay, answer(to, &request)).await;
            whole.is_ok_and(|answer| answer.done)
        });
    }
    let stayed = clients.join_all().await;
    let whole = stayed.iter().filter(|stayed| **stayed).count();
    println!("{CLIENTS} clients, of whom {whole} saw the end of their answers");
    println!(
        "after the last of them, all is back in {:?}",
        cluster.all_back(WORKERS).await
    );
    cluster.balanced().await;
    let metrics = cluster.metrics().await;
    let outcomes = metrics.samples("innkeeper_outcomes_total");
    println!("outcomes: {outcomes:?}");
    let opened = metrics.sum("innkeeper_rooms_opened_total", "");
    let ended: f64 = outcomes.iter().map(|(_, count)| count).sum();
    assert_eq!(opened, ended, "INV-03: one outcome for each room: {outcomes:?}");
    assert!(
        metrics.sum("innkeeper_outcomes_total", "aborted") > 0.0,
        "{outcomes:?}"
    );
}

/// A short request's first token, on an idle cluster and behind ten long prompts whose clients have left.
async fn cancelled_prefills(cluster: &Cluster) {
    let to = cluster.ports().http;
    let short = |n: u32| completion(&format!("Short and new, number {n}:"), 2, 0.0, 0);
    let idle = answer(to, &short(0)).await;
    check_whole(std::slice::from_ref(&idle), 2);
    let mut streams = JoinSet::new();
    for index in 0..10 {
        let request = completion(&long(1_500, &format!("Long {index}:")), 8, 0.0, 0);
        streams.spawn(async move {
            let open = Stream::open(to, &request).await;
            open.is_ok()
        });
    }
    let at_work = || async {
        let rooms = cluster.rooms().await;
        let working = rooms.iter().filter(|room| room.phase == "prefilling").count();
        (rooms.len() == 10 && working > 0).then_some(())
    };
    cluster.until("ten long prompts", at_work).await;
    streams.shutdown().await;
    let behind = answer(to, &short(1)).await;
    check_whole(std::slice::from_ref(&behind), 2);
    println!(
        "first token: idle {:?}, behind ten cancelled prefills {:?}",
        idle.first, behind.first
    );
    println!("all is back in {:?}", cluster.all_back(WORKERS).await);
    let rooms = cluster.rooms_ended().await;
    let aborted = rooms
        .iter()
        .filter(|room| room.outcome.as_deref() == Some("aborted"));
    assert!(aborted.count() >= 10, "{rooms:#?}");
}

/// The whole body of an answer that is not streamed.
async fn whole(cluster: &Cluster, mut request: Value) -> (u16, Value) {
    request["stream"] = json!(false);
    request["model"] = json!(MODEL);
    let response = post(cluster.ports().http, "/v1/completions", &request)
        .await
        .unwrap();
    let status = response.status;
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap())
}

/// `n` answers to one prompt are those of `n` seeds, each with an outcome of its own.
async fn siblings(cluster: &Cluster) {
    let request = json!({
        "prompt": "Eight ways to say hello:", "n": 8, "max_tokens": 8, "temperature": 1.0, "seed": 3, "ignore_eos": true,
    });
    let (status, body) = whole(cluster, request).await;
    assert_eq!(status, 200, "{body}");
    let choices = body["choices"].as_array().unwrap();
    let texts: Vec<&str> = choices
        .iter()
        .map(|choice| choice["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts.len(), 8);
    assert!(texts.iter().any(|text| *text != texts[0]), "{texts:?}");
    assert_eq!(body["usage"]["completion_tokens"], 64, "{body}");
    cluster.all_back(WORKERS).await;
}

/// A stop string ends an answer, is not in it, and its room is given back like any other.
async fn stop_strings(cluster: &Cluster) {
    let all = answer(cluster.ports().http, &eight(24)[0]).await;
    let words: Vec<&str> = all.text.split_whitespace().collect();
    // Over two tokens, so that it is never whole within one.
    let stop = format!("{} {}", words[4], words[5]);
    let mut request = eight(24).swap_remove(0);
    request["stop"] = json!([stop]);
    let stopped: Answer = answer(cluster.ports().http, &request).await;
    assert_eq!(stopped.finish.as_deref(), Some("stop"), "{stopped:?}");
    assert!(stopped.done);
    let expected = all.text.split(&stop).next().unwrap();
    assert_eq!(stopped.text, expected);
    cluster.all_back(WORKERS).await;
}

/// Prompts around the context's length: the one that is too long is refused before there is a room.
async fn context_limit(cluster: &Cluster) {
    let rooms = async || cluster.metrics().await.sum("innkeeper_rooms_opened_total", "");
    let tokens = |count: usize| json!({ "prompt": vec![28_u32; count], "max_tokens": 1, "ignore_eos": true });
    let before = rooms().await;
    let (status, body) = whole(cluster, tokens(8_193)).await;
    assert_eq!(status, 400, "{body}");
    let message = body["error"]["message"].as_str().unwrap();
    assert!(message.contains("8192"), "{message}");
    assert_eq!(rooms().await, before, "no room for a prompt that is too long");
    let (status, body) = whole(
        cluster,
        json!({ "prompt": "Hello", "max_tokens": 1, "temprature": 1 }),
    )
    .await;
    assert_eq!(status, 400);
    assert!(
        body["error"]["message"].as_str().unwrap().contains("temprature"),
        "{body}"
    );
}

#[tokio::test]
async fn cluster_gives_everything_back() {
    let cluster = Cluster::apart(1, 1, &[]).await;
    let started = Instant::now();
    siblings(&cluster).await;
    stop_strings(&cluster).await;
    context_limit(&cluster).await;
    println!("edges: {:?}", started.elapsed());
    cancelled_prefills(&cluster).await;
    storm(&cluster).await;
    println!("in all: {:?}", started.elapsed());
}
