//! A link that was replaced neither receives what is meant for its successor nor ends it.

use room::NodeId;
use wire::ToGateway;

use super::Outbox;
use crate::testing::{GATEWAY, hello, links};

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_replaced_link_is_not_that_of_its_successor() {
    let gateway = NodeId(GATEWAY);
    let linked = links(&[hello("w", 1, 7)], 2).await;
    let [older, newer] = linked.at_workers.as_slice() else {
        panic!("two links");
    };
    let mut outbox = Outbox::new(observe::Recorder::default(), crate::clock::Clock::start());
    outbox.up(gateway, older.clone());
    assert!(outbox.is_current(older.id()));
    outbox.up(gateway, newer.clone());
    assert!(older.is_down() && !newer.is_down());
    assert!(outbox.is_current(newer.id()) && !outbox.is_current(older.id()));

    assert!(!outbox.down(older.id()), "its leases ended when it was replaced");
    assert!(outbox.is_current(newer.id()));
    assert_eq!(outbox.gateways(), 1);

    assert!(outbox.down(newer.id()));
    assert_eq!(outbox.gateways(), 0);
}

/// What the version before does not have is not sent to it, and is no reason to end its link.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_gateway_can_do_without_ends_no_link() {
    let mut worker = hello("w", 1, 7);
    worker.max_version = 2;
    let linked = links(&[worker], 1).await;
    let link = &linked.at_workers[0];
    let mut outbox = Outbox::new(observe::Recorder::default(), crate::clock::Clock::start());
    outbox.up(NodeId(GATEWAY), link.clone());
    let about = ToGateway::About {
        admin: "127.0.0.1:9090".to_owned(),
    };
    assert!(link.send(&about).is_err());
    outbox.mention(NodeId(GATEWAY), &about);
    assert!(!link.is_down());
}
