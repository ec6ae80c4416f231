//! `bench streams`: very many streams that are open at once, each at its own pace.

use clap::Args;

use super::client::{Apart, Load, Report};
use super::page::Page;
use super::server::{Size, mocks};
use super::usage::Usage;

/// How it is measured.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Streams.
    #[arg(long, default_value_t = 10_000)]
    pub streams: usize,
    /// Decode workers that they are spread over; their steps come at times of their own.
    #[arg(long, default_value_t = 8)]
    pub workers: usize,
    /// Between two tokens of a stream.
    #[arg(long, default_value_t = 500.0)]
    pub period_ms: f64,
    /// Streams that are opened a second.
    #[arg(long, default_value_t = 400.0)]
    pub rate: f64,
    /// For how many seconds they are then held.
    #[arg(long, default_value_t = 20.0)]
    pub seconds: f64,
    /// Writes docs/benchmarks-streams.md.
    #[arg(long)]
    pub keep: bool,
}

const PROMPT_TOKENS: usize = 16;
/// While few are open, theirs go faster: an answer must be longer than is ever computed of it.
const ANSWER_TOKENS: u32 = 4_000;

/// What was found.
struct Held {
    settings: String,
    /// Whether all streams were open at once.
    all_open: bool,
    /// What the cluster had used before, and when all were open.
    idle: Usage,
    open: Usage,
    /// And what it used while they were held.
    used: Usage,
    report: Report,
}

/// Measures, and gives a page in Markdown.
///
/// # Panics
/// If the cluster does not do what it must.
pub async fn streams(options: Options) -> String {
    let held = hold(&options).await;
    let what = format!(
        "{} streams over HTTP/1.1, opened {} a second and then held for {} s, each with a token every {} ms from one of {} decode workers, whose \
         engines take that long for a step. The load generator is one thread on the same cores.",
        options.streams, options.rate, options.seconds, options.period_ms, options.workers
    );
    let mut page = Page::new("streams", "Many streams", &what);
    page.line(&format!("* innkeeper: {}\n", held.settings));
    page.head(&["", ""]);
    table(&mut page, &options, &held);
    page.line("");
    page.done(options.keep)
}

async fn hold(options: &Options) -> Held {
    let Options {
        streams,
        workers,
        period_ms,
        ..
    } = *options;
    let each = streams.div_ceil(workers);
    // A step takes as long as its sequences are many: with all of them, the period.
    let sets = [
        format!("mock.answer_token_us={:.0}", period_ms * 1e3 / each as f64),
        // Some may have more than their share.
        format!("worker.slots={}", each + each / 8 + 16),
        format!("api.max_requests={}", streams + 100),
        format!("limits.queue_rooms={}", streams + 100),
    ];
    let count = workers.to_string();
    let up = ["--processes", "--prefill", "1", "--decode", &count];
    let size = Size {
        streams: each,
        tokens: ANSWER_TOKENS as usize,
    };
    let server = mocks(&up, workers + 1, size, &sets).await;
    let idle = server.usage();
    let load = Load {
        streams,
        prompt_tokens: PROMPT_TOKENS,
        answer_tokens: ANSWER_TOKENS,
        rate: Some(options.rate),
        seconds: options.seconds,
        hold: true,
        period_ms: Some(period_ms),
        ..server.load()
    };
    let mut load = Apart::start(&load);
    let all_open = load.all_open().await;
    let open = server.usage();
    let report = load.report().await;
    let used = server.usage() - &open;
    Held {
        settings: server.settings.clone(),
        all_open,
        idle,
        open,
        used,
        report,
    }
}

fn table(page: &mut Page, options: &Options, held: &Held) {
    let Held { report, used, .. } = held;
    let gap = |share| report.gaps.quantile_ms(share);
    let jitter = |share| report.jitter.quantile_ms(share);
    let texts = report.gaps.count();
    let cores = |label: &str| {
        let used = used.processes.get(label);
        used.map_or(f64::NAN, |used| used.cpu_seconds) / options.seconds
    };
    page.entry("all were open", if held.all_open { "yes" } else { "no" });
    page.entry(
        "failed",
        &format!("{} {}", report.failed, report.errors.join("; ")),
    );
    page.entry("texts while all were open", &texts.to_string());
    page.entry("gaps ms p50, p99", &format!("{:.0}, {:.0}", gap(0.5), gap(0.99)));
    page.entry(
        "jitter ms p50, p99, most",
        &format!("{:.1}, {:.1}, {:.1}", jitter(0.5), jitter(0.99), jitter(1.0)),
    );
    page.entry(
        "gateway's memory, idle to all open",
        &memory(held, "gateway", options.streams),
    );
    page.entry(
        "decode workers' memory, idle to all open",
        &memory(held, "worker decode", options.streams),
    );
    page.entry(
        "cores that the cluster used meanwhile; of that, the gateway",
        &format!(
            "{:.2}; {:.2}",
            used.cpu_seconds() / options.seconds,
            cores("gateway")
        ),
    );
    page.entry(
        "us a text, all processes",
        &format!("{:.1}", used.cpu_seconds() * 1e6 / texts as f64),
    );
    page.entry(
        "clients' CPU s in all",
        &format!("{:.1}", report.client_cpu_seconds),
    );
}

fn memory(held: &Held, label: &str, streams: usize) -> String {
    let of = |usage: &Usage| {
        usage
            .processes
            .get(label)
            .map_or(f64::NAN, |used| used.memory_mib)
    };
    let (idle, open) = (of(&held.idle), of(&held.open));
    let a_stream = (open - idle) * 1024.0 / streams as f64;
    format!("{idle:.0} to {open:.0} MiB, {a_stream:.1} KiB a stream")
}
