//! A scheduler with everything around it made up: a "model" that is a function of the history, and an owner who gives blocks.

use std::collections::BTreeMap;

use engine::{
    BlockIndex, EngineConfig, Goal, ModelSpec, NoToken, PoolShape, Sampled, Sampling, Scheduler, SequenceKey,
    SequenceSpec, StepPlan, StepReport, Token,
};

/// A pool whose extents all differ.
pub(crate) const SHAPE: PoolShape = PoolShape {
    blocks: 3,
    block_tokens: 4,
    layers: 2,
    kv_heads: 3,
    head_dim: 5,
};

/// The end token of the made-up model.
pub(crate) const END: Token = 7;

/// Positions a block of the made-up pool has.
pub(crate) const BLOCK_TOKENS: usize = 4;

const BLOCKS: u32 = 100_000;

/// What happened to a sequence.
#[derive(Debug, Default)]
pub(crate) struct Life {
    pub(crate) tokens: Vec<Token>,
    pub(crate) computed: usize,
    pub(crate) blocks: usize,
    pub(crate) last_finish: Option<engine::FinishReason>,
    pub(crate) left: bool,
    pub(crate) stopped: bool,
    /// Blocks wanted and not given yet.
    pub(crate) owed: u32,
    /// Position of the first token that it may not sample.
    pub(crate) until: u32,
    /// From this position on it has no token; it has failed there.
    pub(crate) fails_at: Option<usize>,
    pub(crate) failed: bool,
}

/// The scheduler and what has been seen of it.
pub(crate) struct World {
    pub(crate) scheduler: Scheduler,
    pub(crate) config: EngineConfig,
    pub(crate) lives: BTreeMap<SequenceKey, Life>,
    next_block: BlockIndex,
}

/// The made-up model's shape.
pub(crate) fn model() -> ModelSpec {
    ModelSpec {
        name: "made up".into(),
        vocabulary: 50,
        context_tokens: 400,
        end_tokens: vec![END],
        layout_hash: 0,
    }
}

/// A sequence of `prompt` tokens without any blocks, which ends by its length.
pub(crate) fn spec(key: u64, prompt: usize, max_new: u32) -> SequenceSpec {
    SequenceSpec {
        key: SequenceKey(key),
        tokens: (0..prompt)
            .map(|i| Token::try_from((i * 3 + 11) % 50).unwrap())
            .collect(),
        prompt_tokens: prompt,
        computed: 0,
        blocks: Vec::new(),
        max_new,
        until: u32::MAX,
        sampling: Sampling::default(),
        ignore_eos: true,
        goal: Goal::Answer,
        priority: 0,
    }
}

/// The made-up model: the next token.
pub(crate) fn next_token(history: &[Token]) -> Token {
    let hash = history.iter().fold(17_u32, |hash, &token| {
        hash.wrapping_mul(31).wrapping_add(token + 1)
    });
    (hash >> 7) % 50
}

impl World {
    pub(crate) fn new(config: EngineConfig) -> Self {
        let shape = PoolShape {
            blocks: BLOCKS,
            block_tokens: BLOCK_TOKENS,
            layers: 1,
            kv_heads: 1,
            head_dim: 2,
        };
        let scheduler = Scheduler::new(config, &model(), &shape);
        Self {
            scheduler,
            config,
            lives: BTreeMap::new(),
            next_block: 0,
        }
    }

    /// Adds a sequence with blocks for `positions` positions.
    pub(crate) fn add(&mut self, mut spec: SequenceSpec, positions: usize) {
        spec.blocks = self.fresh_blocks(positions.div_ceil(BLOCK_TOKENS));
        let life = Life {
            tokens: spec.tokens.clone(),
            computed: (spec.computed as usize).min(spec.tokens.len() - 1),
            blocks: spec.blocks.len(),
            until: spec.until,
            ..Life::default()
        };
        let key = spec.key;
        self.scheduler.add(spec).unwrap();
        self.lives.insert(key, life);
    }

    pub(crate) fn stop(&mut self, key: SequenceKey) {
        let life = self.lives.get_mut(&key).unwrap();
        assert_eq!(self.scheduler.stop(key), !life.left && !life.stopped, "{key:?}");
        life.stopped = !life.left;
    }

    pub(crate) fn allow(&mut self, key: SequenceKey, until: u32) {
        self.scheduler.allow(key, until);
        let life = self.lives.get_mut(&key).unwrap();
        life.until = life.until.max(until);
    }

    /// Gives a sequence up to `most` of the blocks it asked for.
    pub(crate) fn give(&mut self, key: SequenceKey, most: u32) {
        let count = self.lives[&key].owed.min(most);
        let blocks = self.fresh_blocks(count as usize);
        self.scheduler.grow(key, &blocks).unwrap();
        let life = self.lives.get_mut(&key).unwrap();
        life.owed -= count;
        life.blocks += blocks.len();
    }

    /// Gives everyone everything asked for.
    pub(crate) fn give_all(&mut self) {
        for key in self.lives.keys().copied().collect::<Vec<_>>() {
            self.give(key, u32::MAX);
        }
    }

    /// Plans and runs one step, checks what it did, and books it. `None` when nothing can run; wants are then collected.
    pub(crate) fn step(&mut self) -> Option<(StepPlan, StepReport)> {
        let Some(plan) = self.scheduler.next_step() else {
            let wants = self.scheduler.take_wants();
            self.note_wants(&wants);
            return None;
        };
        let sampled = self.compute(&plan);
        let report = self.scheduler.complete(&plan, sampled).unwrap();
        self.note(&report);
        Some((plan, report))
    }

    /// Steps, allowing everything and giving all blocks asked for, until nothing runs; how many steps.
    pub(crate) fn drain(&mut self) -> usize {
        for key in self.lives.keys().copied().collect::<Vec<_>>() {
            self.allow(key, u32::MAX);
        }
        for steps in 0..10_000 {
            self.give_all();
            if self.step().is_none() && self.lives.values().all(|life| life.owed == 0) {
                return steps;
            }
        }
        panic!("it never ends: {:?}", self.lives);
    }

    /// Runs the plan's slices, checking that each is the next part of its sequence.
    fn compute(&self, plan: &StepPlan) -> Vec<Sampled> {
        let mut sampled = Vec::new();
        let slices = self.scheduler.slices(plan);
        for (index, (slice, part)) in slices.iter().zip(plan.parts()).enumerate() {
            let life = &self.lives[&part.key];
            let end = life.computed + slice.tokens.len();
            assert!(!life.left && !life.stopped, "{part:?} has left");
            assert_eq!(slice.start as usize, life.computed, "{part:?}");
            assert_eq!(slice.tokens, &life.tokens[life.computed..end], "{part:?}");
            assert_eq!(slice.tokens.len(), part.tokens as usize);
            assert_eq!(slice.blocks.len(), life.blocks, "{part:?}");
            assert!(end <= life.blocks * BLOCK_TOKENS, "{part:?} has no block");
            assert_eq!(slice.sample.is_some(), end == life.tokens.len(), "{part:?}");
            assert_eq!(slice.sample.is_some(), part.samples);
            if let Some(request) = &slice.sample {
                assert_eq!(request.history, life.tokens);
                assert!(
                    life.tokens.len() < life.until as usize,
                    "{part:?} may not go so far"
                );
                let token = next_token(request.history);
                sampled.push(Sampled {
                    slice: index,
                    token: self.answer(part.key, token),
                    logprobs: None,
                });
            }
        }
        sampled
    }

    /// What the made-up model says for a sequence.
    fn answer(&self, key: SequenceKey, token: Token) -> Result<Token, NoToken> {
        let life = &self.lives[&key];
        match life.fails_at {
            Some(position) if life.tokens.len() >= position => Err(NoToken("made up".into())),
            _ => Ok(token),
        }
    }

    fn note(&mut self, report: &StepReport) {
        for (key, _) in &report.failed {
            let life = self.lives.get_mut(key).unwrap();
            assert!(life.fails_at.is_some() && !report.computed.iter().any(|(other, _)| other == key));
            (life.left, life.failed) = (true, true);
        }
        for &(key, computed) in &report.computed {
            self.lives.get_mut(&key).unwrap().computed = computed as usize;
        }
        for event in &report.tokens {
            let life = self.lives.get_mut(&event.key).unwrap();
            assert_eq!(event.position as usize, life.tokens.len(), "{event:?}");
            life.tokens.push(event.token);
            life.left = event.left;
            life.last_finish = event.finish;
        }
        self.note_wants(&report.wants);
    }

    fn note_wants(&mut self, wants: &[(SequenceKey, u32)]) {
        for &(key, blocks) in wants {
            let life = self.lives.get_mut(&key).unwrap();
            assert!(
                !life.left && !life.stopped && blocks > 0,
                "{key:?} wants {blocks}"
            );
            life.owed += blocks;
        }
    }

    fn fresh_blocks(&mut self, count: usize) -> Vec<BlockIndex> {
        let first = self.next_block;
        self.next_block += u32::try_from(count).unwrap();
        (first..self.next_block).collect()
    }
}
