//! A digest tells exactly of the attempts whose frames came before it, while rooms are opened and closed on other threads.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mesh::Config;
use wire::{RoomKey, ToWorker};

use crate::nodes::{GatewayOwner, Pair, config, key};

/// Opens and closes rooms as a gateway does: each frame is queued under the lock that the digest is taken under.
fn open_and_close(owner: &GatewayOwner, link: &mesh::Link<ToWorker>, seqs: std::ops::Range<u64>) {
    for seq in seqs {
        let mut open = owner.open.lock().unwrap();
        // `Release` stands for the opening frame: a small one will do here.
        link.send(&ToWorker::Release { key: key(seq) }).unwrap();
        open.insert(key(seq));
        drop(open);
        if seq % 3 == 0 {
            let mut open = owner.open.lock().unwrap();
            link.send(&ToWorker::Close { key: key(seq) }).unwrap();
            open.remove(&key(seq));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_digest_is_in_step_with_the_frames_around_it() {
    let config = Config {
        heartbeat: Duration::from_millis(1),
        lease: Duration::from_secs(20),
        ..config()
    };
    let mut pair = Pair::with(config.clone(), config).await;
    pair.worker.owner.tells_heartbeats.store(true, Ordering::Relaxed);
    let threads: Vec<_> = [0..1000, 1000..2000]
        .map(|seqs| {
            let (owner, link) = (Arc::clone(&pair.gateway.owner), pair.to_worker.clone());
            std::thread::spawn(move || open_and_close(&owner, &link, seqs))
        })
        .into_iter()
        .collect();
    let (mut open, mut opened, mut digests) = (BTreeSet::<RoomKey>::new(), 0, 0);
    while opened < 2000 || digests < 10 {
        match pair.worker.heard.frame().await {
            ToWorker::Release { key } => {
                opened += 1;
                open.insert(key);
            }
            ToWorker::Close { key } => assert!(open.remove(&key)),
            ToWorker::Heartbeat { open: digest, .. } => {
                digests += 1;
                assert!(
                    digest.iter().map(|kept| &kept.key).eq(open.iter()),
                    "digest {digests}: {digest:?} instead of {open:?}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
