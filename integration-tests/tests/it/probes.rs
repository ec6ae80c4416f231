//! What probes are told by a gateway and by workers: each speaks for itself, alive whatever becomes of the others.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use integration_tests::{Cluster, Signal, answer, completion, get};
use serde_json::json;
use tokio::time::sleep;

const PATIENCE: Duration = Duration::from_secs(30);

/// Asks until the answer is this one.
async fn check(admin: SocketAddr, probe: &str, status: u16, part: &str) {
    let started = Instant::now();
    loop {
        let found = match get(admin, &format!("/health/{probe}")).await {
            Ok(answer) => (answer.status, answer.text().await.unwrap()),
            Err(why) => (0, why),
        };
        if found.0 == status && found.1.contains(part) {
            return;
        }
        assert!(
            started.elapsed() < PATIENCE,
            "{probe}: not {status} {part:?}: {found:?}"
        );
        sleep(Duration::from_millis(50)).await;
    }
}

async fn is_well(admin: SocketAddr) {
    for probe in ["live", "started", "ready"] {
        check(admin, probe, 200, probe).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_process_speaks_for_itself() {
    let mut cluster = Cluster::new(&["limits.prefill_stall_ms=1000", "limits.attempts=1"]).await;
    let gateway = cluster.ports().admin;
    cluster.start_gateway(&[]);
    check(gateway, "live", 200, "live").await;
    check(gateway, "started", 200, "started").await;
    check(gateway, "ready", 503, "no worker is connected").await;
    cluster.start_worker("prefill", "prefill-0", &[]);
    cluster.start_worker("decode", "decode-0", &[]);
    let [prefill, decode] = ["prefill-0", "decode-0"].map(|name| cluster.worker_admin(name));
    for admin in [gateway, prefill, decode] {
        is_well(admin).await;
    }

    let stuck = json!({ "engine": { "stuck": true } });
    cluster.fault("prefill-0", &stuck).await;
    let told = answer(
        cluster.ports().http,
        &completion("Nobody computes this", 4, 0.0, 0),
    )
    .await;
    assert_ne!(told.finish.as_deref(), Some("length"), "{told:?}");
    check(prefill, "ready", 503, "a step of prefill-0 has lasted for").await;
    check(prefill, "live", 200, "live").await;
    check(gateway, "ready", 200, "ready").await;
    cluster.fault("prefill-0", &json!({ "calm": true })).await;
    is_well(prefill).await;

    cluster.process("gateway-0").signal(Signal::Kill);
    for (admin, name) in [(prefill, "prefill-0"), (decode, "decode-0")] {
        check(admin, "ready", 503, &format!("{name} is linked with no gateway")).await;
        check(admin, "live", 200, "live").await;
    }
}
