//! The mock backend.

use std::sync::Arc;
use std::time::Duration;

use engine::{
    Backend, BackendError, Interrupt, KvPool, ModelSpec, NoToken, SampleRequest, Sampled, Slice, Token,
    TokenLogprobs, layout_hash,
};

use crate::answer::next_token;
use crate::canary::{Canary, Foreign};
use crate::config::{END_TOKEN, MockConfig, OnForeign, Verify};
use crate::pattern::{Chain, Place, extend, mix, root};

/// How a mock passes its time.
pub type Sleep = Arc<dyn Fn(Duration) + Send + Sync>;

/// Passes no time at all.
#[must_use]
pub fn no_sleep() -> Sleep {
    Arc::new(|_| {})
}

/// A mock: see the crate's documentation.
pub struct MockBackend {
    config: MockConfig,
    spec: ModelSpec,
    pool: Arc<KvPool>,
    canary: Arc<Canary>,
    sleep: Sleep,
    interrupt: Interrupt,
    steps: u64,
}

impl MockBackend {
    /// A mock with a pool of its own.
    ///
    /// # Errors
    /// When the configuration makes no sense or the pool has no memory.
    pub fn new(config: MockConfig, sleep: Sleep) -> Result<Self, BackendError> {
        if config.shape.head_dim < 2 || config.vocabulary < 2 {
            return Err(BackendError(
                "a mock needs a head_dim and a vocabulary of at least 2".into(),
            ));
        }
        let pool = KvPool::new(config.shape)?;
        let fingerprint = format!("mock {} {}", config.name, config.salt);
        let spec = ModelSpec {
            name: config.name.clone(),
            vocabulary: config.vocabulary,
            context_tokens: config.context_tokens,
            end_tokens: vec![END_TOKEN],
            layout_hash: layout_hash(&config.shape, &fingerprint, "mock"),
        };
        Ok(Self {
            config,
            spec,
            pool,
            canary: Arc::default(),
            sleep,
            interrupt: Interrupt::default(),
            steps: 0,
        })
    }

    /// What it finds in its KV, now and later.
    #[must_use]
    pub fn canary(&self) -> Arc<Canary> {
        Arc::clone(&self.canary)
    }

    /// Checks what a slice attends to. Without a history (in the middle of a prompt) a position can only be checked against the chain it
    /// carries itself; the prompt's last chunk then checks all of it against the tokens. Gives the chain after the history, if the tokens
    /// were looked at.
    fn verify(&self, index: usize, slice: &Slice<'_>) -> Result<Option<Chain>, BackendError> {
        let looks = self.config.verify != Verify::Latest;
        let sample = slice.sample.as_ref().filter(|_| looks);
        let expected = sample.map(|sample| self.chains(sample.history));
        for position in self.positions_to_check(slice) {
            let place = self.place(slice, position)?;
            let chain = match expected.as_ref().and_then(|chains| chains.get(position as usize)) {
                Some(&chain) => chain,
                None => place.chain(&self.pool).map_err(outside)?,
            };
            self.canary.check();
            if !place.holds(&self.pool, chain).map_err(outside)? {
                self.foreign(Foreign {
                    step: self.steps,
                    slice: index,
                    position,
                    block: place.block,
                })?;
            }
        }
        Ok(expected.and_then(|chains| chains.last().copied()))
    }

    fn foreign(&self, foreign: Foreign) -> Result<(), BackendError> {
        self.canary.report(foreign);
        match self.config.on_foreign {
            OnForeign::Continue => Ok(()),
            OnForeign::Fail => {
                let Foreign { position, block, .. } = foreign;
                let why = format!("INV-01: foreign KV at position {position} in block {block}");
                Err(BackendError(why))
            }
        }
    }

    fn positions_to_check(&self, slice: &Slice<'_>) -> Vec<u32> {
        match self.config.verify {
            Verify::Some(others) if others < slice.start => {
                let seed = mix(self.steps) ^ u64::from(slice.start);
                let other = |i: u32| {
                    let pick = mix(seed ^ mix(u64::from(i))) % u64::from(slice.start);
                    u32::try_from(pick).unwrap_or(0)
                };
                std::iter::once(slice.start - 1)
                    .chain((0..others).map(other))
                    .collect()
            }
            Verify::Latest => slice.start.checked_sub(1).into_iter().collect(),
            _ => (0..slice.start).collect(),
        }
    }

    /// Writes the KV of a slice's tokens. Gives the chain after the last of them, as it is in the KV.
    fn write(&self, slice: &Slice<'_>) -> Result<Chain, BackendError> {
        let mut chain = match slice.start.checked_sub(1) {
            None => root(self.config.salt),
            Some(last) => self.place(slice, last)?.chain(&self.pool).map_err(outside)?,
        };
        for (position, &token) in (slice.start..).zip(slice.tokens) {
            chain = extend(chain, token);
            self.place(slice, position)?
                .write(&self.pool, chain)
                .map_err(outside)?;
        }
        Ok(chain)
    }

    fn place(&self, slice: &Slice<'_>, position: u32) -> Result<Place, BackendError> {
        Place::of(position, slice.blocks, &self.config.shape)
            .ok_or_else(|| BackendError(format!("no block for position {position} in {:?}", slice.blocks)))
    }

    /// The chain after each token.
    fn chains(&self, tokens: &[Token]) -> Vec<Chain> {
        tokens
            .iter()
            .scan(root(self.config.salt), |chain, &token| {
                *chain = extend(*chain, token);
                Some(*chain)
            })
            .collect()
    }

    /// The next token of an answer, after a history with this chain.
    fn sample(&self, request: &SampleRequest<'_>, chain: Chain) -> Token {
        if planted!(SamplingFromStream) {
            let mut sampling = request.sampling.clone();
            sampling.seed ^= self.steps;
            let sampling = &sampling;
            return next_token(&self.config, &SampleRequest { sampling, ..*request }, chain);
        }
        next_token(&self.config, request, chain)
    }

    /// Made-up log-probabilities of the right shape: the sampled token is the most likely.
    fn logprobs(&self, request: &SampleRequest<'_>, token: Token) -> Option<TokenLogprobs> {
        let alternatives = u32::from(request.sampling.logprobs?).min(self.config.vocabulary);
        let top = (0..alternatives).map(|i| {
            let likelihood = -0.5 * (i + 1) as f32;
            ((token + i) % self.config.vocabulary, likelihood)
        });
        Some(TokenLogprobs {
            sampled: -0.5,
            top: top.collect(),
        })
    }
}

impl Backend for MockBackend {
    fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    fn pool(&self) -> Arc<KvPool> {
        Arc::clone(&self.pool)
    }

    fn interrupt(&self) -> Option<Interrupt> {
        Some(self.interrupt.clone())
    }

    fn step(&mut self, batch: &[Slice<'_>], out: &mut Vec<Sampled>) -> Result<(), BackendError> {
        self.steps += 1;
        (self.sleep)(self.config.latency.of(batch));
        assert!(
            self.config.faults.panic_at_step != Some(self.steps),
            "a mock's scripted panic"
        );
        if self.config.faults.fail_at_step == Some(self.steps) {
            return Err(BackendError("a mock's scripted failure".into()));
        }
        let mut told = Vec::with_capacity(batch.len());
        for (index, slice) in batch.iter().enumerate() {
            told.push(self.verify(index, slice)?);
        }
        if self.interrupt.is_raised() {
            return Ok(());
        }
        for ((index, slice), told) in batch.iter().enumerate().zip(told) {
            let written = self.write(slice)?;
            if let Some(request) = &slice.sample {
                let token = self.sample(request, told.unwrap_or(written));
                let logprobs = self.logprobs(request, token);
                let token = match self.config.faults.no_token_for {
                    Some((first, from)) if request.history[0] == first && request.history.len() >= from => {
                        Err(NoToken("a mock's scripted sequence".into()))
                    }
                    _ => Ok(token),
                };
                out.push(Sampled {
                    slice: index,
                    token,
                    logprobs,
                });
            }
        }
        Ok(())
    }
}

#[allow(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn outside(error: engine::OutOfRange) -> BackendError {
    BackendError(error.to_string())
}
