//! A worker is drained, takes rooms again, and gets another role, while the cluster serves: no answer fails.

use std::path::PathBuf;

use integration_tests::{Answer, Cluster, completion, get, innkeeper, post};
use mesh::DevCa;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use wire::Role;

/// Answers under way, of which there are always as many again.
struct Load(JoinSet<Answer>);

impl Load {
    fn begin(cluster: &Cluster, tokens: u32) -> Self {
        let mut load = Self(JoinSet::new());
        load.more(cluster, tokens);
        load
    }

    fn more(&mut self, cluster: &Cluster, tokens: u32) {
        let http = cluster.ports().http;
        for seed in 0..6 {
            let request = completion("The guests of an inn are", tokens, 1.0, seed);
            self.0
                .spawn(async move { integration_tests::answer(http, &request).await });
        }
    }

    /// None of them failed, and all are whole.
    async fn all_well(self, tokens: u32) {
        for answer in self.0.join_all().await {
            let whole = answer.done && answer.tokens.len() == tokens as usize;
            assert!(whole && answer.error.is_none(), "{answer:?}");
        }
    }
}

/// A command's last argument is the gateway that it asks. Beside the runtime: it may wait for long.
async fn command(cluster: &Cluster, arguments: &[&str]) -> (bool, String) {
    let admin = cluster.ports().admin.to_string();
    let all: Vec<String> = arguments
        .iter()
        .copied()
        .chain(["--admin", &admin])
        .map(str::to_owned)
        .collect();
    let run = move || innkeeper(&all.iter().map(String::as_str).collect::<Vec<_>>());
    tokio::task::spawn_blocking(run).await.unwrap()
}

async fn succeeds(cluster: &Cluster, arguments: &[&str], part: &str) {
    let (good, said) = command(cluster, arguments).await;
    assert!(
        good && said.contains(part),
        "{arguments:?}: no {part:?} in\n{said}"
    );
}

async fn row(cluster: &Cluster, name: &str) -> Value {
    let answer = get(cluster.ports().admin, "/workers").await.unwrap();
    let workers: Vec<Value> = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    let found = workers.into_iter().find(|worker| worker["name"] == name);
    found.unwrap_or(Value::Null)
}

/// What a worker's own probe says.
async fn probe(cluster: &Cluster, name: &str, what: &str) -> (u16, String) {
    let path = format!("/health/{what}");
    let answer = get(cluster.worker_admin(name), &path).await.unwrap();
    (answer.status, answer.text().await.unwrap())
}

async fn has_moved(cluster: &Cluster, name: &str, into: bool) {
    let key = if into { "kv_bytes_in" } else { "kv_bytes_out" };
    let has = || async {
        let worker = row(cluster, name).await;
        (worker[key].as_u64() > Some(0)).then_some(())
    };
    cluster.until(&format!("{name} has {key}"), has).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_is_drained_under_load_and_serves_again() {
    let cluster = Cluster::apart(1, 2, &[]).await;
    let load = Load::begin(&cluster, 80);
    has_moved(&cluster, "decode-0", true).await;
    succeeds(
        &cluster,
        &["drain", "decode-0", "--wait", "60s"],
        "nothing is left at decode-0",
    )
    .await;
    let (status, why) = probe(&cluster, "decode-0", "ready").await;
    assert!(
        status == 503 && why.contains("decode-0 is drained"),
        "{status} {why}"
    );
    assert_eq!(probe(&cluster, "decode-0", "live").await.0, 200);
    load.all_well(80).await;

    let before = row(&cluster, "decode-0").await;
    assert_eq!(
        (&before["draining"], &before["slots_used"]),
        (&json!(true), &json!(0))
    );
    Load::begin(&cluster, 4).all_well(4).await;
    let after = row(&cluster, "decode-0").await;
    assert_eq!(
        before["kv_bytes_in"], after["kv_bytes_in"],
        "it was given nothing"
    );

    succeeds(&cluster, &["undrain", "decode-0"], "takes new rooms again").await;
    let ready = || async { (probe(&cluster, "decode-0", "ready").await.0 == 200).then_some(()) };
    cluster.until("it is ready", ready).await;
    let more = || async {
        Load::begin(&cluster, 4).all_well(4).await;
        (row(&cluster, "decode-0").await["kv_bytes_in"] != before["kv_bytes_in"]).then_some(())
    };
    cluster.until("it serves again", more).await;
    cluster.all_back(3).await;

    // At its own listener, and of one that never ends: what is left is said, and is an error for who has waited.
    let own = cluster.worker_admin("decode-1");
    let told = post(own, "/drain", &Value::Null).await.unwrap();
    assert_eq!(told.status, 202);
    assert_eq!(row(&cluster, "decode-1").await["draining"], true);
    cluster
        .fault("decode-0", &json!({"engine": {"stuck": true}}))
        .await;
    let stuck = Load::begin(&cluster, 4);
    let here = || async { (row(&cluster, "decode-0").await["rooms_held"].as_u64() > Some(0)).then_some(()) };
    cluster.until("rooms are there", here).await;
    let (good, said) = command(&cluster, &["drain", "decode-0", "--wait", "1s"]).await;
    assert!(!good && said.contains("still at decode-0: "), "{said}");
    assert!(said.contains("of this gateway's rooms: "), "{said}");
    cluster.fault("decode-0", &json!({"calm": true})).await;
    post(own, "/undrain", &Value::Null).await.unwrap();
    stuck.all_well(4).await;
    let (good, said) = command(&cluster, &["drain", "nobody"]).await;
    assert!(!good && said.contains("linked are "), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefill_worker_becomes_one_of_decode_while_streams_go_on() {
    let mut cluster = Cluster::apart(2, 1, &[]).await;
    let mut load = Load::begin(&cluster, 80);
    has_moved(&cluster, "prefill-1", false).await;
    let before = row(&cluster, "prefill-1").await["node"].clone();
    load.more(&cluster, 80);
    succeeds(
        &cluster,
        &["role", "prefill-1", "decode", "--wait", "60s"],
        "prefill-1 is decode now",
    )
    .await;
    let after = row(&cluster, "prefill-1").await;
    assert!(after["role"] == "decode" && after["node"] != before, "{after:#}");
    let log = cluster.process("prefill-1").log();
    assert!(log.contains("its weights stay loaded"), "{log}");
    assert_eq!(log.matches("the worker begins anew in another role").count(), 1);
    load.more(&cluster, 80);
    load.all_well(80).await;
    has_moved(&cluster, "prefill-1", true).await;
    cluster.all_back(3).await;

    succeeds(&cluster, &["role", "prefill-1", "decode"], "is decode already").await;
    // And back, with the streams that it has: they go on elsewhere.
    let load = Load::begin(&cluster, 200);
    let has_some =
        || async { (row(&cluster, "prefill-1").await["slots_used"].as_u64() > Some(0)).then_some(()) };
    cluster.until("it has streams", has_some).await;
    succeeds(
        &cluster,
        &["role", "prefill-1", "prefill", "--wait", "1ms"],
        "prefill-1 is prefill now",
    )
    .await;
    load.all_well(200).await;
    cluster.all_back(3).await;
}

/// What a certificate does not name is refused before anything is drained.
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_bounds_the_roles_of_a_worker() {
    let mut cluster = Cluster::new(&[]).await;
    let (folder, ca) = (cluster.folder().join("certificates"), DevCa::new().unwrap());
    let certs = |node: &str, roles: &[Role]| {
        let folder: PathBuf = folder.join(node);
        ca.issue_to(&folder, "*", roles).unwrap();
        format!("mesh.certs={}", folder.display())
    };
    cluster.start_gateway(&[&certs("gateway-0", &[Role::Gateway])]);
    cluster.start_worker("prefill", "prefill-0", &[&certs("prefill-0", &[Role::Prefill])]);
    // A mixed one, which has had no need of UCX.
    let any = [Role::Prefill, Role::Decode, Role::Mixed];
    cluster.start_worker("mixed", "any-0", &[&certs("any-0", &any)]);
    cluster.ready(2).await;
    let (good, said) = command(&cluster, &["role", "prefill-0", "decode"]).await;
    assert!(!good && said.contains("decode.innkeeper"), "{said}");
    let same = row(&cluster, "prefill-0").await;
    assert!(same["role"] == "prefill" && same["draining"] == false, "{same:#}");
    succeeds(&cluster, &["role", "any-0", "decode"], "any-0 is decode now").await;
    Load::begin(&cluster, 4).all_well(4).await;
    has_moved(&cluster, "any-0", true).await;
    cluster.all_back(2).await;
}
