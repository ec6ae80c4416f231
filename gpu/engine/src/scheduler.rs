//! The batch scheduler, sans-IO: which tokens of which sequences make up the next step.
//!
//! Call in this order, over and over: `add`, `grow`, `allow`, `stop` as commands come; `next_step`; `slices`, which the backend computes;
//! `complete` with what it sampled, or `abandon`. Between two steps no sequence is being computed, so a stop takes effect at once.
//!
//! * Continuous batching: every decoding sequence gets one token in every step.
//! * Chunked prefill: what is left of the step's budget, and in any case a share of it, goes to sequences that have more to compute, in
//!   order of priority and arrival, a bounded chunk each, and one token at least. So neither long prompts nor many answers hold the
//!   others up, and whoever waits for its turn is never taken for one that is stuck: deadlines measure lack of progress.
//! * A sequence without a free position in its block table waits; it asked for a block before it came to that. One whose next token
//!   may not be sampled yet waits too: it is in no step, and costs the others no time; its place and its blocks it keeps.

mod plan;
mod running;

pub use plan::{Part, StepPlan};

use crate::backend::{BackendError, BlockIndex, ModelSpec, Sampled, Slice};
use crate::config::EngineConfig;
use crate::event::{StepReport, TokenEvent};
use crate::pool::PoolShape;
use crate::sequence::{Refusal, SequenceKey, SequenceSpec};
use running::{Order, Running};

/// The part of a step's budget that prefill has in any case: one in so many.
const PREFILL_SHARE: usize = 4;

/// The scheduler of one engine.
pub struct Scheduler {
    config: EngineConfig,
    model: ModelSpec,
    block_tokens: usize,
    blocks: u32,
    arrivals: u64,
    /// Sorted by order of service.
    running: Vec<Running>,
}

impl Scheduler {
    /// An empty scheduler for this model on this pool.
    #[must_use]
    pub fn new(config: EngineConfig, model: &ModelSpec, shape: &PoolShape) -> Self {
        Self {
            config: config.at_least_one(),
            model: model.clone(),
            block_tokens: shape.block_tokens,
            blocks: shape.blocks,
            arrivals: 0,
            running: Vec::new(),
        }
    }

    /// Takes a sequence in.
    ///
    /// # Errors
    /// When it is malformed, or the engine is full. No sequence of its key is in the engine then: one that was is taken out too.
    pub fn add(&mut self, mut spec: SequenceSpec) -> Result<(), Refusal> {
        if self.stop(spec.key) {
            return Err(Refusal::DuplicateKey);
        }
        self.check(&spec)?;
        let room = self.model.context_tokens as usize - spec.tokens.len();
        spec.max_new = spec.max_new.min(u32::try_from(room).unwrap_or(u32::MAX));
        let sequence = Running::new(spec, self.arrivals);
        self.arrivals += 1;
        let at = self.running.partition_point(|other| other.order < sequence.order);
        self.running.insert(at, sequence);
        Ok(())
    }

    /// Appends blocks to a sequence's table. An unknown key changes nothing.
    ///
    /// # Errors
    /// When a block is not of this pool. The sequence is then taken out.
    pub fn grow(&mut self, key: SequenceKey, blocks: &[BlockIndex]) -> Result<(), Refusal> {
        let Some(at) = self.find(key) else { return Ok(()) };
        if let Err(why) = self.check_blocks(blocks) {
            self.running.remove(at);
            return Err(why);
        }
        self.running[at].grow(blocks);
        Ok(())
    }

    /// Lets a sequence go on so far; less than before, or an unknown key, changes nothing.
    pub fn allow(&mut self, key: SequenceKey, until: u32) {
        if let Some(at) = self.find(key) {
            self.running[at].allow(until);
        }
    }

    /// Takes a sequence out; false if there is none of that key.
    pub fn stop(&mut self, key: SequenceKey) -> bool {
        let found = self.find(key);
        if let Some(at) = found {
            self.running.remove(at);
        }
        found.is_some()
    }

    /// Plans the next step. `None` when no sequence can run.
    #[must_use]
    pub fn next_step(&self) -> Option<StepPlan> {
        let block_tokens = self.block_tokens;
        let mut parts: Vec<Part> = self
            .running
            .iter()
            .filter(|sequence| sequence.is_decoding() && sequence.runnable(block_tokens) > 0)
            .map(|sequence| part(sequence, 1))
            .collect();
        let whole = self.config.step_tokens as usize;
        let share = (whole / PREFILL_SHARE).max(1);
        let budget = whole.saturating_sub(parts.len()).max(share);
        let prefills: Vec<(&Running, usize)> = self
            .running
            .iter()
            .filter(|sequence| !sequence.is_decoding())
            .map(|sequence| (sequence, sequence.runnable(block_tokens)))
            .filter(|(_, runnable)| *runnable > 0)
            .collect();
        let mut spare = budget.saturating_sub(prefills.len());
        for (sequence, runnable) in prefills {
            let tokens = runnable.min(self.config.chunk_tokens as usize).min(1 + spare);
            spare -= tokens - 1;
            parts.push(part(sequence, tokens));
        }
        (!parts.is_empty()).then_some(StepPlan { parts })
    }

    /// What the backend shall compute for a plan, in the order of its parts. Nothing may change between the two calls.
    ///
    /// # Panics
    /// When a sequence of the plan has left since.
    #[must_use]
    pub fn slices(&self, plan: &StepPlan) -> Vec<Slice<'_>> {
        plan.parts
            .iter()
            .map(|part| {
                let at = self.at(part.order);
                let sequence = at.map(|at| &self.running[at]);
                sequence
                    .expect("a plan is used before anything changes")
                    .slice(part.tokens as usize)
            })
            .collect()
    }

    /// Books a step that has run: sequences advance, sampled tokens are appended, those at their end leave.
    /// The report's time is left zero.
    ///
    /// # Errors
    /// When `sampled` is not what the plan asked for: the backend is broken.
    pub fn complete(&mut self, plan: &StepPlan, sampled: Vec<Sampled>) -> Result<StepReport, BackendError> {
        self.check_sampled(plan, &sampled)?;
        let mut sampled = sampled.into_iter();
        let mut report = StepReport {
            batch: u32::try_from(plan.parts.len()).unwrap_or(u32::MAX),
            step_tokens: plan.tokens(),
            ..StepReport::default()
        };
        for part in &plan.parts {
            let token = if part.samples { sampled.next() } else { None };
            if let Some(at) = self.at(part.order) {
                self.advance(at, part, token, &mut report);
            }
        }
        report.wants = self.take_wants();
        Ok(report)
    }

    /// A step was given up, and nothing of it counts. Whoever is still there owns the next one: it is not given up again for others.
    pub fn abandon(&mut self, plan: &StepPlan) {
        for part in &plan.parts {
            if let Some(at) = self.at(part.order) {
                self.running[at].owed = true;
            }
        }
    }

    /// Wants that have not been reported yet. Part of `complete`'s report; to be called when no step can run.
    #[must_use]
    pub fn take_wants(&mut self) -> Vec<(SequenceKey, u32)> {
        let (block_tokens, ahead) = (self.block_tokens, self.config.grow_ahead_tokens as usize);
        self.running
            .iter_mut()
            .map(|sequence| (sequence.key(), sequence.ask(block_tokens, ahead)))
            .filter(|&(_, blocks)| blocks > 0)
            .collect()
    }

    /// Sequences in the engine.
    #[must_use]
    pub fn sequences(&self) -> usize {
        self.running.len()
    }

    fn advance(&mut self, at: usize, part: &Part, sampled: Option<Sampled>, report: &mut StepReport) {
        if let Some(Sampled { token: Err(why), .. }) = sampled {
            // What was computed for it is worth nothing either.
            report.failed.push((part.key, why));
            self.running.remove(at);
            return;
        }
        let sequence = &mut self.running[at];
        sequence.advance(part.tokens as usize);
        report.computed.push((part.key, sequence.computed()));
        let Some(Sampled {
            token: Ok(token),
            logprobs,
            ..
        }) = sampled
        else {
            return;
        };
        let (position, finish, left) = sequence.push(token, &self.model.end_tokens);
        report.tokens.push(TokenEvent {
            key: part.key,
            token,
            position,
            logprobs,
            finish,
            left,
        });
        if left {
            self.running.remove(at);
        }
    }

    fn find(&self, key: SequenceKey) -> Option<usize> {
        self.running.iter().position(|sequence| sequence.key() == key)
    }

    fn at(&self, order: Order) -> Option<usize> {
        self.running
            .binary_search_by_key(&order, |sequence| sequence.order)
            .ok()
    }

    fn check(&self, spec: &SequenceSpec) -> Result<(), Refusal> {
        let (tokens, blocks) = (spec.tokens.len(), spec.blocks.len());
        let (context, vocabulary) = (self.model.context_tokens, self.model.vocabulary);
        let computed = spec.computed as usize;
        let stranger = spec.tokens.iter().copied().find(|&token| token >= vocabulary);
        if self.running.len() >= self.config.max_sequences as usize {
            Err(Refusal::Full {
                max: self.config.max_sequences,
            })
        } else if tokens == 0 {
            Err(Refusal::NoTokens)
        } else if spec.prompt_tokens > tokens {
            Err(Refusal::PromptLongerThanTokens {
                prompt_tokens: spec.prompt_tokens,
                tokens,
            })
        } else if spec.max_new == 0 {
            Err(Refusal::NothingToGenerate)
        } else if tokens >= context as usize {
            Err(Refusal::TooLong { tokens, context })
        } else if let Some(token) = stranger {
            Err(Refusal::UnknownToken { token, vocabulary })
        } else if computed > tokens || computed > blocks * self.block_tokens {
            Err(Refusal::ComputedTooMuch {
                computed: spec.computed,
                tokens,
                blocks,
            })
        } else {
            self.check_blocks(&spec.blocks)
        }
    }

    fn check_blocks(&self, blocks: &[BlockIndex]) -> Result<(), Refusal> {
        match blocks.iter().find(|&&block| block >= self.blocks) {
            Some(&block) => Err(Refusal::UnknownBlock {
                block,
                blocks: self.blocks,
            }),
            None => Ok(()),
        }
    }

    fn check_sampled(&self, plan: &StepPlan, sampled: &[Sampled]) -> Result<(), BackendError> {
        let asked = plan
            .parts
            .iter()
            .enumerate()
            .filter(|(_, part)| part.samples)
            .map(|(slice, _)| slice);
        if !asked.eq(sampled.iter().map(|sampled| sampled.slice)) {
            return Err(BackendError(format!(
                "sampled {sampled:?} for a step of {:?}",
                plan.parts
            )));
        }
        let vocabulary = self.model.vocabulary;
        let mut tokens = sampled.iter().filter_map(|sampled| sampled.token.as_ref().ok());
        match tokens.find(|token| **token >= vocabulary) {
            Some(token) => Err(BackendError(format!(
                "sampled token {token} from a vocabulary of {vocabulary}"
            ))),
            None => Ok(()),
        }
    }
}

fn part(sequence: &Running, tokens: usize) -> Part {
    Part {
        key: sequence.key(),
        // A part is at most a chunk, which is a `u32`.
        tokens: u32::try_from(tokens).unwrap_or(u32::MAX),
        samples: tokens == sequence.pending(),
        owed: sequence.owed,
        order: sequence.order,
    }
}
