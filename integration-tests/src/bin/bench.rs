//! Measures one thing side by side, and prints a table in Markdown: see `bench --help`.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use integration_tests::bench::{
    self, Bandwidth, ControlOptions, EngineOptions, GrowthOptions, KvOptions, Load, MoverOptions,
    QueueOptions, StreamsOptions, TracingOptions,
};

/// Measures one thing, side by side in one run.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// What traces cost a cluster.
    Tracing(Tracing),
    /// The CPU engine against llama.cpp's server.
    Engine(EngineOptions),
    /// The control path against NVIDIA Dynamo's.
    Control(ControlOptions),
    /// Many streams that are open at once.
    Streams(StreamsOptions),
    /// Many rooms that wait.
    Queue(QueueOptions),
    /// What it costs to grow.
    Growth(GrowthOptions),
    /// The KV path against UCX itself, NIXL and Mooncake.
    Kv(KvOptions),
    /// One of the two processes between which `kv` moves blocks.
    Move(MoverOptions),
    /// Puts a load on a server that speaks OpenAI's API, on one thread, and prints what it found as JSON.
    Load(Load),
    /// Measures how fast memory is read, and prints that as JSON.
    Floor,
}

#[derive(Args)]
struct Tracing {
    /// How often the three are started.
    #[arg(long, default_value_t = TracingOptions::default().starts)]
    starts: usize,
    /// How often each of the three is measured in a start.
    #[arg(long, default_value_t = TracingOptions::default().rounds)]
    rounds: usize,
    /// For how long each time.
    #[arg(long, default_value_t = TracingOptions::default().lasts.as_secs())]
    seconds: u64,
    /// Streams at a time.
    #[arg(long, default_value_t = TracingOptions::default().streams)]
    streams: usize,
}

fn main() -> ExitCode {
    let Arguments { what } = Arguments::parse();
    let said = match what {
        // On one thread: it must not take the cores from what it loads.
        What::Load(load) => single(bench::load(load)),
        What::Floor => serde_json::to_string(&Bandwidth::measure()).expect("a number"),
        What::Move(options) => {
            bench::mover(&options);
            return ExitCode::SUCCESS;
        }
        What::Kv(options) => many(bench::kv(options)),
        What::Engine(options) => many(bench::engine(options)),
        What::Control(options) => many(bench::control(options)),
        What::Streams(options) => many(bench::streams(options)),
        What::Queue(options) => many(bench::queue(options)),
        What::Growth(options) => many(bench::growth(options)),
        What::Tracing(tracing) => many(bench::tracing(TracingOptions {
            starts: tracing.starts,
            rounds: tracing.rounds,
            lasts: Duration::from_secs(tracing.seconds),
            streams: tracing.streams,
            ..TracingOptions::default()
        })),
    };
    println!("{said}");
    ExitCode::SUCCESS
}

fn single<T>(what: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime").block_on(what)
}

fn many<T>(what: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().build().expect("a runtime").block_on(what)
}
