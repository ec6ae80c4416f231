//! Log-probabilities of the model's own distribution: before penalties, temperature and filters.

use engine::{Token, TokenLogprobs};

/// Of `token` and of the `top` most likely tokens.
pub(super) fn of(logits: &[f32], token: Token, top: usize) -> TokenLogprobs {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&l| f64::from(l - max).exp()).sum();
    let log_sum = sum.ln();
    #[allow(clippy::cast_possible_truncation, reason = "the result is f32")]
    let logprob = |logit: f32| (f64::from(logit - max) - log_sum) as f32;

    let mut best: Vec<(Token, f32)> = (0..).zip(logits.iter().copied()).collect();
    let top = top.min(best.len());
    let order = |a: &(Token, f32), b: &(Token, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    if top > 0 && top < best.len() {
        best.select_nth_unstable_by(top - 1, order);
    }
    best.truncate(top);
    best.sort_unstable_by(order);
    TokenLogprobs {
        sampled: logits
            .get(token as usize)
            .map_or(f32::NEG_INFINITY, |&l| logprob(l)),
        top: best.into_iter().map(|(t, l)| (t, logprob(l))).collect(),
    }
}
