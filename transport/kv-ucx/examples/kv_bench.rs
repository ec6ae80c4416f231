//! How fast blocks move between two processes: `cargo run --release --example kv_bench -- [tls] [libucp]`.
//!
//! Starts itself again as the source, then reads the whole of a region repeatedly: contiguous, and every block apart.

#![allow(clippy::unwrap_used, reason = "a measurement, not a service")]

use std::{
    env,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
    sync::{Arc, mpsc},
    time::Instant,
};

use kv::{HeapMemory, KvEvent, KvTransfer, Offer, Read, ReadId, SourceAddress, TransferKey};
use kv_ucx::{Ucx, UcxConfig, UcxTransfer, fetch_wheel};

const BLOCKS: u32 = 512;
const BLOCK_BYTES: usize = 256 << 10;
const ROUNDS: u32 = 10;
const KEY: TransferKey = TransferKey {
    gateway: 1,
    seq: 1,
    generation: 1,
};

fn start(tls: &str, sink: kv::EventSink) -> UcxTransfer {
    let library = env::args().nth(2).map(PathBuf::from);
    let library = library.unwrap_or_else(|| fetch_wheel(&env::temp_dir(), &mut |_, _| ()).unwrap());
    let ucx = Ucx::load(Some(&library), None).unwrap();
    let config = UcxConfig {
        tls: Some(tls.into()),
        ..UcxConfig::default()
    };
    UcxTransfer::start(&ucx, config, Arc::new(HeapMemory::new(BLOCKS, BLOCK_BYTES)), sink).unwrap()
}

fn serve(tls: &str) {
    let transfer = start(tls, Arc::new(|_| ()));
    let blocks = (0..BLOCKS).collect();
    transfer
        .offer(Offer {
            key: KEY,
            capability: 1,
            blocks,
        })
        .unwrap();
    println!("{}", String::from_utf8(transfer.address().0).unwrap());
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

fn main() {
    let tls = env::args().nth(1).unwrap_or_else(|| "shm".into());
    if env::var_os("KV_BENCH_SOURCE").is_some() {
        return serve(&tls);
    }
    let mut source = Command::new(env::current_exe().unwrap());
    source
        .args(env::args().skip(1))
        .env("KV_BENCH_SOURCE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut source = source.spawn().unwrap();
    let mut address = String::new();
    BufReader::new(source.stdout.take().unwrap())
        .read_line(&mut address)
        .unwrap();
    let (tell, told) = mpsc::sync_channel(1_024);
    let transfer = start(&tls, Arc::new(move |event| tell.try_send(event).unwrap()));
    let mut id = 0;
    let mut read = |into: Vec<u32>| {
        id += 1;
        let source = SourceAddress(address.trim().as_bytes().to_vec());
        let began = Instant::now();
        transfer
            .read(Read {
                id: ReadId(id),
                key: KEY,
                capability: 1,
                source,
                from: 0,
                into,
            })
            .unwrap();
        let KvEvent::ReadEnded { result, .. } = told.recv().unwrap() else {
            panic!("not a read's end")
        };
        (result.unwrap(), began.elapsed().as_secs_f64())
    };
    let shapes: [(&str, Vec<u32>); 3] = [
        ("contiguous", (0..BLOCKS).collect()),
        ("scattered", (0..BLOCKS).map(|i| (i * 5) % BLOCKS).collect()),
        ("one block", vec![0]),
    ];
    for (name, into) in shapes {
        read(into.clone());
        let mut best = f64::INFINITY;
        let mut stats = None;
        for _ in 0..ROUNDS {
            let (got, seconds) = read(into.clone());
            best = best.min(seconds);
            stats = Some(got);
        }
        let stats = stats.unwrap();
        let rate = f64::from(u32::try_from(stats.bytes).unwrap()) / best / 1e9;
        println!(
            "{tls} {name}: {rate:.2} GB/s, {:.0} us, {} descriptors, {}",
            best * 1e6,
            stats.descriptors,
            stats.transport
        );
    }
    drop(source.stdin.take());
    source.wait().unwrap();
}
