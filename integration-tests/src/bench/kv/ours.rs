//! Ours as one of the two processes: speaks as `bench/peers/movers.py` does.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Instant;

use clap::{Args, ValueEnum};
use engine::{KvPool, PoolShape};
use kv::{KvEvent, KvMemory, KvTransfer, Offer, Read, ReadId, SourceAddress, TransferKey};
use kv_ucx::{Ucx, UcxConfig, UcxTransfer};

/// What it is to be.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Which UCX: its library, or the folder that one has been fetched into, which is looked at if the loader finds none.
    library: PathBuf,
    /// Which end.
    #[arg(value_enum)]
    role: Role,
    /// Bytes of a block; a multiple of 8.
    block_bytes: usize,
    /// How many blocks there are.
    blocks: u32,
    /// What the source said first.
    address: Option<String>,
}

#[derive(Copy, Clone, Eq, PartialEq, Debug, ValueEnum)]
enum Role {
    Source,
    Reader,
}

const KEY: TransferKey = TransferKey {
    gateway: 1,
    seq: 1,
    generation: 1,
};
const CAPABILITY: u128 = 1;
/// How far apart the blocks of a scattered read are at the reader; odd, as numbers of blocks are powers of two. As in movers.py.
const STEP: u32 = 5;

/// Moves blocks as it is told by its standard input, until that ends.
///
/// # Panics
/// If anything goes wrong.
pub fn mover(options: &Options) {
    let pool = pool(options);
    let (library, cache) = match options.library.is_dir() {
        true => (None, Some(options.library.as_path())),
        false => (Some(options.library.as_path()), None),
    };
    let ucx = Ucx::load(library, cache).expect("a UCX");
    let (tell, told) = sync_channel(16);
    let sink = Arc::new(move |event| tell.try_send(event).expect("it is taken"));
    let transfer = UcxTransfer::start(&ucx, UcxConfig::default(), pool.clone(), sink).expect("it starts");
    match options.role {
        Role::Source => {
            let blocks = (0..options.blocks).collect();
            let offer = Offer {
                key: KEY,
                capability: CAPABILITY,
                blocks,
            };
            transfer.offer(offer).expect("an offer");
            let address = String::from_utf8(transfer.address().0).expect("a text");
            println!("{address}");
            for _ in std::io::stdin().lock().lines() {}
        }
        Role::Reader => serve(options, &pool, &transfer, &told),
    }
}

/// Every byte is there before it begins; each block begins with its number.
fn pool(options: &Options) -> Arc<KvPool> {
    let shape = PoolShape {
        blocks: options.blocks,
        block_tokens: 1,
        layers: 1,
        kv_heads: 1,
        head_dim: options.block_bytes / 8,
    };
    let pool = KvPool::new(shape).expect("memory");
    let mut bytes = vec![1u8; options.block_bytes];
    for block in 0..options.blocks {
        bytes[..8].copy_from_slice(&u64::from(block).to_le_bytes());
        pool.write_from(block, 0, &bytes).expect("a block");
    }
    pool
}

fn serve(options: &Options, pool: &KvPool, transfer: &UcxTransfer, told: &Receiver<KvEvent>) {
    let address = options.address.as_deref().expect("a source");
    let mut last_id = 0;
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line");
        let (order, times) = line.split_once(' ').expect("ORDER TIMES");
        let into: Vec<u32> = match order {
            "contiguous" => (0..options.blocks).collect(),
            _ => (0..options.blocks)
                .map(|block| block * STEP % options.blocks)
                .collect(),
        };
        for block in 0..options.blocks {
            pool.write_from(block, 0, &u64::MAX.to_le_bytes())
                .expect("a block");
        }
        let times: u64 = times.parse().expect("a number");
        let seconds: Vec<String> = (0..times)
            .map(|_| {
                last_id += 1;
                let read = Read {
                    id: ReadId(last_id),
                    key: KEY,
                    capability: CAPABILITY,
                    source: SourceAddress(address.as_bytes().to_vec()),
                    from: 0,
                    into: into.clone(),
                };
                seconds(transfer, told, read).to_string()
            })
            .collect();
        for (number, block) in (0u64..).zip(&into) {
            let mut found = [0; 8];
            pool.read_into(*block, 0, &mut found).expect("a block");
            assert_eq!(u64::from_le_bytes(found), number, "block {block}");
        }
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", seconds.join(" ")).expect("somebody listens");
    }
}

/// How long a read takes, its way to the thread of the transfer and back included.
fn seconds(transfer: &UcxTransfer, told: &Receiver<KvEvent>, read: Read) -> f64 {
    let started = Instant::now();
    transfer.read(read).expect("it is accepted");
    match told.recv().expect("the transfer tells the end") {
        KvEvent::ReadEnded { result, .. } => result.expect("everything arrives"),
        other => panic!("{other:?} is not the end of a read"),
    };
    started.elapsed().as_secs_f64()
}
