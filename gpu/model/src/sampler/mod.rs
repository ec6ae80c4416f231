//! Logits to a token.
//!
//! The filters are applied in this order: penalties, temperature, `top_k`, `top_p`, `min_p`. The choice is a function of the logits,
//! the client's wishes, the history and the position alone: random numbers are drawn from a counter-based generator keyed by the seed
//! at the counter of the position, sums are in `f64` in one fixed order, and of equal logits the lower token id comes first.

mod candidates;
mod greedy;
mod logprobs;
mod philox;

use engine::{NoToken, SampleRequest, Sampling, Token, TokenLogprobs};

use candidates::Candidates;
use greedy::most_likely;

/// Below this, a temperature is taken for 0: dividing by it would overflow.
const COLDEST: f32 = 1e-5;

/// Samples tokens; holds memory that is reused, and nothing that outlives a call.
#[derive(Debug)]
pub(crate) struct Sampler {
    end_tokens: Vec<Token>,
    logits: Vec<f32>,
    candidates: Candidates,
}

impl Sampler {
    /// A sampler for a model that ends its answers with any of `end_tokens`.
    pub(crate) fn new(end_tokens: Vec<Token>) -> Self {
        Self {
            end_tokens,
            logits: Vec::new(),
            candidates: Candidates::default(),
        }
    }

    /// The token that follows `request.history`, whose position is therefore `history.len()`, and its log-probabilities when asked for.
    ///
    /// # Errors
    /// When a logit is not a number or infinite, or no token is left to choose from.
    pub(crate) fn sample(
        &mut self,
        logits: &[f32],
        request: &SampleRequest<'_>,
    ) -> Result<(Token, Option<TokenLogprobs>), NoToken> {
        // Minus infinity is a token that the model rules out; of the others nothing can be chosen.
        let best = most_likely(logits).map_err(|token| {
            let logit = logits.get(token).copied().unwrap_or(f32::NAN);
            NoToken(format!("the logit of token {token} is {logit}"))
        })?;
        let token = if self.is_plain(best, request) {
            best.ok_or_else(nothing_left)?
        } else {
            self.choose(logits, request)?
        };
        let logprobs = request
            .sampling
            .logprobs
            .map(|n| logprobs::of(logits, token, n.into()));
        Ok((token, logprobs))
    }

    /// Whether the most likely token is the one to take, whatever else is wished for.
    fn is_plain(&self, best: Option<Token>, request: &SampleRequest<'_>) -> bool {
        let sampling = request.sampling;
        is_cold(sampling)
            && sampling.presence_penalty == 0.0
            && sampling.frequency_penalty == 0.0
            && !(request.forbid_end && best.is_some_and(|best| self.end_tokens.contains(&best)))
    }

    fn choose(&mut self, logits: &[f32], request: &SampleRequest<'_>) -> Result<Token, NoToken> {
        let sampling = request.sampling;
        self.logits.clear();
        self.logits.extend_from_slice(logits);
        let generated = request.history.get(request.prompt_tokens..).unwrap_or_default();
        penalise(&mut self.logits, generated, sampling);
        if request.forbid_end {
            for &end in &self.end_tokens {
                if let Some(logit) = self.logits.get_mut(end as usize) {
                    *logit = f32::NEG_INFINITY;
                }
            }
        }
        if is_cold(sampling) {
            // They were looked through, and no penalty makes them infinite.
            return most_likely(&self.logits).ok().flatten().ok_or_else(nothing_left);
        }
        let random = philox::uniform(sampling.seed, request.history.len() as u64);
        self.candidates
            .choose(&self.logits, sampling, random)
            .ok_or_else(nothing_left)
    }
}

/// Whether nothing is left to chance.
fn is_cold(sampling: &Sampling) -> bool {
    sampling.temperature <= COLDEST || sampling.temperature.is_nan()
}

fn nothing_left() -> NoToken {
    NoToken("no token has a finite logit".to_owned())
}

/// Lowers the logits of tokens that were generated before. Whatever the penalties, a finite logit stays finite: no wish of a client can
/// leave nothing to choose from.
#[allow(
    clippy::cast_precision_loss,
    reason = "counts of tokens in one answer are exact in f32"
)]
fn penalise(logits: &mut [f32], generated: &[Token], sampling: &Sampling) {
    let (presence, frequency) = (sampling.presence_penalty, sampling.frequency_penalty);
    if presence == 0.0 && frequency == 0.0 {
        return;
    }
    let mut sorted = generated.to_vec();
    sorted.sort_unstable();
    for run in sorted.chunk_by(|a, b| a == b) {
        let penalty = presence + frequency * run.len() as f32;
        if let Some(logit) = run.first().and_then(|&t| logits.get_mut(t as usize))
            && logit.is_finite()
            && !penalty.is_nan()
        {
            *logit = (*logit - penalty).clamp(f32::MIN, f32::MAX);
        }
    }
}

#[cfg(test)]
mod tests;
