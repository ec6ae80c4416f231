//! `bench streams`: very many streams that are open at once, each at its own pace.

use clap::Args;

use super::client::{Apart, Load};
use super::page::Page;
use super::server::{Size, mocks};

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

/// Measures, and gives a page in Markdown.
///
/// # Panics
/// If the cluster does not do what it must.
pub async fn streams(options: Options) -> String {
    let Options {
        streams,
        workers,
        period_ms,
        ..
    } = options;
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
    let mut held = Apart::start(&load);
    let all_open = held.all_open().await;
    let open = server.usage();
    let report = held.report().await;
    let used = server.usage() - &open;
    let what = format!(
        "{streams} streams over HTTP/1.1, opened {} a second and then held for {} s, each with a token every {period_ms} ms from one of {workers} \
         decode workers, whose engines take that long for a step. The load generator is one thread on the same cores.",
        options.rate, options.seconds
    );
    let mut page = Page::new("streams", "Many streams", &what);
    page.line(&format!("* innkeeper: {}\n", server.settings));
    page.head(&["", ""]);
    let jitter = |share| format!("{:.1}", report.jitter.quantile_ms(share));
    let memory = |label: &str| {
        let of = |usage: &super::usage::Usage| {
            usage
                .processes
                .get(label)
                .map_or(f64::NAN, |used| used.memory_mib)
        };
        format!(
            "{:.0} to {:.0} MiB, {:.1} KiB a stream",
            of(&idle),
            of(&open),
            (of(&open) - of(&idle)) * 1024.0 / streams as f64
        )
    };
    page.row(&[
        "all were open".to_owned(),
        if all_open { "yes" } else { "no" }.to_owned(),
    ]);
    page.row(&[
        "failed".to_owned(),
        format!("{} {}", report.failed, report.errors.join("; ")),
    ]);
    page.row(&[
        "texts while all were open".to_owned(),
        report.gaps.count().to_string(),
    ]);
    page.row(&[
        "gaps ms p50, p99".to_owned(),
        format!(
            "{:.0}, {:.0}",
            report.gaps.quantile_ms(0.5),
            report.gaps.quantile_ms(0.99)
        ),
    ]);
    page.row(&[
        "jitter ms p50, p99, most".to_owned(),
        format!("{}, {}, {}", jitter(0.5), jitter(0.99), jitter(1.0)),
    ]);
    page.row(&["gateway's memory, idle to all open".to_owned(), memory("gateway")]);
    page.row(&[
        "decode workers' memory, idle to all open".to_owned(),
        memory("worker decode"),
    ]);
    page.row(&[
        "cores that the cluster used meanwhile".to_owned(),
        format!("{:.2}", used.cpu_seconds() / options.seconds),
    ]);
    page.row(&[
        "of that, the gateway".to_owned(),
        format!(
            "{:.2}",
            used.processes
                .get("gateway")
                .map_or(f64::NAN, |used| used.cpu_seconds)
                / options.seconds
        ),
    ]);
    page.row(&[
        "us a text, all processes".to_owned(),
        format!("{:.1}", used.cpu_seconds() * 1e6 / report.gaps.count() as f64),
    ]);
    page.row(&[
        "clients' CPU s in all".to_owned(),
        format!("{:.1}", report.client_cpu_seconds),
    ]);
    page.line("");
    page.done(options.keep)
}
