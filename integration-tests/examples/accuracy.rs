//! What rounded activations cost the default model: perplexity of a text and agreement of first tokens, against exact products.
//!
//! `cargo run --release -p innkeeper-integration-tests --example accuracy -- TEXT [windows]`
//!
//! TEXT is any plain text; of a public-domain one of 20,000 words, Debian's `bible-kjv-text` is an example. It is cut into windows of
//! tokens that are read side by side, each from its beginning, one token a step.

#[path = "../tests/it/tokens/tap.rs"]
mod tap;

use std::error::Error;
use std::sync::{Arc, PoisonError};

use cpu::{Activations, CpuDevice, CpuOptions};
use engine::{Backend, BlockIndex, SampleRequest, Sampling, Slice, Token};
use model::{FetchOptions, Llama, Model, ModelSource, PoolOptions, default_cache_dir, fetch};
use tap::{Numbers, Tap};

/// Tokens of a window.
const WINDOW: usize = 256;
/// Tokens of a window's prompt, behind which the first token of an answer is compared.
const PROMPT: usize = 48;
const BLOCK_TOKENS: usize = 16;

/// The mean of −ln p of all tokens but each window's first, and the most likely token behind each prompt.
struct Outcome {
    mean: f64,
    firsts: Vec<usize>,
}

struct Reader {
    backend: Llama<Tap<CpuDevice>>,
    logits: Numbers,
    vocabulary: usize,
}

impl Reader {
    fn new(model: &Model, activations: Activations, windows: usize) -> Result<Self, Box<dyn Error>> {
        let device = CpuDevice::new(&CpuOptions {
            activations,
            ..CpuOptions::default()
        })?;
        let logits = Numbers::default();
        let read = Arc::clone(&logits);
        let pool = PoolOptions {
            blocks: u32::try_from(windows * WINDOW / BLOCK_TOKENS)?,
            block_tokens: BLOCK_TOKENS,
        };
        Ok(Self {
            backend: model.backend(Tap { device, read }, pool)?,
            logits,
            vocabulary: model.tokenizer().vocabulary(),
        })
    }

    fn read(&mut self, windows: &[&[Token]]) -> Result<Outcome, Box<dyn Error>> {
        let each = u32::try_from(WINDOW / BLOCK_TOKENS)?;
        let blocks: Vec<Vec<BlockIndex>> = (0..u32::try_from(windows.len())?)
            .map(|i| (i * each..(i + 1) * each).collect())
            .collect();
        let sampling = Sampling::default();
        let (mut sum, mut firsts) = (0.0, Vec::new());
        for position in 0..WINDOW - 1 {
            let slice = |(window, blocks): (&&'_ [Token], &'_ Vec<BlockIndex>)| -> Result<_, Box<dyn Error>> {
                Ok((window[position], u32::try_from(position)?, blocks.clone()))
            };
            let parts: Vec<_> = windows.iter().zip(&blocks).map(slice).collect::<Result<_, _>>()?;
            let batch: Vec<Slice<'_>> = parts
                .iter()
                .zip(windows)
                .map(|((token, start, blocks), window)| Slice {
                    tokens: std::slice::from_ref(token),
                    start: *start,
                    blocks,
                    sample: Some(SampleRequest {
                        sampling: &sampling,
                        history: &window[..=position],
                        prompt_tokens: position + 1,
                        forbid_end: false,
                    }),
                })
                .collect();
            self.backend.step(&batch, &mut Vec::new())?;
            let logits = self.logits.lock().unwrap_or_else(PoisonError::into_inner);
            for (logits, window) in logits.chunks_exact(self.vocabulary).zip(windows) {
                sum += surprise(logits, window[position + 1] as usize);
                if position + 1 == PROMPT {
                    firsts.push(most_likely(logits));
                }
            }
        }
        let mean = sum / (windows.len() * (WINDOW - 1)) as f64;
        Ok(Outcome { mean, firsts })
    }
}

/// −ln of a token's probability.
fn surprise(logits: &[f32], token: usize) -> f64 {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let total: f64 = logits.iter().map(|l| f64::from(l - max).exp()).sum();
    total.ln() - f64::from(logits[token] - max)
}

fn most_likely(logits: &[f32]) -> usize {
    let best = |best: usize, i: usize| if logits[i] > logits[best] { i } else { best };
    (0..logits.len()).fold(0, best)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let text = std::fs::read_to_string(arguments.next().ok_or("which text?")?)?;
    let most: usize = arguments.next().map_or(Ok(usize::MAX), |n| n.parse())?;
    let path = fetch(
        &ModelSource::Default,
        &FetchOptions::new(default_cache_dir()),
        &mut |_| {},
    )?;
    let model = Model::open(path)?;
    let tokens = model.tokenizer().encode(&text, false)?;
    let windows: Vec<&[Token]> = tokens.chunks_exact(WINDOW).take(most).collect();
    println!("{}: {} windows of {WINDOW} tokens", model.name(), windows.len());
    let mut outcomes = Vec::new();
    for activations in [Activations::F32, Activations::Int8] {
        let mut reader = Reader::new(&model, activations, windows.len())?;
        let outcome = reader.read(&windows)?;
        println!("{activations:?}: perplexity {:.4}", outcome.mean.exp());
        outcomes.push(outcome);
    }
    let [exact, rounded] = &outcomes[..] else {
        return Err("two outcomes".into());
    };
    let same = exact
        .firsts
        .iter()
        .zip(&rounded.firsts)
        .filter(|(a, b)| a == b)
        .count();
    println!(
        "rounding changes perplexity by {:+.3} %; {same} of {} first tokens are the same",
        ((rounded.mean - exact.mean).exp() - 1.0) * 100.0,
        exact.firsts.len()
    );
    Ok(())
}
