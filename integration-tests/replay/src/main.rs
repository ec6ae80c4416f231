//! `replay TRACE`: a trace through a cluster in virtual time. See the library.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use clap::Parser;
use evidence::Stamp;
use replay::{
    Model, PolicyName, Request, Setup, Summary, Sweep, at_speed, publish, read, replay, shared_cache,
    tables as tables_of,
};

/// Replays a trace of requests in virtual time.
///
/// Traces are not in this repository: `conversation_trace.jsonl` is in kvcache-ai/Mooncake (FAST25-release/traces), and
/// `AzureLLMInferenceTrace_conv.csv` in Azure/AzurePublicDataset (data).
#[derive(Parser)]
struct Arguments {
    /// The trace: Mooncake's JSON lines, or Azure's CSV.
    trace: PathBuf,
    /// Prefill workers.
    #[arg(long, default_value_t = 10)]
    prefill: u16,
    /// Decode workers.
    #[arg(long, default_value_t = 10)]
    decode: u16,
    /// Who places; several with commas, all if none is named.
    #[arg(long, value_delimiter = ',')]
    policy: Vec<PolicyName>,
    /// How many times as fast as recorded requests come; several with commas.
    #[arg(long, value_delimiter = ',', default_value = "1")]
    speed: Vec<f64>,
    /// Blocks (of 512 tokens) of a prefill worker's pool.
    #[arg(long, default_value_t = 3_000)]
    blocks: u32,
    /// Blocks of a decode worker's pool.
    #[arg(long, default_value_t = 3_000)]
    decode_blocks: u32,
    /// More sizes of the prefill workers' pools, each replayed at the first speed and compared with one shared cache.
    #[arg(long, value_delimiter = ',')]
    pools: Vec<u32>,
    /// The model on every worker.
    #[arg(long, value_enum, default_value = "13b-4xa100")]
    model: Model,
    /// Gigabytes of KV a second at each end of a move.
    #[arg(long, default_value_t = 25)]
    kv_gb_per_s: u64,
    /// What a prefill worker's time counts for those who come after.
    #[arg(long)]
    others: Option<f64>,
    /// What the work that a worker got of late counts.
    #[arg(long)]
    lately: Option<f64>,
    /// Only so many requests from the beginning.
    #[arg(long)]
    requests: Option<usize>,
    /// Where to write the page and its curves; without it tables are printed.
    #[arg(long)]
    publish: Option<PathBuf>,
    /// Replays at once.
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

/// One replay to make.
#[derive(Clone, Copy)]
struct Task {
    setup: Setup,
    speed: f64,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let stamp = Stamp::now();
    let mut requests = read(&arguments.trace).with_context(|| format!("{}", arguments.trace.display()))?;
    requests.truncate(arguments.requests.unwrap_or(usize::MAX));
    let policies = match arguments.policy.as_slice() {
        [] => PolicyName::ALL.to_vec(),
        named => named.to_vec(),
    };
    let setup = setup(&arguments);
    let by_speed = run_all(
        &requests,
        tasks(&setup, &arguments.speed, &policies),
        arguments.threads,
    );
    let by_pool: Vec<_> = arguments
        .pools
        .iter()
        .map(|blocks| by_pool(&arguments, &requests, &setup, &policies, *blocks))
        .collect();
    let sweep = Sweep {
        trace: &arguments.trace.file_name().unwrap_or_default().to_string_lossy(),
        requests: requests.len(),
        setup: &setup,
        stamp: &stamp,
        by_speed: &by_speed,
        by_pool: &by_pool,
    };
    print!("{}", tables_of(&sweep));
    match &arguments.publish {
        Some(folder) => publish(&sweep, folder),
        None => Ok(()),
    }
}

/// Every policy at every speed.
fn tasks(setup: &Setup, speeds: &[f64], policies: &[PolicyName]) -> Vec<Task> {
    let of = |speed: f64| {
        policies.iter().map(move |policy| Task {
            setup: Setup {
                policy: *policy,
                ..*setup
            },
            speed,
        })
    };
    speeds.iter().copied().flat_map(of).collect()
}

/// Caches of so many blocks, and one shared by all. Prompts stay with prefill workers, so that there are no more caches than those; and who
/// refuses serves other requests, and cannot be compared by hits.
fn by_pool(
    arguments: &Arguments,
    requests: &[Request],
    setup: &Setup,
    policies: &[PolicyName],
    blocks: u32,
) -> (u32, f64, Vec<Summary>) {
    let mut setup = Setup { blocks, ..*setup };
    setup.weights.decode_computes = false;
    let patient = policies
        .iter()
        .copied()
        .filter(|p| *p != PolicyName::TimeRefusing);
    let speeds = arguments.speed.get(..1).unwrap_or_default();
    let tasks = tasks(&setup, speeds, &patient.collect::<Vec<_>>());
    let shared = shared_cache(requests, blocks * u32::from(setup.prefill));
    (blocks, shared, run_all(requests, tasks, arguments.threads))
}

fn setup(arguments: &Arguments) -> Setup {
    let mut setup = Setup {
        prefill: arguments.prefill,
        decode: arguments.decode,
        blocks: arguments.blocks,
        decode_blocks: arguments.decode_blocks,
        model: arguments.model,
        kv_bytes_per_s: arguments.kv_gb_per_s * 1_000_000_000,
        ..Setup::new(PolicyName::Time)
    };
    setup.weights.others = arguments.others.unwrap_or(setup.weights.others);
    setup.weights.lately = arguments.lately.unwrap_or(setup.weights.lately);
    setup
}

/// The summaries in the order of the tasks, so many at once.
fn run_all(requests: &[Request], tasks: Vec<Task>, threads: usize) -> Vec<Summary> {
    let left: Mutex<VecDeque<(usize, Task)>> = Mutex::new(tasks.into_iter().enumerate().collect());
    let done: Mutex<Vec<(usize, Summary)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let next = left.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    let Some((at, task)) = next else { return };
                    let (run, summary) = replay(&at_speed(requests, task.speed), &task.setup, task.speed);
                    if !run.at_rest {
                        eprintln!(
                            "{} at {}: something is held at the end",
                            summary.policy, task.speed
                        );
                    }
                    eprintln!(
                        "{} at {}: {:.3} good, {:.3} cached",
                        summary.policy, task.speed, summary.good_share, summary.hit
                    );
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    done.push((at, summary));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, summary)| summary).collect()
}
