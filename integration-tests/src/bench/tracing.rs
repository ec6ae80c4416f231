//! What traces cost: a cluster whose engines take no time, without traces, with some and with all, in turn.

use std::fmt::Write as _;
use std::time::Duration;

use evidence::Stamp;
use serde_json::json;
use tokio::time::sleep;

use super::load::{Served, drive};
use super::spread::{Mean, Spread};
use crate::cluster::{Cluster, MODEL};
use crate::collector::Collector;
use crate::proc;

/// How it is measured.
#[derive(Copy, Clone, Debug)]
pub struct Options {
    /// How often clusters are started. No two that were started are equally fast, whatever they do: where their memory lies, which streams
    /// fell into step. So few long measurements of one start say less than many starts.
    pub starts: usize,
    /// How often each of the three is measured in a start.
    pub rounds: usize,
    /// For how long each time.
    pub lasts: Duration,
    /// Streams at a time.
    pub streams: usize,
    /// Tokens of an answer.
    pub answer_tokens: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            starts: 12,
            rounds: 6,
            lasts: Duration::from_secs(1),
            streams: 64,
            answer_tokens: 64,
        }
    }
}

/// Words of the prompt; about as many tokens.
const PROMPT_WORDS: usize = 200;
/// Before it counts: then traces of what was before are sent while it counts, and as many are sent later.
const WARM_UP: Duration = Duration::from_secs(1);
/// Until a cluster has sent all its traces, and disturbs no other.
const REST: Duration = Duration::from_millis(700);
/// A hundredth of a second, in microseconds.
const TICK_US: f64 = 1e4;

/// What is compared: its name, and the share of traces that is kept; `None`: there is no collector.
const CASES: [(&str, Option<f64>); 3] = [("off", None), ("1 %", Some(0.01)), ("100 %", Some(1.0))];

/// A cluster that is measured, in turn with others.
struct Case {
    cluster: Cluster,
    pid: u32,
    ticks_before: u64,
    tokens: u64,
    tokens_per_second: Vec<f64>,
}

/// What was found of each case, a figure a start.
#[derive(Default)]
struct Found {
    tokens_per_second: [Vec<f64>; CASES.len()],
    cpu_us_per_token: [Vec<f64>; CASES.len()],
}

/// Measures, and gives a table in Markdown.
///
/// # Panics
/// If a cluster does not do what it must.
pub async fn tracing(options: Options) -> String {
    let stamp = Stamp::now();
    let collector = Collector::start_silent();
    let mut found = Found::default();
    for start in 0..options.starts {
        measure_start(start, options, &collector, &mut found).await;
        eprintln!("start {} of {}", start + 1, options.starts);
    }
    table(&stamp, options, &found)
}

/// Starts the three, measures them in turn, and ends them. Each of them is the first as often as the others, started and measured.
async fn measure_start(start: usize, options: Options, collector: &Collector, found: &mut Found) {
    let mut cases: Vec<(usize, Case)> = Vec::new();
    for turn in 0..CASES.len() {
        let which = (start + turn) % CASES.len();
        let beside = cases.first().map(|(_, case)| &case.cluster);
        let case = Case::start(CASES[which].1, collector, beside).await;
        cases.push((which, case));
    }
    for round in 0..options.rounds {
        for turn in 0..cases.len() {
            let place = (round + turn) % CASES.len();
            cases[place].1.measure(options).await;
        }
    }
    for (which, case) in cases {
        found.tokens_per_second[which].push(Spread::of(case.tokens_per_second.iter().copied()).median);
        found.cpu_us_per_token[which].push(case.cpu_us_per_token());
    }
}

impl Case {
    async fn start(share: Option<f64>, collector: &Collector, beside: Option<&Cluster>) -> Self {
        const UP: [&str; 5] = ["--processes", "--prefill", "1", "--decode", "1"];
        let mut sets = vec![
            "worker.device=mock".to_owned(),
            "worker.slots=256".to_owned(),
            "worker.pool_mib=64".to_owned(),
            "log.filter=warn".to_owned(),
        ];
        if let Some(share) = share {
            sets.push(format!("tracing.endpoint={}", collector.grpc()));
            sets.push(format!("tracing.sample={share:?}"));
        }
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let mut cluster = match beside {
            None => Cluster::up(&UP, &sets, 2).await,
            Some(other) => other.up_beside(&UP, &sets, 2).await,
        };
        let pid = cluster.process("up").id();
        Self {
            cluster,
            pid,
            ticks_before: proc::ticks_of_family(pid),
            tokens: 0,
            tokens_per_second: Vec::new(),
        }
    }

    async fn measure(&mut self, options: Options) {
        let request = json!({
            "model": MODEL, "prompt": "word ".repeat(PROMPT_WORDS), "max_tokens": options.answer_tokens,
            "temperature": 0.0, "ignore_eos": true, "stream": true,
        });
        let to = self.cluster.ports().http;
        let warm = drive(to, options.streams, WARM_UP, &request).await;
        let Served { tokens, lasted } = drive(to, options.streams, options.lasts, &request).await;
        self.tokens += warm.tokens + tokens;
        self.tokens_per_second.push(tokens as f64 / lasted.as_secs_f64());
        sleep(REST).await;
    }

    /// Of all its processes, sending traces included.
    fn cpu_us_per_token(&self) -> f64 {
        let ticks = proc::ticks_of_family(self.pid) - self.ticks_before;
        ticks as f64 * TICK_US / self.tokens as f64
    }
}

fn table(stamp: &Stamp, options: Options, found: &Found) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "Traces, to a collector that drops them: `{}`{}, {}, {} cores, {}. Three clusters side by side, started {} times; each measured {} \
         times for {} s, in turn: {} streams of {} tokens after a prompt of {} words, over HTTP/1.1; a gateway, a prefill and a decode \
         worker as processes, engines that take no time. A start's figure is the median of its measurements; the table has the median of \
         the starts (least to greatest), and the mean of the ratios in each start with its standard error. CPU: of the cluster's \
         processes, in all. The clients and the collector have the same cores as the cluster.\n",
        stamp.commit,
        if stamp.changed { " and changes" } else { "" },
        stamp.date,
        stamp.cores,
        stamp.cpu,
        options.starts,
        options.rounds,
        options.lasts.as_secs(),
        options.streams,
        options.answer_tokens,
        PROMPT_WORDS,
    );
    let _ = writeln!(
        text,
        "| traces | output tokens/s | of that without | CPU, us a token | of that without |\n|---|---|---|---|---|"
    );
    for (which, (name, _)) in CASES.into_iter().enumerate() {
        let figures = |of: &[Vec<f64>; CASES.len()]| {
            let ratios = of[which].iter().zip(&of[0]).map(|(this, off)| this / off);
            (Spread::of(of[which].iter().copied()), Mean::of(ratios))
        };
        let (tokens, tokens_ratio) = figures(&found.tokens_per_second);
        let (cpu, cpu_ratio) = figures(&found.cpu_us_per_token);
        let _ = writeln!(
            text,
            "| {name} | {tokens:.0} | {tokens_ratio:.3} | {cpu:.1} | {cpu_ratio:.3} |"
        );
    }
    text
}
