//! What traces cost: a cluster whose engines take no time, without traces, with some and with all, in turn.

use std::fmt::Write as _;
use std::time::Duration;

use evidence::Stamp;
use serde_json::json;

use super::load::{Served, drive};
use super::spread::Spread;
use crate::cluster::{Cluster, MODEL};
use crate::collector::Collector;
use crate::proc;

/// How it is measured.
#[derive(Copy, Clone, Debug)]
pub struct Options {
    /// How often each of the three is measured.
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
            rounds: 9,
            lasts: Duration::from_secs(6),
            streams: 64,
            answer_tokens: 64,
        }
    }
}

/// Words of the prompt; about as many tokens.
const PROMPT_WORDS: usize = 200;
/// Before it counts.
const WARM_UP: Duration = Duration::from_secs(1);
/// Hundredths of a second.
const TICK: f64 = 0.01;

/// What is compared: its name, and the share of traces that is kept; `None`: there is no collector.
const CASES: [(&str, Option<f64>); 3] = [("off", None), ("1 %", Some(0.01)), ("100 %", Some(1.0))];

/// One measurement.
#[derive(Copy, Clone)]
struct Taken {
    tokens_per_second: f64,
    cpu_us_per_token: f64,
}

/// Measures, and gives a table in Markdown.
///
/// # Panics
/// If a cluster does not do what it must.
pub async fn tracing(options: Options) -> String {
    let stamp = Stamp::now();
    let collector = Collector::start_silent();
    let mut taken: [Vec<Taken>; 3] = Default::default();
    for round in 0..options.rounds {
        // Each of them is the first as often as the others.
        for turn in 0..CASES.len() {
            let case = (round + turn) % CASES.len();
            let one = measure(CASES[case].1, &collector, options).await;
            eprintln!(
                "round {}, traces {}: {:.0} tokens/s, {:.2} us of CPU a token",
                round + 1,
                CASES[case].0,
                one.tokens_per_second,
                one.cpu_us_per_token
            );
            taken[case].push(one);
        }
    }
    table(&stamp, options, &taken)
}

async fn measure(share: Option<f64>, collector: &Collector, options: Options) -> Taken {
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
    let mut cluster = Cluster::up(&["--processes", "--prefill", "1", "--decode", "1"], &sets, 2).await;
    let request = json!({
        "model": MODEL, "prompt": "word ".repeat(PROMPT_WORDS), "max_tokens": options.answer_tokens,
        "temperature": 0.0, "ignore_eos": true, "stream": true,
    });
    let to = cluster.ports().http;
    drive(to, options.streams, WARM_UP, &request).await;
    let up = cluster.process("up").id();
    let before = proc::ticks_of_family(up);
    let Served { tokens, lasted } = drive(to, options.streams, options.lasts, &request).await;
    let used = proc::ticks_of_family(up) - before;
    Taken {
        tokens_per_second: tokens as f64 / lasted.as_secs_f64(),
        cpu_us_per_token: used as f64 * TICK * 1e6 / tokens as f64,
    }
}

fn table(stamp: &Stamp, options: Options, taken: &[Vec<Taken>; 3]) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "Traces, to a collector that drops them: `{}`{}, {}, {} cores, {}. {} rounds of {} s, {} streams of {} tokens after a prompt of {} \
         words, over HTTP/1.1; a gateway, a prefill and a decode worker as processes, engines that take no time. Each figure: the median \
         (least to greatest); ratios are of the same round. The clients and the collector have the same cores as the cluster.\n",
        stamp.commit,
        if stamp.changed { " and changes" } else { "" },
        stamp.date,
        stamp.cores,
        stamp.cpu,
        options.rounds,
        options.lasts.as_secs(),
        options.streams,
        options.answer_tokens,
        PROMPT_WORDS,
    );
    let _ = writeln!(
        text,
        "| traces | output tokens/s | of that without | CPU of the cluster, us a token | of that without |\n|---|---|---|---|---|"
    );
    for (case, (name, _)) in CASES.iter().enumerate() {
        let spread = |figure: fn(&Taken) -> f64| Spread::of(taken[case].iter().map(figure));
        let ratio = |figure: fn(&Taken) -> f64| {
            let pairs = taken[case].iter().zip(&taken[0]);
            Spread::of(pairs.map(|(this, off)| figure(this) / figure(off)))
        };
        let _ = writeln!(
            text,
            "| {name} | {:.0} | {:.3} | {:.2} | {:.3} |",
            spread(|taken| taken.tokens_per_second),
            ratio(|taken| taken.tokens_per_second),
            spread(|taken| taken.cpu_us_per_token),
            ratio(|taken| taken.cpu_us_per_token),
        );
    }
    text
}
