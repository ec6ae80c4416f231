//! The forward pass on the naive device against the reference: first logits, a few greedy tokens, and the same however batched.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use engine::{Backend, BlockIndex, NoToken, SampleRequest, Sampling, Slice, Token};
use model::{Llama, Model, PoolOptions};

use crate::naive::Naive;
use crate::reference::{Greedy, Logits, cases, model};

/// A backend, and the logits its device read last.
pub(crate) struct Runner {
    backend: Llama<Naive>,
    last: Arc<Mutex<Vec<f32>>>,
}

impl Runner {
    pub(crate) fn new(model: &Model) -> Self {
        let device = Naive::default();
        let last = Arc::clone(&device.last);
        let backend = model
            .backend(
                device,
                PoolOptions {
                    blocks: 64,
                    block_tokens: 16,
                },
            )
            .unwrap();
        Self { backend, last }
    }

    /// Runs one step of `(tokens of the whole sequence, position of the first to compute, blocks)`; the sampled tokens.
    pub(crate) fn step(&mut self, batch: &[(&[Token], usize, &[BlockIndex])]) -> Vec<Token> {
        let sampled = self.try_step(batch);
        sampled.into_iter().map(|token| token.unwrap()).collect()
    }

    /// The same where some may have no next token.
    pub(crate) fn try_step(
        &mut self,
        batch: &[(&[Token], usize, &[BlockIndex])],
    ) -> Vec<Result<Token, NoToken>> {
        let sampling = Sampling::default();
        let sampling = &sampling;
        let slices: Vec<_> = batch.iter().map(|&part| slice(part, sampling)).collect();
        let mut out = Vec::new();
        self.backend.step(&slices, &mut out).unwrap();
        assert!(out.iter().map(|s| s.slice).eq(0..batch.len()));
        out.into_iter().map(|s| s.token).collect()
    }

    pub(crate) fn logits(&self) -> Vec<f32> {
        self.last.lock().unwrap().clone()
    }

    /// The greedy continuation, prompt in pieces of `chunk` tokens.
    fn greedy(&mut self, prompt: &[Token], n: usize, chunk: usize, blocks: &[BlockIndex]) -> Vec<Token> {
        let mut tokens = prompt.to_vec();
        let mut start = 0;
        while tokens.len() < prompt.len() + n {
            let end = tokens.len().min(start + chunk);
            let sampled = self.step(&[(&tokens[..end], start, blocks)]);
            if end == tokens.len() {
                tokens.extend(sampled);
            }
            start = end;
        }
        tokens.split_off(prompt.len())
    }
}

/// The default model on the naive device, loaded once for all tests.
fn real() -> MutexGuard<'static, Runner> {
    static RUNNER: LazyLock<Mutex<Runner>> = LazyLock::new(|| Mutex::new(Runner::new(&model())));
    RUNNER.lock().unwrap()
}

/// The part of `history` from `start` on, sampled behind its end.
fn slice<'a>(
    (history, start, blocks): (&'a [Token], usize, &'a [BlockIndex]),
    sampling: &'a Sampling,
) -> Slice<'a> {
    let sample = SampleRequest {
        sampling,
        history,
        prompt_tokens: history.len(),
        forbid_end: false,
    };
    Slice {
        tokens: &history[start..],
        start: u32::try_from(start).unwrap(),
        blocks,
        sample: Some(sample),
    }
}

/// Within 1e-2 of the largest logit.
fn check_logits(found: &[f32], expected: &Logits) {
    let close = |token: usize, value: f32| {
        let error = (found[token] - value).abs() / expected.max_abs;
        assert!(error < 1e-2, "token {token}: {} for {value}", found[token]);
    };
    expected
        .top
        .iter()
        .for_each(|&(token, value)| close(token, value));
    expected
        .sample
        .iter()
        .enumerate()
        .for_each(|(i, &value)| close(i * expected.sample_stride, value));
}

#[test]
fn first_logits_and_tokens_are_the_references() {
    let mut runner = real();
    let blocks: Vec<_> = (0..16).rev().collect();
    for case in cases::<Greedy>("greedy.json")
        .iter()
        .filter(|c| c.ids.len() < 24)
        .take(3)
    {
        assert_eq!(
            runner.step(&[(&case.ids, 0, &blocks)]),
            case.generated[..1],
            "{:?}",
            case.text
        );
        check_logits(&runner.logits(), &case.first);
        let n = case.generated.len().min(8);
        assert_eq!(
            runner.greedy(&case.ids, n, 512, &blocks),
            case.generated[..n],
            "{:?}",
            case.text
        );
    }
}

#[test]
fn logits_do_not_depend_on_the_batch_or_the_chunks() {
    let mut runner = real();
    let prompts: Vec<Vec<Token>> = cases::<Greedy>("greedy.json")
        .into_iter()
        .map(|c| c.ids)
        .filter(|i| i.len() < 16)
        .collect();
    let blocks = [[5], [0], [9]];
    let (one, two, three) = (&prompts[0], &prompts[1], &prompts[2]);
    let alone = (runner.step(&[(one, 0, &blocks[0])]), runner.logits());
    assert_eq!(runner.greedy(one, 1, 2, &blocks[0]), alone.0);
    assert_eq!(runner.logits(), alone.1);
    let together = runner.step(&[(two, 0, &blocks[1]), (one, 0, &blocks[0]), (three, 0, &blocks[2])]);
    let width = alone.1.len();
    assert_eq!(
        (together[1], &runner.logits()[width..2 * width]),
        (alone.0[0], alone.1.as_slice())
    );
}

#[test]
fn wrong_slices_are_errors() {
    let mut runner = real();
    let spec = runner.backend.spec().clone();
    assert_eq!(
        (spec.vocabulary, spec.context_tokens, spec.end_tokens),
        (49_152, 8192, vec![0, 2])
    );
    let mut check = |tokens: &[Token], start, blocks: &[BlockIndex]| {
        let mut out = Vec::new();
        let result = runner.backend.step(
            &[Slice {
                tokens,
                start,
                blocks,
                sample: None,
            }],
            &mut out,
        );
        assert!(result.is_err() && out.is_empty(), "{tokens:?} {start} {blocks:?}");
    };
    check(&[], 0, &[0]);
    check(&[49_152], 0, &[0]);
    check(&[1], 16, &[0]);
    check(&[1], 0, &[64]);
    check(&[1], 8192, &[0; 1024]);
}
