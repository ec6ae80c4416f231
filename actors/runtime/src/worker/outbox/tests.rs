//! A link that was replaced neither receives what is meant for its successor nor ends it. What follows of a room lengthens its entry.

use room::NodeId;
use wire::{Finish, RoomKey, RoomTokens, ToGateway, TokenOut};

use super::{Gathered, Outbox};
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

fn entry(seq: u64, from: u32, tokens: &[u32], finish: Option<Finish>) -> RoomTokens {
    let out = |token: &u32| TokenOut {
        token: *token,
        logprobs: None,
    };
    RoomTokens {
        key: RoomKey { seq, generation: 1 },
        from,
        tokens: tokens.iter().map(out).collect(),
        finish,
    }
}

/// What becomes of these entries in one frame.
#[track_caller]
fn check(said: &[RoomTokens], sent: &[RoomTokens]) {
    let mut gathered = Gathered::default();
    said.iter().for_each(|entry| gathered.add(entry.clone()));
    let tokens: usize = sent.iter().map(|entry| entry.tokens.len()).sum();
    assert_eq!(gathered.entries, sent.len() + tokens);
    assert_eq!(gathered.take(), sent);
    assert_eq!((gathered.entries, gathered.take()), (0, Vec::new()));
}

#[test]
fn what_follows_of_a_room_is_in_its_entry() {
    let steps = [
        entry(1, 0, &[7], None),
        entry(2, 4, &[8], None),
        entry(1, 1, &[9, 10], None),
        entry(2, 5, &[], Some(Finish::Stop)),
        entry(1, 3, &[11], Some(Finish::Length)),
    ];
    let merged = [
        entry(1, 0, &[7, 9, 10, 11], Some(Finish::Length)),
        entry(2, 4, &[8], Some(Finish::Stop)),
    ];
    check(&steps, &merged);
}

#[test]
fn what_does_not_follow_is_an_entry_of_its_own() {
    let gap = [entry(1, 0, &[7], None), entry(1, 2, &[9], None)];
    check(&gap, &gap);
    let over = [entry(1, 0, &[7], Some(Finish::Stop)), entry(1, 1, &[9], None)];
    check(&over, &over);
    let mut later = entry(1, 1, &[9], None);
    later.key.generation = 2;
    let generations = [entry(1, 0, &[7], None), later];
    check(&generations, &generations);
}
