//! The same tokens and the same log-probabilities, however the work is spread over workers, and in whatever company.

use integration_tests::{Answer, Cluster, answers, post};
use serde_json::Value;

use crate::prompts::{check_same, check_whole, eight, long};

const TOKENS: u32 = 12;

fn requests() -> Vec<Value> {
    let mut requests = eight(TOKENS);
    // Several blocks, and more than one chunk.
    let prompt = long(150, "A long list:");
    requests.push(integration_tests::completion(&prompt, TOKENS, 0.8, 77));
    requests
}

/// One request after the other.
async fn alone(cluster: &Cluster) -> Vec<Answer> {
    let mut answers = Vec::new();
    for request in requests() {
        answers.push(integration_tests::answer(cluster.ports().http, &request).await);
    }
    check_whole(&answers, TOKENS as usize);
    answers
}

/// All of them at a time, among sixteen others of other lengths.
async fn in_company(cluster: &Cluster) -> Vec<Answer> {
    let mut all = requests();
    let count = all.len();
    for index in 0..16_u32 {
        let prompt = format!("Guest number {index} says{}", " again".repeat(index as usize));
        all.push(integration_tests::completion(
            &prompt,
            4 + index,
            1.0,
            u64::from(index),
        ));
    }
    let mut answers = answers(cluster.ports().http, &all).await;
    assert!(answers.iter().all(|answer| answer.done), "{answers:#?}");
    answers.truncate(count);
    answers
}

/// Runs the requests over UCX between processes, with prompts computed in such chunks; exactly these transports may carry bytes.
async fn check_over_ucx(expected: &[Answer], tls: &str, chunk: u32, carriers: &[&str]) {
    let settings = [format!("ucx.tls={tls}"), format!("worker.chunk_tokens={chunk}")];
    let settings = settings.each_ref().map(String::as_str);
    let cluster = Cluster::up(&["--processes"], &settings, 2).await;
    check_same(
        expected,
        &alone(&cluster).await,
        &format!("two processes over {tls}, chunks of {chunk}"),
    );
    check_same(
        expected,
        &in_company(&cluster).await,
        &format!("over {tls}, chunks of {chunk}, in company"),
    );
    cluster.all_back(2).await;
    check_carriers(&cluster, carriers).await;
}

/// The metrics say what carried the KV.
async fn check_carriers(cluster: &Cluster, carriers: &[&str]) {
    let metrics = cluster.metrics().await;
    let carried = metrics.samples("innkeeper_kv_pulled_bytes_total");
    println!("bytes pulled, by transport: {carried:?}");
    assert!(!carried.is_empty());
    for (labels, bytes) in &carried {
        assert!(*bytes > 0.0, "{labels}");
        assert!(
            carriers.iter().any(|carrier| labels.contains(carrier)),
            "{labels} is none of {carriers:?}"
        );
    }
    let pulls = metrics.sum("innkeeper_kv_pulls_total", "");
    assert!(pulls >= 9.0, "{pulls} pulls");
}

/// Prompt tokens of a request, and how many of them were found in a cache, as the client is told.
async fn usage(cluster: &Cluster, request: &Value) -> (u64, u64) {
    let response = post(cluster.ports().http, "/v1/completions", request)
        .await
        .unwrap();
    let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    let usage = &answer["usage"];
    let cached = &usage["prompt_tokens_details"]["cached_tokens"];
    (usage["prompt_tokens"].as_u64().unwrap(), cached.as_u64().unwrap())
}

/// Whoever computes the prompt finds it again, but for what follows its last full block; siblings of one request find nothing.
async fn check_cached(arguments: &[&str], workers: usize) {
    let cluster = Cluster::up(arguments, &[], workers).await;
    let mut request = integration_tests::completion(&long(70, "A list to keep:"), 2, 0.0, 1);
    request["stream"] = Value::Bool(false);
    request["n"] = 3.into();
    let (prompt, cached) = usage(&cluster, &request).await;
    assert!(prompt > 70, "{prompt}");
    assert_eq!(cached, 0, "nobody has asked before");
    cluster.all_back(workers).await;
    assert_eq!(usage(&cluster, &request).await, (prompt, (prompt - 1) / 16 * 16));
}

#[tokio::test]
async fn cluster_tokens_found_in_a_cache_are_told() {
    check_cached(&["--prefill", "0", "--decode", "0", "--mixed", "1"], 1).await;
    check_cached(&[], 2).await;
}

#[tokio::test]
async fn cluster_tokens_are_the_same_everywhere() {
    let expected = {
        let cluster = Cluster::up(&["--prefill", "0", "--decode", "0", "--mixed", "1"], &[], 1).await;
        let expected = alone(&cluster).await;
        check_same(&expected, &in_company(&cluster).await, "mixed, in company");
        cluster.all_back(1).await;
        expected
    };
    assert!(expected.windows(2).all(|pair| pair[0].text != pair[1].text));
    {
        let cluster = Cluster::up(&[], &[], 2).await;
        check_same(
            &expected,
            &alone(&cluster).await,
            "prefill and decode in one process",
        );
        check_same(&expected, &in_company(&cluster).await, "one process, in company");
        cluster.all_back(2).await;
        check_carriers(&cluster, &["in-process"]).await;
    }
    for chunk in [1, 7, 16, 64, 512] {
        check_over_ucx(&expected, "tcp", chunk, &["ucx-tcp"]).await;
        check_over_ucx(&expected, "shm", chunk, &["ucx-shm"]).await;
    }
}

/// A mock's tokens are made up, and a function of what was before them, wherever that was computed.
#[tokio::test]
async fn a_mock_gives_the_same_tokens_in_any_cluster() {
    let mock = ["worker.device=mock", "mock.step_us=2000"];
    let mixed = Cluster::up(&["--prefill", "0", "--decode", "0", "--mixed", "1"], &mock, 1).await;
    let expected = alone(&mixed).await;
    drop(mixed);
    let apart = Cluster::apart(2, 2, &mock).await;
    check_same(&expected, &in_company(&apart).await, "a mock's tokens");
}
