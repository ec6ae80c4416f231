//! What was found, case by case.

use super::case::{Case, Part};
use super::{Found, KINDS};
use crate::bench::floor::Floor;
use crate::bench::page::Page;
use crate::bench::sample::{Sample, Samples, cell};
use crate::bench::server::Kind;

/// Bytes of the weights that a step reads: the file, of which a few KiB are something else.
const WEIGHT_BYTES: f64 = 98.36e6;
/// Products for each token of a prompt: 30 layers of 576 x (2 x 576 + 2 x 192) + 3 x 576 x 1,536. Its last token also needs the head.
const PROMPT_PRODUCTS: f64 = 30.0 * (576.0 * (2.0 * 576.0 + 2.0 * 192.0) + 3.0 * 576.0 * 1_536.0);
/// Products for a token of an answer: with the head of 49,152.
const ANSWER_PRODUCTS: f64 = PROMPT_PRODUCTS + 576.0 * 49_152.0;
/// Bytes of the KV of a token: 30 layers of keys and values, 3 heads of 64 in 16 bits.
const KV_BYTES: f64 = 30.0 * 2.0 * 3.0 * 64.0 * 2.0;

/// The table.
pub(super) fn answers(page: &mut Page, found: &[Found], floor: &Floor) {
    if found.is_empty() {
        return;
    }
    page.line(
        "*Output* and *prompt*: tokens by the time from the first request to the last answer's end, of all clients together, who ask at once; \
         *limit*: what the floor allows if nothing but that were done (weights and a KV of 16 bits read once a step; products). *Gaps*: between \
         texts of a stream. *CPU* and *peak*: of the server's processes.\n",
    );
    page.head(&[
        "streams x prompt",
        "server",
        "output/s",
        "by the peer's",
        "prompt/s",
        "by the peer's",
        "limit/s",
        "first ms p50",
        "p99",
        "gaps ms p50",
        "p99",
        "CPU s",
        "clients' CPU s",
        "peak MiB",
        "by the peer's",
    ]);
    for found in found {
        for (kind, samples) in KINDS.iter().zip(&found.samples) {
            row(page, found, *kind, samples, floor);
        }
    }
    page.line("");
}

fn row(page: &mut Page, found: &Found, kind: Kind, samples: &Samples, floor: &Floor) {
    if let Some(error) = samples.error() {
        page.row(&[
            found.case.to_string(),
            kind.name().to_owned(),
            format!("failed: {error}"),
        ]);
        return;
    }
    let ratio = |figure: fn(&Sample) -> f64| match kind {
        Kind::Mixed => cell(samples.ratio(&found.samples[1], figure), 2),
        _ => String::new(),
    };
    let cell = |figure: fn(&Sample) -> f64, digits| cell(samples.spread(figure), digits);
    page.row(&[
        found.case.to_string(),
        kind.name().to_owned(),
        cell(output, 0),
        ratio(output),
        cell(prompt, 0),
        ratio(prompt),
        format!("{:.0}", limit(&found.case, floor)),
        cell(|sample| sample.report.first.quantile_ms(0.5), 0),
        cell(|sample| sample.report.first.quantile_ms(0.99), 0),
        cell(|sample| sample.report.gaps.quantile_ms(0.5), 1),
        cell(|sample| sample.report.gaps.quantile_ms(0.99), 1),
        cell(|sample| sample.used.cpu_seconds(), 2),
        cell(|sample| sample.report.client_cpu_seconds, 2),
        cell(peak, 0),
        ratio(peak),
    ]);
}

fn output(sample: &Sample) -> f64 {
    sample.report.tokens_per_second()
}

/// Those that a cache has are counted too.
fn prompt(sample: &Sample) -> f64 {
    sample.report.prompt_tokens as f64 / sample.report.seconds
}

fn peak(sample: &Sample) -> f64 {
    sample.used.peak_mib()
}

/// Output tokens a second that the floor allows, or prompt tokens where answers do not matter.
fn limit(case: &Case, floor: &Floor) -> f64 {
    let products = floor
        .products
        .as_ref()
        .map_or(f64::INFINITY, |(products, _)| *products);
    if case.part == Part::Prompts {
        return products / PROMPT_PRODUCTS;
    }
    let streams = case.streams as f64;
    let context = case.prompt as f64 + f64::from(case.answer) / 2.0;
    let steps = floor.steps_per_second(WEIGHT_BYTES + streams * context * KV_BYTES);
    (steps * streams).min(products / ANSWER_PRODUCTS)
}
