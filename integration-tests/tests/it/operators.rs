//! What an operator is told by a gateway's admin listener, and can do there, while a prompt hangs in a worker that is alive.

use std::net::SocketAddr;

use integration_tests::{Cluster, Stream, completion, get, innkeeper, post};
use serde_json::{Value, json};

async fn asked(admin: SocketAddr, path: &str) -> (u16, String) {
    let answer = get(admin, path).await.unwrap();
    (answer.status, answer.text().await.unwrap())
}

async fn told(admin: SocketAddr, path: &str) -> Value {
    let (status, text) = asked(admin, path).await;
    assert_eq!(status, 200, "{path}: {text}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}"))
}

#[track_caller]
fn has(value: &Value, part: &str) {
    let text = value.to_string();
    assert!(text.contains(part), "no {part:?} in {text}");
}

async fn refused(admin: SocketAddr, path: &str, status: u16, parts: &[&str]) {
    let (found, text) = asked(admin, path).await;
    assert_eq!(found, status, "{path}: {text}");
    for part in parts {
        assert!(text.contains(part), "{path}: no {part:?} in {text}");
    }
}

/// The first of an endless stream of events that holds all of these.
async fn event(admin: SocketAddr, parts: &[&str]) -> String {
    let mut answer = get(admin, "/events").await.unwrap();
    assert_eq!(answer.status, 200);
    let mut text = String::new();
    loop {
        let bytes = answer.next().await.unwrap().expect("events without end");
        text.push_str(&String::from_utf8_lossy(&bytes));
        if parts.iter().all(|part| text.contains(part)) {
            return text;
        }
        assert!(text.len() < 10 << 20, "never {parts:?}");
    }
}

/// Those who watch hear of a stuck room; lists can be narrowed to it.
async fn is_seen(admin: SocketAddr, room: &str) {
    event(
        admin,
        &[
            "event: overview",
            "event: rooms",
            room,
            "prefill-0 to compute the prompt",
        ],
    )
    .await;
    let listed = |query: &'static str| async move {
        told(admin, &format!("/rooms?{query}"))
            .await
            .as_array()
            .map(Vec::len)
    };
    assert_eq!(
        listed("phase=prefilling&worker=prefill-0&older_than_ms=1000").await,
        Some(1)
    );
    assert_eq!(listed("phase=decoding").await, Some(0));
    assert_eq!(listed("worker=prefill-1").await, Some(0));
    let glance = told(admin, "/overview").await;
    assert_eq!(glance["phases"][2]["oldest"], room);
    assert_eq!(glance["workers"].as_array().map(Vec::len), Some(2));
    assert_eq!(told(admin, "/links").await.as_array().map(Vec::len), Some(2));
}

/// What a command says to an operator who asks this gateway.
#[track_caller]
fn command(admin: SocketAddr, arguments: &[&str], parts: &[&str]) {
    // As it stands in a browser.
    let admin = format!("http://{admin}/");
    let (succeeds, said) = innkeeper(&[arguments, &["--admin", &admin]].concat());
    assert!(succeeds, "{arguments:?}: {said}");
    for part in parts {
        assert!(said.contains(part), "{arguments:?}: no {part:?} in\n{said}");
    }
}

fn names(list: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    names
}

/// The gateway says where the worker is asked; the worker says that its engine hangs, and whose room is in it.
async fn worker_is_asked(cluster: &Cluster, room: &str) {
    let admin = cluster.ports().admin;
    let worker = cluster.worker_admin("prefill-0");
    let workers = told(admin, "/workers").await;
    let all = workers.as_array().unwrap();
    let it = all.iter().find(|one| one["name"] == "prefill-0").unwrap();
    assert_eq!(it["admin"], worker.to_string(), "{it:#}");
    command(
        admin,
        &["rooms", "--worker", "prefill-0"],
        &[room, "prefill-0 is linked", &format!("http://{worker}/stays")],
    );
    let health = told(worker, "/health").await;
    let step_ms = health["workers"][0]["step_ms"].as_u64();
    assert!(step_ms.is_some_and(|ms| ms > 500), "{health:#}");
    assert_eq!(health["linked"], Value::Null, "{health:#}");
    has(&told(worker, "/stays").await, room);
    // The gateway lists those that are linked, and does not say that it has no workers.
    let health = told(admin, "/health").await;
    assert_eq!(names(&health["linked"]), ["decode-0", "prefill-0"], "{health:#}");
    assert_eq!(health.get("workers"), None, "{health:#}");
}

/// A room that ended is found by what became of it and by whom it had, with the time.
async fn is_remembered(admin: SocketAddr, room: &str) {
    let query = "outcome=aborted&reason=operator&phase=prefilling&worker=prefill-0";
    let found = told(admin, &format!("/rooms/ended?{query}")).await;
    assert_eq!(found.as_array().map(Vec::len), Some(1), "{found:#}");
    let it = &found[0];
    assert_eq!(it["room"], room);
    assert!(
        it["ended_ms_ago"].as_u64().is_some_and(|ms| ms < 600_000),
        "{it:#}"
    );
    assert!(
        it["ended_at"]
            .as_str()
            .is_some_and(|at| at.starts_with("20") && at.ends_with('Z')),
        "{it:#}"
    );
    has(&it["workers"], "prefill-0");
    has(&it["workers"], "decode-0");
    for query in [
        "outcome=completed",
        "reason=client_gone",
        "phase=decoding",
        "worker=decode-1",
    ] {
        let none = told(admin, &format!("/rooms/ended?{query}")).await;
        assert_eq!(none.as_array().map(Vec::len), Some(0), "{query}: {none:#}");
    }
    refused(
        admin,
        "/rooms/ended?outcome=lost",
        400,
        &["completed, aborted, failed, expired"],
    )
    .await;
}

/// The same in a terminal.
#[track_caller]
fn is_listed(cluster: &Cluster, room: &str) {
    let admin = cluster.ports().admin;
    command(
        admin,
        &[
            "rooms",
            "--ended",
            "--worker",
            "prefill-0",
            "--outcome",
            "aborted",
        ],
        &[
            room,
            "aborted (operator)",
            " ago, ",
            " UTC",
            "decode-0",
            "prefill-0 is linked",
        ],
    );
    command(
        admin,
        &["rooms", "--worker", "nobody"],
        &[
            "no open room matches",
            "no worker nobody is linked now (linked are decode-0, prefill-0)",
        ],
    );
    let stays_of_worker = format!("prefill-0 (http://{}/stays)", cluster.worker_admin("prefill-0"));
    command(
        admin,
        &["explain", room],
        &["an operator ended it", &stays_of_worker],
    );
}

/// The worker remembers it as well, and what ended last comes first.
async fn is_before(cluster: &Cluster, room: &str) {
    let admin = cluster.ports().admin;
    let stays = told(cluster.worker_admin("prefill-0"), "/stays/ended").await;
    assert_eq!(stays[0]["room"], room);
    assert!(
        stays[0]["ended_ms_ago"].is_u64() && stays[0]["ended_at"].is_string(),
        "{stays:#}"
    );
    let answer = integration_tests::answer(cluster.ports().http, &completion("And another", 2, 0.0, 0)).await;
    assert!(answer.done, "{answer:?}");
    cluster.all_back(2).await;
    let ended = told(admin, "/rooms/ended").await;
    assert_eq!(
        (&ended[0]["outcome"], &ended[1]["room"]),
        (&json!("completed"), &json!(room)),
        "{ended:#}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_prompt_is_explained_and_can_be_ended() {
    let cluster = Cluster::apart(1, 1, &["limits.prefill_stall_ms=60000"]).await;
    let (http, admin) = (cluster.ports().http, cluster.ports().admin);
    cluster
        .fault("prefill-0", &json!({"engine": {"stuck": true}}))
        .await;
    let request = completion("Where is my request?", 8, 0.0, 1);
    let stuck = tokio::spawn(async move { Stream::open(http, &request).await?.finish().await });
    let prefilling = || async {
        cluster
            .rooms()
            .await
            .into_iter()
            .find(|room| room.phase == "prefilling")
    };
    let (room, _) = cluster.until("a room computes its prompt", prefilling).await;

    // By its name, its number and its trace: the same account.
    let path = |what: &str| format!("/rooms/{what}/explain");
    let account = told(admin, &path(&room.room)).await;
    let number = room.room.rsplit('-').next().unwrap();
    for what in [
        number,
        account[0]["trace_id"].as_str().unwrap(),
        account[0]["request_id"].as_str().unwrap(),
    ] {
        assert_eq!(
            told(admin, &path(what)).await[0]["room"],
            room.room.as_str(),
            "{what}"
        );
    }
    has(
        &account[0]["summary"],
        "it waits for prefill-0 to compute the prompt (0 of",
    );
    has(&account[0]["ends"]["deadline"], "without progress of a prompt");
    has(&account[0]["held_by"], "\"worker\":\"prefill-0\"");
    has(
        &account[0]["history"],
        "credit: prefill-0 computes the prompt, decode-0 the answer",
    );
    let reason = || async {
        let account = told(admin, &path(&room.room)).await;
        account[0]["odd"]
            .to_string()
            .contains("though its link is alive")
            .then_some(())
    };
    cluster
        .until("it is said that the worker is alive and does nothing", reason)
        .await;

    is_seen(admin, &room.room).await;
    worker_is_asked(&cluster, &room.room).await;

    let ended = post(admin, &format!("/rooms/{}/abort", room.room), &Value::Null)
        .await
        .unwrap();
    assert_eq!(ended.status, 202);
    let answer = stuck.await.unwrap().unwrap();
    assert!(!answer.done && answer.tokens.is_empty(), "{answer:?}");
    cluster.fault("prefill-0", &json!({"calm": true})).await;
    cluster.all_back(2).await;
    let account = told(admin, &path(&room.room)).await;
    has(&account[0]["summary"], "an operator ended it");
    assert_eq!(account[0]["ends"], Value::Null);
    is_remembered(admin, &room.room).await;
    is_listed(&cluster, &room.room);
    is_before(&cluster, &room.room).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_is_drained_and_undrained_and_mistakes_are_named() {
    let cluster = Cluster::apart(1, 2, &[]).await;
    let (http, admin) = (cluster.ports().http, cluster.ports().admin);
    let drained = post(admin, "/workers/decode-0/drain", &Value::Null)
        .await
        .unwrap();
    let status = drained.status;
    assert_eq!(status, 202, "{:?}", drained.text().await);
    for seed in 0..4 {
        let answer = integration_tests::answer(http, &completion("An inn", 4, 1.0, seed)).await;
        assert!(answer.done, "{answer:?}");
    }
    let served = |workers: &Value, name: &str| {
        let all = workers.as_array().unwrap();
        all.iter().find(|worker| worker["name"] == name).unwrap()["kv_bytes_in"]
            .as_u64()
            .unwrap()
    };
    let brought = || async {
        let workers = told(admin, "/workers").await;
        (served(&workers, "decode-1") > 0).then_some(workers)
    };
    let (workers, _) = cluster.until("decode-1 has served", brought).await;
    assert_eq!(
        served(&workers, "decode-0"),
        0,
        "nothing new goes to a worker that is drained"
    );
    post(admin, "/workers/decode-1/drain", &Value::Null)
        .await
        .unwrap();
    let (status, text) = asked(http, "/health/ready").await;
    assert_eq!(status, 503, "{text}");
    for name in ["decode-0", "decode-1"] {
        let undrained = post(admin, &format!("/workers/{name}/undrain"), &Value::Null)
            .await
            .unwrap();
        assert_eq!(undrained.status, 202);
    }
    let answer = integration_tests::answer(http, &completion("An inn", 4, 1.0, 9)).await;
    assert!(answer.done, "{answer:?}");

    let nobody = post(admin, "/workers/nobody/drain", &Value::Null).await.unwrap();
    assert_eq!(nobody.status, 404);
    let text = nobody.text().await.unwrap();
    assert!(
        text.contains("decode-0, ") || text.contains(", decode-0"),
        "{text}"
    );
    refused(
        admin,
        "/rooms?phase=sleeping",
        400,
        &["sleeping", "queued, reserving, prefilling"],
    )
    .await;
    refused(admin, "/rooms?fase=queued", 400, &["fase", "older_than_ms"]).await;
    refused(admin, "/rooms?older_than_ms=long", 400, &["older_than_ms=5000"]).await;
    refused(
        admin,
        "/rooms/req_none/explain",
        404,
        &[
            "req_none",
            "gateway-",
            "`innkeeper rooms --ended` (GET /rooms/ended)",
        ],
    )
    .await;
    refused(admin, "/romos", 404, &["/romos", "/rooms"]).await;
    let (status, page) = asked(admin, "/").await;
    assert!(status == 200 && page.contains("/page/app.js"), "{page}");
}
