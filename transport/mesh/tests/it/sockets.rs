//! Over real sockets, found by a name.

use std::net::SocketAddr;

use mesh::{Config, Dialer, GatewayNode, Listener, Target, client_config, dial_endpoint, listen_endpoint};
use wire::{Role, ToGateway};

use crate::nodes::{World, gateway_owner, hello, key, worker_owner};

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

#[tokio::test]
async fn a_gateway_is_found_by_name() {
    let world = World::new();
    let config = Config::default();
    let endpoint = listen_endpoint(loopback(), &world.identity(&[Role::Gateway]), &config).unwrap();
    let (gateway, mut at_gateway) = gateway_owner();
    let node = GatewayNode {
        name: "gateway".to_owned(),
        epoch: 1,
    };
    let listener = Listener::start(endpoint, node, gateway, config.clone());
    let port = listener.local_addr().unwrap().port();

    let client = client_config(&world.identity(&[Role::Decode]), &config).unwrap();
    let (worker, mut at_worker, _failures) = worker_owner();
    let targets = vec![
        format!("localhost:{port}").parse::<Target>().unwrap(),
        Target::Address(listener.local_addr().unwrap()),
    ];
    let endpoint = dial_endpoint(loopback()).unwrap();
    let dialer = Dialer::start(endpoint, client, targets, hello("worker", 2), worker, config);
    at_gateway.up().await;
    let (link, _) = at_worker.up().await;
    // The name and the address are the same gateway: one link.
    assert_eq!(dialer.status().len(), 1);
    link.send(&ToGateway::Closed { key: key(1) }).unwrap();
    assert_eq!(at_gateway.frame().await, ToGateway::Closed { key: key(1) });
    dialer.stop().await;
    at_gateway.down().await;
    listener.stop().await;
}

#[tokio::test]
async fn a_taken_address_is_said() {
    let world = World::new();
    let identity = world.identity(&[Role::Gateway]);
    let first = listen_endpoint(loopback(), &identity, &Config::default()).unwrap();
    let taken = first.local_addr().unwrap();
    let error = listen_endpoint(taken, &identity, &Config::default()).unwrap_err();
    assert!(error.to_string().contains(&taken.to_string()), "{error}");
}
