//! Our own, as somebody would start it.

use std::sync::OnceLock;

use tokio::sync::OnceCell;

use super::{Alive, Server, Size};
use crate::cluster::{Cluster, MODEL};
use crate::prepare;

/// `innkeeper up` with one worker that does both.
pub(super) async fn mixed(size: Size) -> Server {
    const UP: [&str; 6] = ["--prefill", "0", "--decode", "0", "--mixed", "1"];
    let bytes = kv_bytes_per_token().await * (size.tokens * size.streams) as f64;
    // A whole context must fit; and a sixteenth more, for blocks that are not full.
    let bytes = (bytes * 1.07).max(kv_bytes_per_token().await * 9_000.0);
    let sets = [
        "worker.threads=0".to_owned(),
        format!("worker.slots={}", size.streams.max(2)),
        format!("worker.pool_mib={:.0}", (bytes / f64::from(1 << 20)).ceil()),
        "log.filter=warn".to_owned(),
    ];
    up(&UP, &sets, 1).await
}

/// `innkeeper up --processes` with a prefill and a decode worker whose engines take no time.
pub(super) async fn apart(size: Size, more: &[String]) -> Server {
    const UP: [&str; 5] = ["--processes", "--prefill", "1", "--decode", "1"];
    mocks(&UP, 2, size, more).await
}

/// `innkeeper up` as told, with so many workers whose engines take no time.
pub(in crate::bench) async fn mocks(up_as: &[&str], workers: usize, size: Size, more: &[String]) -> Server {
    // 16 bytes a token: enough for twice as many as are to be there.
    let mib = (size.streams * size.tokens * 16 * 2) >> 20;
    let mut sets = vec![
        "worker.device=mock".to_owned(),
        format!("worker.slots={}", size.streams.max(16)),
        format!("worker.pool_mib={}", mib.max(64)),
        format!("api.max_requests={}", (size.streams * 2).max(4_096)),
        format!("limits.queue_rooms={}", (size.streams * 2).max(1_024)),
        "log.filter=warn".to_owned(),
    ];
    sets.extend_from_slice(more);
    up(up_as, &sets, workers).await
}

async fn up(up_as: &[&str], sets: &[String], workers: usize) -> Server {
    let given: Vec<&str> = sets.iter().map(String::as_str).collect();
    let mut cluster = Cluster::up(up_as, &given, workers).await;
    let family = cluster.process("up").id();
    Server {
        to: cluster.ports().http,
        model: MODEL.to_owned(),
        settings: format!("{}, `up {} {}`", version(), up_as.join(" "), sets.join(" ")),
        families: vec![family],
        alive: Alive::Ours(Box::new(cluster)),
    }
}

fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| prepare::innkeeper(&["--version"]).1.trim().to_owned())
}

/// Bytes of the KV of one token, as the engine of this build keeps it: seen at a worker's own count of the blocks in its pool.
async fn kv_bytes_per_token() -> f64 {
    static BYTES: OnceCell<f64> = OnceCell::const_new();
    const MIB: u32 = 512;
    const BLOCK_TOKENS: u32 = 16;
    let measured = BYTES.get_or_init(|| async {
        let sets = [
            format!("worker.pool_mib={MIB}"),
            format!("worker.block_tokens={BLOCK_TOKENS}"),
        ];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let up = ["--prefill", "0", "--decode", "0", "--mixed", "1"];
        let cluster = Cluster::up(&up, &sets, 1).await;
        let blocks = cluster.workers().await[0].blocks_total;
        f64::from(MIB) * f64::from(1 << 20) / f64::from(blocks * BLOCK_TOKENS)
    });
    *measured.await
}
