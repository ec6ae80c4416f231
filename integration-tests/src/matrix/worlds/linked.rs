//! Every link goes through a proxy of its own, and so do the clients.

use std::collections::BTreeMap;

use super::WORKERS;
use crate::matrix::ctx::Ctx;
use crate::matrix::setup::{SHORT, Setup};
use crate::{Cluster, TcpProxy, UdpProxy, UdpRule};

/// What is in the paths.
pub(crate) struct Proxies {
    /// By worker: between it and the gateway.
    links: BTreeMap<&'static str, UdpProxy>,
    /// Between clients and the gateway.
    pub(crate) clients: TcpProxy,
}

/// Two of each role, every link and every client through a proxy.
pub(crate) static LINKED: Setup = Setup {
    name: "2 prefill, 2 decode, tcp, proxies in every link",
    start: || Box::pin(start()),
};

impl Proxies {
    /// The proxy in a worker's link.
    pub(crate) fn link(&self, worker: &str) -> &UdpProxy {
        &self.links[worker]
    }

    /// The same rule for every link, both ways.
    pub(crate) fn set_all(&self, rule: UdpRule) {
        self.links.values().for_each(|link| link.set_both(rule));
    }
}

async fn start() -> Ctx {
    let sets: Vec<&str> = SHORT
        .iter()
        .chain(&["ucx.tls=tcp", "worker.chunk_tokens=32"])
        .copied()
        .collect();
    let mut cluster = Cluster::new(&sets).await;
    cluster.start_gateway(&[]);
    let mut links = BTreeMap::new();
    for (seed, (role, name)) in (0..).zip(WORKERS) {
        let link = UdpProxy::start(cluster.ports().mesh, seed).await;
        let dials = format!("mesh.gateways=[\"{}\"]", link.address());
        cluster.start_worker(role, name, &[&dials]);
        links.insert(name, link);
    }
    let clients = TcpProxy::start(cluster.ports().http).await;
    cluster.ready(WORKERS.len()).await;
    let mut ctx = Ctx::new(cluster, WORKERS.len());
    ctx.extra = Some(Box::new(Proxies { links, clients }));
    ctx
}
