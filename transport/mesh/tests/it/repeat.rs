//! The same seed gives the same packets at the same times: what a simulation of a whole cluster stands on.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mesh::{Dialer, GatewayNode, Identity, Listener, Target, client_config, server_config};
use tokio::time::{Instant, sleep};
use wire::{Role, ToGateway, ToWorker};

use crate::net::{Net, Sent};
use crate::nodes::{World, config, gateway_address, gateway_owner, hello, key, worker_address, worker_owner};

/// Two workers come, talk, lose the network, and come again.
async fn scenario(gateway: &Identity, worker: &Identity) -> Vec<Sent> {
    let net = Net::default();
    let began = Instant::now();
    let (owner, mut at_gateway) = gateway_owner();
    let server = server_config(gateway, &config()).unwrap();
    let node = GatewayNode {
        name: "gateway".to_owned(),
        epoch: 1,
    };
    let _listener = Listener::start(
        net.endpoint(gateway_address(), Some(server)),
        node,
        owner,
        config(),
    );

    let second: SocketAddr = "10.0.1.2:9002".parse().unwrap();
    let mut workers = Vec::new();
    for (address, epoch) in [(worker_address(), 1), (second, 2)] {
        let (owner, heard, _) = worker_owner();
        let client = client_config(worker, &config()).unwrap();
        let targets = vec![Target::Address(gateway_address())];
        let hello = hello(&format!("worker-{epoch}"), epoch);
        let links = Arc::clone(&owner);
        let dialer = Dialer::start(
            net.endpoint(address, None),
            client,
            targets,
            hello,
            links,
            config(),
        );
        workers.push((dialer, heard));
    }
    for (_, heard) in &mut workers {
        let (to_worker, _) = at_gateway.up().await;
        let (to_gateway, _) = heard.up().await;
        for seq in 0..200 {
            to_worker.send(&ToWorker::Close { key: key(seq) }).unwrap();
            to_gateway.send(&ToGateway::Closed { key: key(seq) }).unwrap();
        }
        sleep(Duration::from_millis(100)).await;
    }
    net.cut(gateway_address(), second, true);
    sleep(Duration::from_secs(5)).await;
    net.cut(gateway_address(), second, false);
    sleep(Duration::from_secs(5)).await;
    net.trace(began)
}

#[test]
fn packets_repeat() {
    let world = World::new();
    let (gateway, worker) = (world.identity(&[Role::Gateway]), world.identity(&[Role::Decode]));
    let trace = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().start_paused(true).build().unwrap();
        runtime.block_on(scenario(&gateway, &worker))
    };
    let (first, second) = (trace(), trace());
    assert!(first.len() > 200, "{} packets", first.len());
    let differs = first.iter().zip(&second).position(|(a, b)| a != b);
    assert_eq!(differs.map(|at| (at, first[at], second[at])), None);
    assert_eq!(first.len(), second.len());
}
