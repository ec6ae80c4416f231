//! The same tokens and the same log-probabilities, however the work is spread over workers, and in whatever company.

use integration_tests::{Answer, Cluster, answers};
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
        &format!("two processes over {tls}"),
    );
    check_same(
        expected,
        &in_company(&cluster).await,
        &format!("over {tls}, in company"),
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
    check_over_ucx(&expected, "tcp", 128, &["ucx-tcp"]).await;
    check_over_ucx(&expected, "shm", 7, &["ucx-shm"]).await;
}
