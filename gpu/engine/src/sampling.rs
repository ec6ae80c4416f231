//! What a client may ask of sampling. Applied by the backend's sampler; the meaning of each field is OpenAI's (vLLM's for `top_k`, `min_p`).

/// How to choose the next token.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// 0 takes the most likely token.
    pub temperature: f32,
    /// Keep the smallest set of tokens whose probabilities sum to this; 1 keeps all.
    pub top_p: f32,
    /// Keep the `k` most likely tokens; 0 keeps all.
    pub top_k: u32,
    /// Drop tokens less likely than this times the most likely one; 0 keeps all.
    pub min_p: f32,
    /// Random numbers are a function of (seed, position) alone, so a migrated sequence continues as it would have.
    pub seed: u64,
    /// Subtracted from the logit of every token generated so far.
    pub presence_penalty: f32,
    /// Subtracted once for each time the token was generated so far.
    pub frequency_penalty: f32,
    /// Report the log-probability of the sampled token and of this many alternatives.
    pub logprobs: Option<u8>,
}

impl Default for Sampling {
    /// Greedy, no penalties, no log-probabilities.
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_p: 1.0,
            top_k: 0,
            min_p: 0.0,
            seed: 0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            logprobs: None,
        }
    }
}
