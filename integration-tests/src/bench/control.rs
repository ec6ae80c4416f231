//! `bench control`: what everything but the engines costs, ours against NVIDIA Dynamo's, each with a frontend, a prefill and a decode worker as
//! processes of their own whose engines take no time.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::client::{Endpoint, Load};
use super::page::Page;
use super::sample::{Sample, Samples, cell};
use super::server::{self, Kind, Server, Size};

/// How it is measured.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// How often each is measured.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// For how many seconds each time.
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Streams at a time.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16, 64, 256, 1_000])]
    pub streams: Vec<usize>,
    /// Tokens of prompts; of each number of them in turn, with all numbers of streams.
    #[arg(long, value_delimiter = ',', default_values_t = [200])]
    pub prompts: Vec<usize>,
    /// Tokens of an answer.
    #[arg(long, default_value_t = 64)]
    pub answer_tokens: u32,
    /// What is asked for: with `chat`, servers also put the prompt into a template.
    #[arg(long, value_enum, default_value_t = Endpoint::Chat)]
    pub endpoint: Endpoint,
    /// Who is measured.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Who::Ours, Who::Dynamo])]
    pub servers: Vec<Who>,
    /// Where Dynamo has been installed.
    #[arg(long, default_value_os_t = server::peers())]
    pub peers: PathBuf,
    /// Writes docs/benchmarks-control.md.
    #[arg(long)]
    pub keep: bool,
}

/// Who can be measured.
#[derive(Copy, Clone, Eq, PartialEq, Debug, ValueEnum)]
pub enum Who {
    /// A gateway, a prefill and a decode worker of ours.
    Ours,
    /// Dynamo's frontend, and its mocker twice.
    Dynamo,
}

impl Who {
    fn kind(self) -> Kind {
        match self {
            Self::Ours => Kind::Apart,
            Self::Dynamo => Kind::Dynamo,
        }
    }
}

/// One load, and what was found of each server.
struct Found {
    streams: usize,
    prompt: usize,
    /// As the options name the servers: with connections that are kept, and with fresh ones.
    samples: Vec<[Samples; 2]>,
}

/// Before it counts.
const WARM_UP_SECONDS: f64 = 1.0;

/// Measures, and gives a page in Markdown.
///
/// # Panics
/// If our own server does not do what it must. What goes wrong with another is told in its row.
pub async fn control(options: Options) -> String {
    let mut settings = vec![None; options.servers.len()];
    let mut found = Vec::new();
    for &prompt in &options.prompts {
        for &streams in &options.streams {
            eprintln!("{streams} x {prompt}");
            found.push(case(streams, prompt, &options, &mut settings).await);
        }
    }
    let what = format!(
        "A frontend, a prefill and a decode worker, as processes; engines that take no time; answers of {} tokens over HTTP/1.1 ({:?}). The load \
         generator is a process of its own on the same cores. Each was started afresh for every figure and measured {} times for {} s after \
         {WARM_UP_SECONDS} s, in turn; figures are medians (least to greatest).",
        options.answer_tokens, options.endpoint, options.rounds, options.seconds
    );
    let mut page = Page::new("control", "The control path against NVIDIA Dynamo", &what);
    for (who, settings) in options.servers.iter().zip(settings) {
        let settings = settings.as_deref().unwrap_or("did not start");
        page.line(&format!("* {}: {settings}", who.kind().name()));
    }
    page.line("");
    table(&mut page, &options, &found);
    processes(&mut page, &options, &found);
    page.done(options.keep)
}

async fn case(streams: usize, prompt: usize, options: &Options, settings: &mut [Option<String>]) -> Found {
    let mut samples: Vec<[Samples; 2]> = options.servers.iter().map(|_| Default::default()).collect();
    let size = Size {
        streams,
        tokens: prompt + prompt / 16 + options.answer_tokens as usize + 64,
    };
    for round in 0..options.rounds {
        for turn in 0..options.servers.len() {
            let which = (round + turn) % options.servers.len();
            let server = options.servers[which].kind().start(size, &options.peers).await;
            let [kept, fresh] = match server {
                Err(error) => [Err(error.clone()), Err(error)],
                Ok(server) => {
                    settings[which] = Some(server.settings.clone());
                    let load = Load {
                        endpoint: options.endpoint,
                        streams,
                        prompt_tokens: prompt,
                        answer_tokens: options.answer_tokens,
                        requests: None,
                        seconds: options.seconds,
                        seed: 2 + 3 * round as u64,
                        ..server.load()
                    };
                    both(&server, &load).await
                }
            };
            samples[which][0].add(kept);
            samples[which][1].add(fresh);
        }
    }
    Found {
        streams,
        prompt,
        samples,
    }
}

/// Measures with connections that are kept, and then with fresh ones, each with prompts that are new.
async fn both(server: &Server, load: &Load) -> [Result<Sample, String>; 2] {
    let warm_up = Load {
        seconds: WARM_UP_SECONDS,
        seed: load.seed - 1,
        ..load.clone()
    };
    if let Err(error) = Sample::take(server, &warm_up).await {
        return [Err(error.clone()), Err(error)];
    }
    let fresh = Load {
        fresh: true,
        seconds: load.seconds / 2.0,
        seed: load.seed + 1,
        ..load.clone()
    };
    [
        Sample::take(server, load).await,
        Sample::take(server, &fresh).await,
    ]
}

fn table(page: &mut Page, options: &Options, found: &[Found]) {
    page.line(
        "*CPU* and *peak*: of all the server's processes. *First*: from a request to its first text, over connections that are kept, and over \
         fresh ones, for a server without `TCP_NODELAY` waits for acknowledgements on the former. *Texts*: events with text by tokens.\n",
    );
    page.head(&[
        "streams x prompt",
        "server",
        "requests/s",
        "CPU ms a request",
        "us a token",
        "by the last row's",
        "first ms p50",
        "p99",
        "fresh p50",
        "fresh p99",
        "gaps ms p99",
        "texts",
        "peak MiB",
        "by the last row's",
        "clients' CPU s",
    ]);
    for found in found {
        for (who, [kept, fresh]) in options.servers.iter().zip(&found.samples) {
            let case = format!("{} x {}", found.streams, found.prompt);
            if let Some(error) = kept.error().or(fresh.error()) {
                page.row(&[case, who.kind().name().to_owned(), format!("failed: {error}")]);
                continue;
            }
            let last = found.samples.last().map(|[kept, _]| kept);
            let ratio = |figure: fn(&Sample) -> f64| {
                let other = last.filter(|other| !std::ptr::eq(*other, kept));
                other.map_or_else(String::new, |other| cell(kept.ratio(other, figure), 3))
            };
            let tell = |figure: fn(&Sample) -> f64, digits| cell(kept.spread(figure), digits);
            let tell_fresh = |figure: fn(&Sample) -> f64| cell(fresh.spread(figure), 1);
            page.row(&[
                case,
                who.kind().name().to_owned(),
                tell(|sample| sample.report.requests as f64 / sample.report.seconds, 0),
                tell(
                    |sample| sample.used.cpu_seconds() * 1e3 / sample.report.requests as f64,
                    2,
                ),
                tell(us_per_token, 1),
                ratio(us_per_token),
                tell(|sample| sample.report.first.quantile_ms(0.5), 1),
                tell(|sample| sample.report.first.quantile_ms(0.99), 1),
                tell_fresh(|sample| sample.report.first.quantile_ms(0.5)),
                tell_fresh(|sample| sample.report.first.quantile_ms(0.99)),
                tell(|sample| sample.report.gaps.quantile_ms(0.99), 1),
                tell(
                    |sample| sample.report.texts as f64 / sample.report.output_tokens as f64,
                    2,
                ),
                tell(peak, 0),
                ratio(peak),
                tell(|sample| sample.report.client_cpu_seconds, 2),
            ]);
        }
    }
    page.line("");
}

/// What each process and its threads had of that, the last time.
fn processes(page: &mut Page, options: &Options, found: &[Found]) {
    page.line(
        "By process, the last time: threads by name without their numbers, of those that ran at the end.\n",
    );
    page.head(&[
        "streams x prompt",
        "process",
        "CPU ms a request",
        "us a token",
        "of that in the kernel",
        "switches a token",
        "threads",
    ]);
    for found in found {
        for (who, [kept, _]) in options.servers.iter().zip(&found.samples) {
            let Some(Sample { report, used }) = kept.last() else {
                continue;
            };
            // One that only watches the others uses nothing.
            for (name, used) in used.processes.iter().filter(|(_, used)| used.cpu_seconds >= 0.01) {
                let mut threads: Vec<(&String, f64)> = used
                    .threads
                    .iter()
                    .map(|(name, seconds)| (name, seconds / used.cpu_seconds.max(1e-9)))
                    .collect();
                threads.sort_by(|one, other| other.1.total_cmp(&one.1));
                let threads: Vec<String> = threads
                    .iter()
                    .take(4)
                    .map(|(name, share)| format!("{name} {:.0} %", share * 100.0))
                    .collect();
                page.row(&[
                    format!("{} x {}", found.streams, found.prompt),
                    format!("{}: {name}", who.kind().name()),
                    format!("{:.3}", used.cpu_seconds * 1e3 / report.requests as f64),
                    format!("{:.1}", used.cpu_seconds * 1e6 / report.output_tokens as f64),
                    format!(
                        "{:.0} %",
                        used.kernel_seconds / used.cpu_seconds.max(1e-9) * 100.0
                    ),
                    format!(
                        "{:.2}",
                        used.switches.iter().sum::<u64>() as f64 / report.output_tokens as f64
                    ),
                    threads.join(", "),
                ]);
            }
        }
    }
    page.line("");
}

fn us_per_token(sample: &Sample) -> f64 {
    sample.used.cpu_seconds() * 1e6 / sample.report.output_tokens as f64
}

fn peak(sample: &Sample) -> f64 {
    sample.used.peak_mib()
}
