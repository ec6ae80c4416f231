//! `bench growth`: how throughput, processor time and memory grow with streams, prompts, workers and pools; engines take no time.

use clap::Args;

use super::client::Load;
use super::fit::Fit;
use super::page::Page;
use super::sample::{Sample, Samples, cell};
use super::server::{Server, Size, mocks};

/// How it is measured.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// How often each is measured.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// For how many seconds each time.
    #[arg(long, default_value_t = 4.0)]
    pub seconds: f64,
    /// Streams at a time.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4, 16, 64, 256, 1_000, 4_000, 10_000])]
    pub streams: Vec<usize>,
    /// Tokens of prompts.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 400, 1_600, 6_400])]
    pub prompts: Vec<usize>,
    /// Workers, half of them for prefill; all in one process with the gateway.
    #[arg(long, value_delimiter = ',', default_values_t = [2, 8, 32, 64])]
    pub workers: Vec<usize>,
    /// MiB of each worker's pool, of which a token takes 16 bytes.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 512, 4_096])]
    pub pools: Vec<usize>,
    /// Writes docs/benchmarks-growth.md.
    #[arg(long)]
    pub keep: bool,
}

/// What everything is unless it is what grows.
const STREAMS: usize = 64;
const PROMPT: usize = 200;
const ANSWER: u32 = 64;
/// Before it counts.
const WARM_UP_SECONDS: f64 = 1.0;

/// One cluster and load.
#[derive(Copy, Clone)]
struct Point {
    /// What grows.
    x: usize,
    streams: usize,
    prompt: usize,
    workers: usize,
    pool_mib: Option<usize>,
}

impl Point {
    fn of(x: usize) -> Self {
        Self {
            x,
            streams: STREAMS,
            prompt: PROMPT,
            workers: 2,
            pool_mib: None,
        }
    }
}

/// What it is called, and how it is taken.
type Figure = (&'static str, fn(&Sample) -> f64);

/// What is told of a point.
const FIGURES: [Figure; 4] = [
    ("output tokens/s", |sample| sample.report.tokens_per_second()),
    ("CPU us a token", |sample| {
        sample.used.cpu_seconds() * 1e6 / sample.report.output_tokens as f64
    }),
    ("CPU us a prompt token", |sample| {
        sample.used.cpu_seconds() * 1e6 / sample.report.prompt_tokens as f64
    }),
    ("gateway's peak MiB", |sample| {
        let gateway = sample
            .used
            .processes
            .get("gateway")
            .or(sample.used.processes.get("up"));
        gateway.map_or(f64::NAN, |used| used.peak_mib)
    }),
];

/// Measures, and gives a page in Markdown.
///
/// # Panics
/// If a cluster does not do what it must.
pub async fn growth(options: Options) -> String {
    let what = format!(
        "Engines that take no time. Unless it is what grows: {STREAMS} streams, prompts of {PROMPT} and answers of {ANSWER} tokens; a gateway, a prefill \
         and a decode worker as processes. Each cluster was started afresh and measured {} times for {} s; figures are medians (least to greatest). \
         The last row of a table: the power of what grows that fits the medians best, and the share of their variance that it explains.",
        options.rounds, options.seconds
    );
    let mut page = Page::new("growth", "What it costs to grow", &what);
    let streams = options.streams.iter().map(|&streams| Point {
        streams,
        ..Point::of(streams)
    });
    axis(&mut page, "streams", streams.collect(), &options).await;
    let prompts = options.prompts.iter().map(|&prompt| Point {
        prompt,
        ..Point::of(prompt)
    });
    axis(&mut page, "prompt tokens", prompts.collect(), &options).await;
    let workers = options.workers.iter().map(|&workers| Point {
        workers,
        ..Point::of(workers)
    });
    axis(&mut page, "workers", workers.collect(), &options).await;
    let pools = options.pools.iter().map(|&mib| Point {
        pool_mib: Some(mib),
        ..Point::of(mib)
    });
    axis(&mut page, "pool MiB", pools.collect(), &options).await;
    page.done(options.keep)
}

/// Measures the points of one axis and adds their table.
async fn axis(page: &mut Page, name: &str, points: Vec<Point>, options: &Options) {
    if points.is_empty() {
        return;
    }
    let mut columns = vec![name];
    columns.extend(FIGURES.iter().map(|(name, _)| *name));
    page.head(&columns);
    let mut medians: [Vec<(f64, f64)>; FIGURES.len()] = Default::default();
    for point in points {
        eprintln!("{name}: {}", point.x);
        let samples = measure(point, options).await;
        let mut cells = vec![point.x.to_string()];
        if let Some(error) = samples.error() {
            cells.push(format!("failed: {error}"));
            page.row(&cells);
            continue;
        }
        for ((_, figure), medians) in FIGURES.iter().zip(&mut medians) {
            let spread = samples.spread(figure);
            medians.extend(spread.map(|spread| (point.x as f64, spread.median)));
            cells.push(cell(spread, 1));
        }
        page.row(&cells);
    }
    let fits = medians
        .iter()
        .map(|medians| Fit::of(medians).map_or_else(|| "–".to_owned(), |fit| fit.to_string()));
    let cells: Vec<String> = ["exponent".to_owned()].into_iter().chain(fits).collect();
    page.row(&cells);
    page.line("");
}

async fn measure(point: Point, options: &Options) -> Samples {
    let mut samples = Samples::default();
    for round in 0..options.rounds {
        let server = start(point).await;
        let load = Load {
            streams: point.streams,
            prompt_tokens: point.prompt,
            answer_tokens: ANSWER,
            requests: None,
            seconds: options.seconds,
            seed: 2 + 2 * round as u64,
            ..server.load()
        };
        let warm_up = Load {
            seconds: WARM_UP_SECONDS,
            seed: 1 + 2 * round as u64,
            ..load.clone()
        };
        let sample = match Sample::take(&server, &warm_up).await {
            Ok(_) => Sample::take(&server, &load).await,
            Err(error) => Err(error),
        };
        samples.add(sample);
    }
    samples
}

async fn start(point: Point) -> Server {
    let size = Size {
        streams: point.streams,
        tokens: point.prompt + point.prompt / 16 + ANSWER as usize + 64,
    };
    let pool = point.pool_mib.map(|mib| format!("worker.pool_mib={mib}"));
    let sets: Vec<String> = pool.into_iter().collect();
    let half = (point.workers / 2).to_string();
    let mut up = vec!["--prefill", &half, "--decode", &half];
    if point.workers == 2 {
        up.insert(0, "--processes");
    }
    mocks(&up, point.workers, size, &sets).await
}
