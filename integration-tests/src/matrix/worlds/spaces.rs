//! Every node is in a network namespace of its own, with one network for links and another for KV.

use super::WORKERS;
use crate::matrix::ctx::Ctx;
use crate::matrix::setup::{SHORT, Setup};
use crate::{Cluster, Lane, Net};

/// The networks, or what the machine lacks for them.
pub(crate) struct Spaces(pub(crate) Result<Net, String>);

/// Two of each role, control and data apart. Where that cannot be had it is a cluster like others, and its cells skip themselves.
pub(crate) static SPACES: Setup = Setup {
    name: "2 prefill, 2 decode, each in a network namespace, control and data apart",
    start: || Box::pin(start()),
};

async fn start() -> Ctx {
    let names = WORKERS.map(|(_, name)| name);
    let laid = match Net::possible() {
        Ok(()) => Net::lay(&names),
        Err(lacking) => Err(lacking),
    };
    let sets: Vec<&str> = SHORT
        .iter()
        .chain(&["ucx.tls=tcp", "worker.chunk_tokens=32"])
        .copied()
        .collect();
    let mut cluster = Cluster::new(&sets).await;
    let laid = match laid {
        Ok(net) => Ok(apart(&mut cluster, net)),
        Err(lacking) => {
            cluster.start_gateway(&[]);
            for (role, name) in WORKERS {
                cluster.start_worker(role, name, &[]);
            }
            Err(lacking)
        }
    };
    cluster.ready(WORKERS.len()).await;
    let mut ctx = Ctx::new(cluster, WORKERS.len());
    ctx.extra = Some(Box::new(Spaces(laid)));
    ctx
}

/// Starts everybody in a place of its own, with doors for the test.
fn apart(cluster: &mut Cluster, mut net: Net) -> Net {
    let ports = cluster.ports();
    let mesh = format!("{}:{}", net.hub_address(Lane::Control), ports.mesh.port());
    behind(cluster, "gateway-0", &net.in_hub());
    cluster.start_gateway(&[&format!("mesh.listen={mesh}")]);
    for port in [ports.http, ports.admin, cluster.door("gateway-0")] {
        net.door(None, port);
    }
    for (role, name) in WORKERS {
        behind(cluster, name, &net.inside(name));
        let bind = net.address(name, Lane::Data);
        let sets = [
            format!("mesh.gateways=[\"{mesh}\"]"),
            format!("ucx.bind={bind}"),
            "ucx.net_devices=data".to_owned(),
        ];
        cluster.start_worker(role, name, &sets.each_ref().map(String::as_str));
        net.door(Some(name), cluster.door(name));
    }
    net
}

fn behind(cluster: &mut Cluster, name: &str, prefix: &[String]) {
    let words: Vec<&str> = prefix.iter().map(String::as_str).collect();
    cluster.behind(name, &words);
}
