//! What Prometheus thinks of our metrics, rules and dashboard: the real one, on a real cluster.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use integration_tests::{Cluster, Prometheus, Signal, Stream, answer, completion, get, innkeeper, promtool};
use serde_json::{Value, json};

fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(path)
}

fn read(path: &str) -> String {
    let path = deploy(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The queries of the dashboard, as Grafana would send them.
fn queries_of_the_dashboard() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&read("grafana/innkeeper.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array())
        .flatten();
    let mut queries: Vec<String> = targets
        .map(|target| target["expr"].as_str().unwrap().to_owned())
        .collect();
    let annotations = dashboard["annotations"]["list"].as_array().unwrap();
    queries.extend(
        annotations
            .iter()
            .map(|one| one["expr"].as_str().unwrap().to_owned()),
    );
    assert!(queries.len() > 60, "the look at the dashboard sees its queries");
    let whole = |query: String| query.replace("$__rate_interval", "1m").replace("$instance", ".*");
    queries.into_iter().map(whole).collect()
}

/// Only nodes that send traces can drop any, and only certificates in files are known to expire.
const OF_SOME: [&str; 2] = [
    "innkeeper_traces_dropped_total",
    "innkeeper_certificate_expires_timestamp_seconds",
];

/// Names of our metrics in a query.
fn names(query: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let words = query.split(|c: char| !is_part(c));
    words
        .filter(|word| word.starts_with("innkeeper_"))
        .map(str::to_owned)
        .collect()
}

/// What people read about metrics.
fn pages() -> Vec<PathBuf> {
    let docs = deploy("../docs/runbook");
    let folders = [docs.clone(), docs.join("alerts"), docs.join("outcomes")];
    let files = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let pages: Vec<PathBuf> = files
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    assert!(pages.len() > 20);
    pages
}

/// Names of the series that a text may have: those of its families, and what makes a histogram.
fn families(text: &str) -> BTreeSet<String> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let pairs = types.filter_map(|line| line.split_once(' '));
    let all = |(name, kind): (&str, &str)| match kind {
        "histogram" => ["", "_bucket", "_sum", "_count"]
            .map(|part| format!("{name}{part}"))
            .to_vec(),
        _ => vec![name.to_owned()],
    };
    pairs.flat_map(all).collect()
}

#[test]
fn rules_and_configuration_are_right() {
    let folder = deploy("prometheus");
    for arguments in [
        &["check", "config", "prometheus.yml"][..],
        &["check", "rules", "rules.yml"],
        &["test", "rules", "rules_test.yml"],
    ] {
        let (succeeds, said) = promtool(arguments, &folder, "");
        assert!(succeeds, "promtool {arguments:?}: {said}");
    }
    // It finds what is wrong at all.
    let (succeeds, said) = promtool(
        &["check", "metrics"],
        &folder,
        "# TYPE a_total gauge\na_total 1\n",
    );
    assert!(!succeeds, "{said}");
}

/// A cluster that serves, what it says, and what a Prometheus makes of it; then three things go wrong, and each is told by its alert.
#[tokio::test(flavor = "multi_thread")]
async fn what_happens_is_seen_by_prometheus() {
    let mut cluster = Cluster::new(&[
        "limits.prefill_stall_ms=1500",
        "limits.attempts=2",
        "mesh.lease_ms=6000",
    ])
    .await;
    cluster.start_gateway(&[]);
    cluster.start_worker("prefill", "prefill-0", &[]);
    cluster.start_worker("decode", "decode-0", &[]);
    cluster.start_worker("decode", "decode-1", &[]);
    cluster.ready(3).await;
    let workers = ["prefill-0", "decode-0", "decode-1"].map(|name| cluster.worker_admin(name));
    let targets = [&[cluster.ports().admin][..], &workers].concat();
    let server = Prometheus::start(&targets, &deploy("prometheus/rules.yml")).await;
    server.until("count(up == 1) == 4").await;
    for n in 0..4 {
        let told = answer(
            cluster.ports().http,
            &completion("How is an inn kept?", 8 + n, 0.0, 0),
        )
        .await;
        assert_eq!(told.status, 200, "{told:?}");
    }
    server
        .until("sum(innkeeper_outcomes_total{outcome=\"completed\"}) == 4")
        .await;
    server
        .until("count(rate(innkeeper_worker_step_seconds_count[1m]) > 0) >= 2")
        .await;
    cluster.all_back(3).await;

    let texts = texts(&targets).await;
    check_texts(&texts);
    check_queries(&server, &texts).await;
    check_balance(&server).await;
    assert_eq!(server.firing().await, Vec::<Value>::new());

    let decode = abort_that_is_lost(&cluster, &server).await;
    decode_that_is_killed(&mut cluster, &server, &decode).await;
    prefill_that_is_stuck(&cluster, &server).await;
}

async fn texts(targets: &[SocketAddr]) -> Vec<String> {
    let mut texts = Vec::new();
    for target in targets {
        let answer = get(*target, "/metrics").await.unwrap();
        assert_eq!(answer.status, 200);
        texts.push(answer.text().await.unwrap());
        let health = get(*target, "/health").await.unwrap();
        let status = health.status;
        assert_eq!(status, 200, "{:?}", health.text().await);
    }
    texts
}

fn check_texts(texts: &[String]) {
    let folder = deploy("prometheus");
    for text in texts {
        let (succeeds, said) = promtool(&["check", "metrics"], &folder, text);
        assert!(succeeds && said.is_empty(), "{said}\n{text}");
        let series = text.lines().filter(|line| !line.starts_with('#')).count();
        println!("{series} series");
        assert!(series < 2_000, "{series} series");
    }
}

/// Every query of the dashboard and of the rules is understood, and asks for what there is.
async fn check_queries(server: &Prometheus, texts: &[String]) {
    let known: BTreeSet<String> = texts.iter().flat_map(|text| families(text)).collect();
    let rules = server.ask("rules", &[]).await.unwrap();
    let groups = rules["groups"].as_array().unwrap();
    let rules = groups.iter().flat_map(|group| group["rules"].as_array().unwrap());
    let mut queries = queries_of_the_dashboard();
    for rule in rules {
        assert_eq!(rule["health"], "ok", "{rule:#}");
        queries.push(rule["query"].as_str().unwrap().to_owned());
    }
    assert!(queries.len() > 90, "{} queries", queries.len());
    let mut with_data = 0;
    for query in &queries {
        let found = server
            .query(query)
            .await
            .unwrap_or_else(|why| panic!("{query}: {why}"));
        with_data += usize::from(!found.is_empty());
        let unknown: Vec<String> = names(query)
            .into_iter()
            .filter(|name| !known.contains(name))
            .collect();
        let unknown: Vec<String> = unknown
            .into_iter()
            .filter(|name| !OF_SOME.contains(&name.as_str()))
            .collect();
        assert!(
            unknown.is_empty(),
            "{query} asks for {unknown:?}, which nobody has"
        );
    }
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        // A name that ends so stands for all that begin so.
        let mut named = names(&text).into_iter().filter(|name| !name.ends_with('_'));
        let unknown = named.find(|name| !known.contains(name) && !OF_SOME.contains(&name.as_str()));
        assert_eq!(unknown, None, "{} names what nobody has", page.display());
    }
    println!(
        "{with_data} of {} queries have data on a cluster that is well",
        queries.len()
    );
    assert!(with_data > queries.len() / 2, "{with_data} of {}", queries.len());
    // OpenMetrics was what it asked for: exemplars came with it.
    let exemplars = [
        ("query", "innkeeper_time_to_first_token_seconds_bucket"),
        ("start", "0"),
        ("end", "9999999999"),
    ];
    let exemplars = server.ask("query_exemplars", &exemplars).await.unwrap();
    let trace = &exemplars[0]["exemplars"][0]["labels"]["trace_id"];
    assert_eq!(trace.as_str().map(str::len), Some(32), "{exemplars:#}");
}

/// Rooms open = leases held = histories open.
async fn check_balance(server: &Prometheus) {
    server.until("sum(innkeeper_rooms) == 0").await;
    server
        .until("max(abs(innkeeper_conservation_difference)) == 0")
        .await;
    let differences = server.query("innkeeper_conservation_difference").await.unwrap();
    assert_eq!(differences.len(), 5, "{differences:?}");
}

/// Waits for the alert, and gives its labels.
async fn fires(server: &Prometheus, alert: &str) -> Value {
    let found = server
        .until(&format!("ALERTS{{alertname=\"{alert}\", alertstate=\"firing\"}}"))
        .await;
    println!("{alert}: {found:?}");
    found[0].0.clone()
}

/// From the alert's worker to the reason, as the runbook has it: a room that has that worker, or the last that ended and had it, and all that is
/// told of it.
#[track_caller]
fn explained(cluster: &Cluster, worker: &str, parts: &[&str]) -> String {
    let gateway = cluster.ports().admin.to_string();
    let asked = |arguments: &[&str]| {
        let (succeeds, said) = innkeeper(&[arguments, &["--admin", &gateway]].concat());
        assert!(succeeds, "{arguments:?}: {said}");
        said
    };
    let listed = |ended: &[&str]| {
        let rooms = asked(&[&["rooms", "--worker", worker, "--json"], ended].concat());
        let rooms: Value = serde_json::from_str(&rooms).unwrap();
        rooms[0]["room"].as_str().map(str::to_owned)
    };
    let room = listed(&[]).or_else(|| listed(&["--ended"]));
    let room = room.unwrap_or_else(|| panic!("no room had {worker}"));
    let told = asked(&["explain", &room]);
    println!("{told}");
    for part in std::iter::once(&worker).chain(parts) {
        assert!(told.contains(part), "no {part:?} in\n{told}");
    }
    room
}

/// Gives the worker that did not hear of the abort.
async fn abort_that_is_lost(cluster: &Cluster, server: &Prometheus) -> String {
    cluster
        .fault("gateway-0", &json!({ "frames": { "close": "drop" } }))
        .await;
    let request = completion("A guest who leaves early", 300, 0.0, 0);
    let mut stream = Stream::open(cluster.ports().http, &request).await.unwrap();
    stream.read_tokens(3).await.unwrap();
    let decodes = ["decode-0", "decode-1"].map(|name| cluster.worker_admin(name));
    let open = stays(&decodes, "/stays").await;
    assert_eq!(open.len(), 1, "{open:#?}");
    assert_eq!(open[0]["phase"], "decoding", "{open:#?}");
    drop(stream);
    let labels = fires(server, "InnkeeperMessagesLost").await;
    assert!(
        labels["worker"].as_str().unwrap().starts_with("decode-"),
        "{labels}"
    );
    cluster.fault("gateway-0", &json!({ "calm": true })).await;
    cluster.all_back(3).await;
    // And its reason is at the worker that the alert names.
    let ended = stays(&decodes, "/stays/ended").await;
    let it = ended.iter().find(|stay| stay["room"] == open[0]["room"]).unwrap();
    assert_eq!(
        (&it["worker"], &it["why"]),
        (&labels["worker"], &json!("not_in_digest")),
        "{it:#}"
    );
    let worker = labels["worker"].as_str().unwrap();
    let room = explained(cluster, worker, &["aborted: its client left"]);
    assert_eq!(it["room"], room);
    worker.to_owned()
}

/// What workers say of their stays.
async fn stays(workers: &[SocketAddr], path: &str) -> Vec<Value> {
    let mut all = Vec::new();
    for worker in workers {
        let text = get(*worker, path).await.unwrap().text().await.unwrap();
        all.extend(serde_json::from_str::<Vec<Value>>(&text).unwrap());
    }
    all
}

async fn decode_that_is_killed(cluster: &mut Cluster, server: &Prometheus, name: &str) {
    cluster.process(name).signal(Signal::Kill);
    let labels = fires(server, "InnkeeperWorkerLost").await;
    assert_eq!(labels["worker"], name);
    // The dead have their names.
    explained(cluster, name, &["aborted: its client left"]);
    let query = "innkeeper_workers{role=\"decode\"} == 1";
    server.until(query).await;
}

async fn prefill_that_is_stuck(cluster: &Cluster, server: &Prometheus) {
    cluster
        .fault("prefill-0", &json!({ "engine": { "stuck": true } }))
        .await;
    let mut request = completion("Nobody computes this", 4, 0.0, 0);
    request["timeout"] = json!(6);
    let told = answer(cluster.ports().http, &request).await;
    assert_ne!(told.status, 200, "{told:?}");
    let labels = fires(server, "InnkeeperWorkerStalls").await;
    assert_eq!(
        (labels["worker"].as_str(), labels["reason"].as_str()),
        (Some("prefill-0"), Some("no_progress_prefilling"))
    );
    explained(cluster, "prefill-0", &["no progress in prefilling"]);
    cluster.fault("prefill-0", &json!({ "calm": true })).await;
}
