//! Certificates that are replaced while links are up.

use mesh::{Credentials, DevCa, Dialer, Target, client_config, server_config};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;
use wire::Role;

use crate::nodes::{World, config, gateway_address, hello, worker_address, worker_owner};

/// A gateway and a worker of one authority, which both then leave for another.
#[tokio::test(start_paused = true)]
async fn the_next_link_is_made_with_what_is_new() {
    let world = World::new();
    let mut gateway = world.gateway(1, config());
    let (owner, mut heard, mut failures) = worker_owner();
    let old = client_config(&world.identity(&[Role::Decode]), &config()).unwrap();
    let credentials = Credentials::from(old);
    let dialer = Dialer::start(
        world.net.endpoint(worker_address(), None),
        credentials.clone(),
        vec![Target::Address(gateway_address())],
        hello("worker", 1),
        Arc::clone(&owner) as _,
        config(),
    );
    gateway.heard.up().await;
    heard.up().await;

    let authority = DevCa::new().unwrap();
    let server = server_config(&authority.issue("gateway", &[Role::Gateway]).unwrap(), &config()).unwrap();
    gateway.endpoint.set_server_config(Some(server));
    // The link goes on: neither end looks at certificates again.
    sleep(Duration::from_secs(60)).await;
    assert_eq!(gateway.listener.stats().links, 1);
    world.net.cut(gateway_address(), worker_address(), true);
    gateway.heard.down().await;
    heard.down().await;
    world.net.cut(gateway_address(), worker_address(), false);
    // The worker believes the old authority, and is believed by nobody.
    failures.recv().await.unwrap();
    sleep(Duration::from_secs(10)).await;
    assert_eq!(gateway.listener.stats().links, 1);
    let new = client_config(&authority.issue("worker", &[Role::Decode]).unwrap(), &config()).unwrap();
    credentials.renew(new);
    gateway.heard.up().await;
    heard.up().await;
    dialer.stop().await;
}
