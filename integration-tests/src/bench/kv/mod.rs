//! `bench kv`: KV from one process to another on this machine: our transfer beside UCX's own benchmark, NIXL and Mooncake, each started afresh for
//! every figure. Where the machine allows it all of them are in a network of their own, since not all can be told to listen on loopback alone.

mod handover;
mod ours;
mod pair;
mod peer;
mod perftest;
mod series;
mod table;

use std::path::PathBuf;

use clap::Args;

pub use self::ours::{Options as MoverOptions, mover};
use self::pair::Pair;
use self::peer::Kind;
pub use self::peer::Transport;
use self::series::Series;
use super::floor::copied_per_second;
use super::page::Page;
use super::server;
use super::spread::Spread;
use super::usage::Usage;
use crate::netns::Net;

/// How it is measured.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// How often everything is measured.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Moves of all blocks in a round, of which the median counts.
    #[arg(long, default_value_t = 4)]
    pub moves: usize,
    /// MiB of KV.
    #[arg(long, default_value_t = 256)]
    pub mib: u32,
    /// KiB of a block.
    #[arg(long, value_delimiter = ',', default_values_t = [16, 64, 1_024])]
    pub blocks: Vec<u32>,
    /// What carries the bytes.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Transport::Tcp, Transport::Shm])]
    pub transports: Vec<Transport>,
    /// Round trips of 8 bytes in a round.
    #[arg(long, default_value_t = 2_000)]
    pub trips: usize,
    /// Prompts whose hand-over is measured, in tokens.
    #[arg(long, value_delimiter = ',', default_values_t = [128, 1_024, 7_500])]
    pub prompts: Vec<usize>,
    /// Hand-overs of each in a round.
    #[arg(long, default_value_t = 20)]
    pub handovers: usize,
    /// What is measured: `moves`, `trips`, `handovers`.
    #[arg(long, value_delimiter = ',', default_value = "moves,trips,handovers")]
    pub parts: Vec<String>,
    /// Where the others have been installed.
    #[arg(long, default_value_os_t = server::peers())]
    pub peers: PathBuf,
    /// Writes docs/benchmarks-kv.md.
    #[arg(long)]
    pub keep: bool,
}

impl Options {
    fn wants(&self, part: &str) -> bool {
        self.parts.iter().any(|wanted| wanted == part)
    }
}

/// Where the blocks of the source land.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
enum Order {
    /// As they lie at the source.
    Contiguous,
    /// No two neighbours of the source are neighbours.
    Scattered,
}

impl Order {
    const BOTH: [Self; 2] = [Self::Contiguous, Self::Scattered];

    fn name(self) -> &'static str {
        match self {
            Self::Contiguous => "contiguous",
            Self::Scattered => "scattered",
        }
    }
}

/// What was found of one size of blocks over one transport.
struct Found {
    transport: Transport,
    block_bytes: usize,
    /// GB/s, as [`Kind::of`] and [`Order::BOTH`] are ordered.
    rates: Vec<[Series; 2]>,
}

/// What was found of round trips over one transport.
struct Trips {
    transport: Transport,
    /// Microseconds of the median, by kind.
    us: Vec<Series>,
    /// Milliseconds of processor time that source and reader together use in a second in which nothing is moved.
    idle_ms: Vec<Series>,
}

/// Measures, and gives a page in Markdown.
///
/// # Panics
/// If ours does not do what it must. What goes wrong with another is told in its row.
pub async fn kv(options: Options) -> String {
    let net = Net::lay(&["kv"]);
    let world = World {
        inside: net.as_ref().map(|net| net.inside("kv")).unwrap_or_default(),
        peers: options.peers.clone(),
        own_version: peer::own_version(),
    };
    let mut copies = Vec::new();
    let mut found = Vec::new();
    if options.wants("moves") {
        for &transport in &options.transports {
            for &kib in &options.blocks {
                copies.extend((0..options.rounds).map(|_| copied_per_second() / 1e9));
                found.push(moves(&world, transport, (kib as usize) << 10, &options).await);
            }
        }
    }
    let mut trips = Vec::new();
    if options.wants("trips") {
        for &transport in &options.transports {
            trips.push(round_trips(&world, transport, &options).await);
        }
    }
    let mut page = Page::new(
        "kv",
        "The KV path against UCX itself, NIXL and Mooncake",
        &what(&options),
    );
    table::settings(&mut page, &world, net.as_ref().err());
    if !copies.is_empty() {
        let copy = Spread::of(copies);
        table::moves(&mut page, &found, copy);
    }
    if !trips.is_empty() {
        table::trips(&mut page, &trips);
    }
    if options.wants("handovers") {
        handover::measure(&mut page, &options).await;
    }
    page.done(options.keep)
}

fn what(options: &Options) -> String {
    format!(
        "{} MiB from one process to another. Each pair of processes was started afresh for every figure and measured {} times, in turn; in each \
         round the median of {} moves counts, after one that does not. Figures are medians (least to greatest), ratios are taken round by round.",
        options.mib, options.rounds, options.moves
    )
}

/// Where processes are started, and what there is to start.
struct World {
    /// What to put in front of commands.
    inside: Vec<String>,
    peers: PathBuf,
    /// Of the UCX that our program takes where nobody names one.
    own_version: Result<String, String>,
}

/// Moves all blocks, in both orders, with everyone in turn.
async fn moves(world: &World, transport: Transport, block_bytes: usize, options: &Options) -> Found {
    let kinds = Kind::of(transport);
    let mut rates: Vec<[Series; 2]> = kinds.iter().map(|_| Default::default()).collect();
    for round in 0..options.rounds {
        for turn in 0..kinds.len() {
            let which = (round + turn) % kinds.len();
            let kind = kinds[which];
            eprintln!("{} {block_bytes} {} {round}", transport.name(), kind.name());
            let figures = match kind {
                Kind::Perftest { notice } => {
                    perftest_moves(world, transport, notice, block_bytes, options).await
                }
                _ => pair_moves(world, kind, transport, block_bytes, options).await,
            };
            for (series, figure) in rates[which].iter_mut().zip(figures) {
                series.add(figure);
            }
        }
    }
    Found {
        transport,
        block_bytes,
        rates,
    }
}

async fn pair_moves(
    world: &World,
    kind: Kind,
    transport: Transport,
    block_bytes: usize,
    options: &Options,
) -> [Result<f64, String>; 2] {
    let bytes = (options.mib as usize) << 20;
    let pair = Pair::start(world, kind, transport, block_bytes, bytes / block_bytes).await;
    let mut pair = match pair {
        Ok(pair) => pair,
        Err(why) => return [Err(why.clone()), Err(why)],
    };
    let mut figures = [Ok(0.0), Ok(0.0)];
    for (figure, order) in figures.iter_mut().zip(Order::BOTH) {
        let seconds = pair.read(order, options.moves + 1).await;
        *figure = seconds.map(|seconds| bytes as f64 / Spread::of(seconds[1..].iter().copied()).median / 1e9);
    }
    figures
}

/// One message for all that is contiguous, which is larger than caches; else a message a block.
async fn perftest_moves(
    world: &World,
    transport: Transport,
    notice: bool,
    block_bytes: usize,
    options: &Options,
) -> [Result<f64, String>; 2] {
    let all = (options.mib as usize) << 20;
    let mut figures = [Ok(0.0), Ok(0.0)];
    for (figure, size) in figures.iter_mut().zip([all, block_bytes]) {
        let messages = options.moves * (all / size);
        *figure = perftest::rate(world, transport, notice, size, messages).await;
    }
    figures
}

/// A round trip's.
const TRIP_BYTES: usize = 8;
/// For how long nothing is moved.
const IDLE_SECONDS: f64 = 3.0;

/// Reads one block of 8 bytes often, with everyone in turn; then nothing, to see what that costs.
async fn round_trips(world: &World, transport: Transport, options: &Options) -> Trips {
    let kinds = Kind::of(transport);
    let mut us: Vec<Series> = kinds.iter().map(|_| Series::default()).collect();
    let mut idle_ms: Vec<Series> = kinds.iter().map(|_| Series::default()).collect();
    for round in 0..options.rounds {
        for turn in 0..kinds.len() {
            let which = (round + turn) % kinds.len();
            let kind = kinds[which];
            eprintln!("{} round trips {} {round}", transport.name(), kind.name());
            if let Kind::Perftest { notice } = kind {
                us[which].add(perftest::trip_us(world, transport, notice, TRIP_BYTES, options.trips).await);
                continue;
            }
            let (trip, idle) = match Pair::start(world, kind, transport, TRIP_BYTES, 1).await {
                Ok(mut pair) => pair_trips(&mut pair, options.trips).await,
                Err(why) => (Err(why.clone()), Err(why)),
            };
            us[which].add(trip);
            idle_ms[which].add(idle);
        }
    }
    Trips {
        transport,
        us,
        idle_ms,
    }
}

async fn pair_trips(pair: &mut Pair, trips: usize) -> (Result<f64, String>, Result<f64, String>) {
    let warm_up = pair.read(Order::Contiguous, 100).await;
    let seconds = match warm_up {
        Ok(_) => pair.read(Order::Contiguous, trips).await,
        Err(why) => Err(why),
    };
    let trip = seconds.map(|seconds| Spread::of(seconds).median * 1e6);
    let before = Usage::of(&pair.processes());
    tokio::time::sleep(std::time::Duration::from_secs_f64(IDLE_SECONDS)).await;
    let used = Usage::of(&pair.processes()) - &before;
    let idle = trip.clone().map(|_| used.thread_seconds() * 1e3 / IDLE_SECONDS);
    (trip, idle)
}
