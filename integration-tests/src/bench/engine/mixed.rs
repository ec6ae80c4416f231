//! Long prompts that arrive while others are being answered: what becomes of the others' gaps.

use super::{KINDS, Options};
use crate::bench::client::{Apart, Load, Report};
use crate::bench::page::Page;
use crate::bench::server::Kind;
use crate::bench::spread::Spread;

/// Who is being answered all the time.
const STREAMS: usize = 8;
const PROMPT: usize = 100;
/// What arrives meanwhile: so many a second.
const LONG_RATE: f64 = 0.25;
const LONG_PROMPT: usize = 1_500;
const LONG_ANSWER: u32 = 16;
/// For how long.
const SECONDS: f64 = 20.0;

/// Measures, and adds a table.
pub(super) async fn measure(page: &mut Page, options: &Options) {
    let mut found: [Result<Vec<[Report; 2]>, String>; 2] = [Ok(Vec::new()), Ok(Vec::new())];
    for round in 0..options.rounds {
        for turn in 0..KINDS.len() {
            let which = (round + turn) % KINDS.len();
            let reports = once(KINDS[which], round, options).await;
            match (&mut found[which], reports) {
                (Ok(all), Ok(reports)) => all.push(reports),
                (failed @ Ok(_), Err(error)) => *failed = Err(error),
                (Err(_), _) => {}
            }
        }
    }
    page.line(&format!(
        "Long prompts among others: {STREAMS} clients, prompts of {PROMPT} tokens, answers of {}, one after the other for {SECONDS} s; meanwhile \
         {LONG_RATE} prompts of {LONG_PROMPT} tokens a second, answers of {LONG_ANSWER}.\n",
        options.answer_tokens
    ));
    page.head(&[
        "server",
        "output/s",
        "gaps ms p50",
        "p99",
        "p99.9",
        "long prompts",
        "first ms p50",
        "most",
    ]);
    for (kind, found) in KINDS.iter().zip(found) {
        match found {
            Err(error) => page.row(&[kind.name().to_owned(), format!("failed: {error}")]),
            Ok(all) => {
                let of = |which: usize, figure: &dyn Fn(&Report) -> f64| {
                    format!(
                        "{:.1}",
                        Spread::of(all.iter().map(|reports| figure(&reports[which])))
                    )
                };
                page.row(&[
                    kind.name().to_owned(),
                    of(0, &Report::tokens_per_second),
                    of(0, &|report| report.gaps.quantile_ms(0.5)),
                    of(0, &|report| report.gaps.quantile_ms(0.99)),
                    of(0, &|report| report.gaps.quantile_ms(0.999)),
                    of(1, &|report| report.requests as f64),
                    of(1, &|report| report.first.quantile_ms(0.5)),
                    of(1, &|report| report.first.quantile_ms(1.0)),
                ]);
            }
        }
    }
    page.line("");
}

async fn once(kind: Kind, round: usize, options: &Options) -> Result<[Report; 2], String> {
    let size = options.size(2 * STREAMS, LONG_PROMPT);
    let server = kind.start(size, &options.peers).await?;
    let load = Load {
        streams: STREAMS,
        prompt_tokens: PROMPT,
        answer_tokens: options.answer_tokens,
        requests: None,
        seconds: SECONDS,
        seed: 1 + round as u64,
        ..server.load()
    };
    let long = Load {
        prompt_tokens: LONG_PROMPT,
        answer_tokens: LONG_ANSWER,
        rate: Some(LONG_RATE),
        seed: 1_000 + round as u64,
        ..load.clone()
    };
    let (short, long) = (Apart::start(&load), Apart::start(&long));
    let reports = [short.report().await, long.report().await];
    match reports.iter().find(|report| report.failed > 0) {
        None => Ok(reports),
        Some(report) => Err(report.errors.join("; ")),
    }
}
