//! Lost messages, workers that do not fit, and orderly ends.

use std::time::{Duration, Instant};

use integration_tests::{Cluster, Signal, Stream, answer, completion, get, post};

use crate::prompts::{check_whole, long};

const LIMIT: Duration = Duration::from_secs(30);

/// Opens a stream and reads its first tokens.
async fn streaming(cluster: &Cluster, prompt: &str, tokens: u32) -> Stream {
    let request = completion(prompt, tokens, 0.0, 0);
    let mut stream = Stream::open(cluster.ports().http, &request).await.unwrap();
    stream.read_tokens(3).await.unwrap();
    stream
}

/// Clients leave in prefill and in decode, and no `Close` ever arrives.
async fn every_close_is_lost(cluster: &mut Cluster) {
    let stream = streaming(cluster, "A guest who leaves early", 400).await;
    let rooms = cluster.rooms().await;
    assert_eq!(rooms.len(), 1, "{rooms:#?}");
    let room = rooms[0].room.clone();
    drop(stream);
    let answered = || async {
        let open = cluster.rooms().await;
        let ended = cluster.rooms_ended().await;
        let mut all = open.into_iter().chain(ended);
        all.find(|view| view.room == room)?.outcome
    };
    let (outcome, after) = cluster.until("the room has its outcome", answered).await;
    assert_eq!(outcome, "aborted");
    println!("every Close lost: outcome after {after:?}");
    println!("  blocks back after {:?} more", cluster.all_back(2).await);
    check_telling_again_is_logged(cluster, &room);
    // Nobody told the decode worker: it saw it by the digest.
    let told = cluster.process("decode-0").log();
    assert!(
        told.contains("not_in_digest") && !told.contains("closed_by_owner"),
        "{told}"
    );

    // A deadline of the client's own, in the middle of a prompt: it hears at once, whatever becomes of the Close.
    let mut request = completion(&long(3_000, "Never finished:"), 4, 0.0, 0);
    request["timeout"] = serde_json::json!(1);
    let started = Instant::now();
    let expired = answer(cluster.ports().http, &request).await;
    println!(
        "  a deadline of 1 s: {} after {:?}",
        expired.status,
        started.elapsed()
    );
    assert_eq!(expired.status, 504, "{expired:?}");
    println!("  blocks back after {:?} more", cluster.all_back(2).await);
}

/// The line names the room and the worker.
fn check_telling_again_is_logged(cluster: &mut Cluster, room: &str) {
    let log = cluster.process("gateway-0").log();
    let parts = ["told again to return its lease", room, "worker=\"decode-0\""];
    let found = log
        .lines()
        .find(|line| parts.iter().all(|part| line.contains(part)));
    println!("  {}", found.expect("the log says that the worker is told again"));
}

/// A worker with another block size is refused with the reason, at both ends, and is never used.
async fn a_stranger_is_refused(cluster: &mut Cluster) {
    cluster.start_worker("decode", "stranger", &["worker.block_tokens=32"]);
    let give_up_at = Instant::now() + LIMIT;
    let reason = loop {
        let log = cluster.process("stranger").log();
        let line = log.lines().find(|line| line.contains("refused"));
        if let Some(line) = line {
            break line.to_owned();
        }
        assert!(Instant::now() < give_up_at, "the stranger is not refused");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    println!("a worker with other blocks: {reason}");
    assert!(reason.contains("blocks hold 32 tokens"), "{reason}");
    let told = cluster.process("gateway-0").log();
    assert!(
        told.contains("a worker was refused") && told.contains("stranger (decode)"),
        "the gateway says whom it refused"
    );
    let workers = cluster.workers().await;
    assert!(
        workers.iter().all(|worker| worker.name != "stranger"),
        "{workers:#?}"
    );
    check_whole(
        &[answer(cluster.ports().http, &completion("Still here?", 4, 0.0, 0)).await],
        4,
    );
    cluster.process("stranger").signal(Signal::Terminate);
    let status = cluster.process("stranger").ended(LIMIT).await;
    assert!(
        status.success(),
        "a worker without a gateway ends in order: {status}"
    );
}

/// A worker whose UCX cannot start says at once which settings are to blame, and ends: it does not try again and again.
async fn a_worker_without_transport_ends(cluster: &mut Cluster) {
    cluster.start_worker("decode", "mute", &["ucx.tls=nonsense"]);
    let status = cluster.process("mute").ended(LIMIT).await;
    let log = cluster.process("mute").log();
    let said = log
        .lines()
        .filter(|line| line.contains("ucx.tls = \"nonsense\""))
        .count();
    assert!(!status.success() && said == 1, "{status}: {log}");
}

/// Waits until the gateway, which was told to stop, says so; then no request is let in, while the doors are open.
async fn check_closing(cluster: &Cluster) {
    let to = cluster.ports().http;
    let closing = || async {
        let ready = get(to, "/health/ready").await.unwrap();
        (ready.status == 503).then_some(ready)
    };
    let (ready, _) = cluster.until("the gateway is closing", closing).await;
    let ready = ready.text().await.unwrap();
    assert!(ready.contains("shutting down"), "{ready}");
    let refused = post(to, "/v1/completions", &completion("Too late", 4, 0.0, 0))
        .await
        .unwrap();
    let (status, retry_after) = (refused.status, refused.retry_after.clone());
    let why = refused.text().await.unwrap();
    assert_eq!((status, retry_after.as_deref()), (503, Some("1")), "{why}");
}

/// Told to stop, a gateway refuses what is new and lets streams finish; one that does not within the grace is told why. Then it and its
/// workers exit with 0.
async fn everybody_leaves_in_order(cluster: &mut Cluster) {
    let to = cluster.ports().http;
    let mut last = Stream::open(to, &completion("The last guest", 12, 0.0, 0))
        .await
        .unwrap();
    last.read_tokens(2).await.unwrap();
    let sleeper = streaming(cluster, "A guest who does not wake up", 4_000).await;
    cluster.process("gateway-0").signal(Signal::Terminate);
    check_closing(cluster).await;
    check_whole(&[last.finish().await.unwrap()], 12);
    let ended = sleeper.finish().await.unwrap();
    let why = ended.error.as_ref().and_then(|error| error["message"].as_str());
    assert!(
        !ended.done && why.is_some_and(|why| why.contains("shutting down")),
        "{ended:?}"
    );
    for name in ["gateway-0", "prefill-0", "decode-0"] {
        if name != "gateway-0" {
            cluster.process(name).signal(Signal::Terminate);
        }
        let started = Instant::now();
        let status = cluster.process(name).ended(LIMIT).await;
        println!("SIGTERM: {name} ended after {:?}: {status}", started.elapsed());
        assert!(status.success(), "{name}: {status}");
    }
}

/// Told to stop a second time, a gateway does not wait for anybody.
async fn one_who_is_told_twice_leaves_at_once(cluster: &mut Cluster) {
    let stream = streaming(cluster, "A guest who is thrown out", 4_000).await;
    cluster.process("gateway-0").signal(Signal::Terminate);
    check_closing(cluster).await;
    cluster.process("gateway-0").signal(Signal::Terminate);
    let status = cluster.process("gateway-0").ended(LIMIT).await;
    assert!(!status.success(), "{status}");
    let log = cluster.process("gateway-0").log();
    assert!(log.contains("a second time"), "{log}");
    let cut = stream.finish().await;
    assert!(!matches!(&cut, Ok(answer) if answer.done), "{cut:?}");
    cluster.start_gateway(&[]);
    cluster.ready(2).await;
    cluster.all_back(2).await;
}

#[tokio::test]
async fn cluster_outlives_lost_messages_and_gateways() {
    let sets = ["log.filter=info,runtime=debug"];
    let mut cluster = Cluster::new(&sets).await;
    cluster.start_gateway(&["mesh.lose=[\"close\"]"]);
    cluster.start_worker("prefill", "prefill-0", &[]);
    cluster.start_worker("decode", "decode-0", &[]);
    cluster.ready(2).await;
    every_close_is_lost(&mut cluster).await;
    a_stranger_is_refused(&mut cluster).await;
    a_worker_without_transport_ends(&mut cluster).await;
    one_who_is_told_twice_leaves_at_once(&mut cluster).await;
    everybody_leaves_in_order(&mut cluster).await;
}
