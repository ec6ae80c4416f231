//! What a mock answers: a function of the tokens before (and of the seed, unless greedy) alone. No state; and no KV, unless it is to be cheap
//! ([`Verify::Latest`](crate::Verify::Latest)).

use engine::{SampleRequest, Sampling, Token};

use crate::config::{Answer, END_TOKEN, MockConfig};
use crate::pattern::{Chain, extend, mix, root};

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
    let mut chain = chain_of(config, prompt);
    for _ in 0..max_new {
        let request = SampleRequest {
            sampling,
            history: &history,
            prompt_tokens: prompt.len(),
            forbid_end: ignore_eos,
        };
        match next_token(config, &request, chain) {
            END_TOKEN => break,
            token => {
                chain = extend(chain, token);
                history.push(token);
            }
        }
    }
    history.split_off(prompt.len())
}

/// The chain after these tokens.
fn chain_of(config: &MockConfig, tokens: &[Token]) -> Chain {
    let beginning = root(config.salt);
    tokens
        .iter()
        .fold(beginning, |chain, &token| extend(chain, token))
}

/// The token after a history, whose chain is `chain`.
pub(crate) fn next_token(config: &MockConfig, request: &SampleRequest<'_>, chain: Chain) -> Token {
    let prompt = &request.history[..request.prompt_tokens.min(request.history.len())];
    let generated = (request.history.len() - prompt.len()) as u64;
    let ends_after = match config.answer {
        Answer::Never => None,
        Answer::After(tokens) => Some(u64::from(tokens)),
        Answer::Between(least, most) => {
            let choices = u64::from(most.saturating_sub(least)) + 1;
            Some(u64::from(least) + mix(!chain_of(config, prompt)) % choices)
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
    let number = mix(chain ^ mix(seed));
    let others = u64::from(config.vocabulary) - 1;
    // The end token is 0: every other token is one of the rest.
    1 + u32::try_from(number % others).unwrap_or(0)
}
