//! The clusters that cells need. Those of one setup share a cluster, one after the other.

use std::future::Future;
use std::pin::Pin;

use super::ctx::Ctx;
use crate::Cluster;

/// A cluster that is starting.
pub type Starting = Pin<Box<dyn Future<Output = Ctx> + Send>>;

/// How a cluster is started.
#[derive(Copy, Clone)]
pub struct Setup {
    /// In words, for the table.
    pub name: &'static str,
    /// Starts it; returns when it can serve.
    pub start: fn() -> Starting,
}

/// Deadlines that make a cell short, where a fault is found by nothing else. The lease and the heartbeat stay as they are.
pub(super) const SHORT: [&str; 5] = [
    "limits.prefill_stall_ms=5000",
    "limits.decode_stall_ms=5000",
    "limits.pull_ms=6000",
    "limits.queue_ms=8000",
    "log.filter=info,runtime=debug,ractor=warn",
];

/// A gateway, and so many workers of each role, with [`SHORT`] and these settings.
pub(crate) async fn apart(prefill: usize, decode: usize, sets: &[&str]) -> Ctx {
    let sets: Vec<&str> = SHORT.iter().chain(sets).copied().collect();
    let cluster = Cluster::apart(prefill, decode, &sets).await;
    Ctx::new(cluster, prefill + decode)
}

/// Two of each role, over TCP.
pub(crate) static TWO: Setup = Setup {
    name: "2 prefill, 2 decode, tcp",
    start: || {
        Box::pin(apart(
            2,
            2,
            &["ucx.tls=tcp", "worker.chunk_tokens=32", "limits.queue_ms=120000"],
        ))
    },
};

/// Two of each role, over shared memory.
pub(crate) static TWO_SHM: Setup = Setup {
    name: "2 prefill, 2 decode, shm",
    start: || {
        Box::pin(apart(
            2,
            2,
            &["ucx.tls=shm", "worker.chunk_tokens=32", "limits.queue_ms=120000"],
        ))
    },
};

/// One of each role, over TCP, with few slots and a pool of one context and a little.
pub(crate) static SMALL: Setup = Setup {
    name: "1 prefill, 1 decode, 2 slots, least pool, tcp",
    start: || {
        Box::pin(apart(
            1,
            1,
            &[
                "ucx.tls=tcp",
                "worker.chunk_tokens=32",
                "worker.slots=2",
                "limits.queue_ms=3000",
                "worker.pool_mib=362",
            ],
        ))
    },
};

/// One of each role, over TCP, with a pool that two long answers grow out of.
pub(crate) static GROWING: Setup = Setup {
    name: "1 prefill, 1 decode, least pool, tcp",
    start: || {
        let sets = [
            "ucx.tls=tcp",
            "worker.pool_mib=362",
            "limits.queue_ms=60000",
            "limits.decode_stall_ms=20000",
            "limits.prefill_stall_ms=20000",
            "worker.threads=2",
            "worker.chunk_tokens=256",
        ];
        Box::pin(async move { apart(1, 1, &sets).await })
    },
};
