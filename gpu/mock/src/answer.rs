//! What a mock answers: a function of the tokens before (and of the seed, unless greedy) alone. No state, no KV.

use engine::{SampleRequest, Sampling, Token};

use crate::config::{Answer, END_TOKEN, MockConfig};
use crate::pattern::{extend, mix, root};

/// The whole answer that an undisturbed mock gives to `prompt`, without the end token: what any client of it must have seen, whatever
/// happened on the way. At most `max_new` tokens.
#[must_use]
pub fn undisturbed(
    config: &MockConfig,
    prompt: &[Token],
    sampling: &Sampling,
    max_new: u32,
    ignore_eos: bool,
) -> Vec<Token> {
    let mut history = prompt.to_vec();
    for _ in 0..max_new {
        let request = SampleRequest {
            sampling,
            history: &history,
            prompt_tokens: prompt.len(),
            forbid_end: ignore_eos,
        };
        match next_token(config, &request) {
            END_TOKEN => break,
            token => history.push(token),
        }
    }
    history.split_off(prompt.len())
}

/// The token after a history.
pub(crate) fn next_token(config: &MockConfig, request: &SampleRequest<'_>) -> Token {
    let chain = |tokens: &[Token]| {
        tokens
            .iter()
            .fold(root(config.salt), |chain, &token| extend(chain, token))
    };
    let prompt = &request.history[..request.prompt_tokens.min(request.history.len())];
    let generated = (request.history.len() - prompt.len()) as u64;
    let ends_after = match config.answer {
        Answer::Never => None,
        Answer::After(tokens) => Some(u64::from(tokens)),
        Answer::Between(least, most) => {
            let choices = u64::from(most.saturating_sub(least)) + 1;
            Some(u64::from(least) + mix(!chain(prompt)) % choices)
        }
    };
    if !request.forbid_end && ends_after.is_some_and(|after| generated >= after) {
        return END_TOKEN;
    }
    let seed = if request.sampling.temperature > 0.0 {
        request.sampling.seed
    } else {
        0
    };
    let number = mix(chain(request.history) ^ mix(seed));
    let others = u64::from(config.vocabulary) - 1;
    // The end token is 0: every other token is one of the rest.
    1 + u32::try_from(number % others).unwrap_or(0)
}
