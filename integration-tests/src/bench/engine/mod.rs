//! `bench engine`: our CPU engine behind our gateway against llama.cpp's server, on the same file of weights, with the same cores and load. Each is
//! started afresh for every measurement, with room for just that load, and they take turns at being the first.

mod abort;
mod case;
mod mixed;
mod table;

use std::path::PathBuf;

use clap::Args;

use self::case::Case;
use super::floor::Floor;
use super::page::Page;
use super::sample::{Sample, Samples};
use super::server::{self, Kind, Size};

/// How it is measured.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// How often each is measured.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Streams at a time.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4, 16, 64])]
    pub streams: Vec<usize>,
    /// Tokens of prompts.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1_500])]
    pub prompts: Vec<usize>,
    /// Tokens of an answer.
    #[arg(long, default_value_t = 128)]
    pub answer_tokens: u32,
    /// Answers to each client.
    #[arg(long, default_value_t = 1)]
    pub requests: u64,
    /// What is measured: `answers`, `prompts`, `shared`, `mixed` or `abort`.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "answers,prompts,shared,mixed,abort"
    )]
    pub parts: Vec<String>,
    /// Where llama.cpp has been built.
    #[arg(long, default_value_os_t = server::peers())]
    pub peers: PathBuf,
    /// Writes docs/benchmarks-engine.md.
    #[arg(long)]
    pub keep: bool,
}

/// Ours first.
pub(super) const KINDS: [Kind; 2] = [Kind::Mixed, Kind::Llama];

/// What was found of one case.
struct Found {
    case: Case,
    /// As [`KINDS`].
    samples: [Samples; 2],
}

/// Measures, and gives a page in Markdown.
///
/// # Panics
/// If our own server does not do what it must. What goes wrong with the other is told in its row.
pub async fn engine(options: Options) -> String {
    let floor = Floor::measure();
    let mut settings: [Option<String>; 2] = Default::default();
    let mut found: Vec<Found> = Vec::new();
    for case in case::cases(&options) {
        eprintln!("{case}");
        let mut samples: [Samples; 2] = Default::default();
        for round in 0..options.rounds {
            for turn in 0..KINDS.len() {
                let which = (round + turn) % KINDS.len();
                let sample = measure(KINDS[which], &case, round, &options, &mut settings[which]).await;
                samples[which].add(sample);
            }
        }
        found.push(Found { case, samples });
    }
    let mut page = Page::new(
        "engine",
        "The CPU engine against llama.cpp",
        &format!(
            "Both serve SmolLM2-135M-Instruct in Q4_1 (the same file) over HTTP/1.1 to a load generator that is a process of its own on the \
             same cores. Each was started afresh for every figure and measured {} times, in turn; figures are medians (least to greatest). \
             Prompts are of words by chance; temperature 0.",
            options.rounds
        ),
    );
    page.floor(&floor);
    for (kind, settings) in KINDS.iter().zip(settings) {
        page.line(&format!(
            "* {}: {}",
            kind.name(),
            settings.as_deref().unwrap_or("did not start")
        ));
    }
    page.line("");
    table::answers(&mut page, &found, &floor);
    if options.parts.iter().any(|part| part == "mixed") {
        mixed::measure(&mut page, &options).await;
    }
    if options.parts.iter().any(|part| part == "abort") {
        abort::measure(&mut page, &options).await;
    }
    page.done(options.keep)
}

/// Starts a server, warms it up, and measures it.
async fn measure(
    kind: Kind,
    case: &Case,
    round: usize,
    options: &Options,
    settings: &mut Option<String>,
) -> Result<Sample, String> {
    let server = kind.start(case.size(), &options.peers).await?;
    *settings = Some(server.settings.clone());
    let load = case.load(server.load(), round);
    // The threads are there, the caches of the processor are warm, and no prompt is known.
    let warm_up = super::client::Load {
        prompt_tokens: 64,
        answer_tokens: 16,
        seed: u64::MAX - round as u64,
        requests: Some(1),
        shared_tokens: 0,
        ..load.clone()
    };
    Sample::take(&server, &warm_up).await?;
    if let Some(first) = case.first(&load) {
        Sample::take(&server, &first).await?;
    }
    Sample::take(&server, &load).await
}

impl Options {
    /// Room for such streams.
    fn size(&self, streams: usize, prompt: usize) -> Size {
        Size {
            streams,
            // A word may be two tokens at the beginning, and templates add some.
            tokens: prompt + prompt / 16 + self.answer_tokens as usize + 32,
        }
    }
}
