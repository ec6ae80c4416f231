//! Drives an engine without a thread, handing out blocks of its pool one after the other.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{
    BlockIndex, Command, Engine, EngineConfig, EngineEvent, Goal, KvPool, PoolShape, Sampling, SequenceKey,
    SequenceSpec, StepReport, Token,
};
use mock::{Canary, MockBackend, MockConfig, no_sleep};

/// A sequence to start, with no blocks yet.
pub(crate) fn spec(key: u64, prompt: &[Token], max_new: u32) -> SequenceSpec {
    SequenceSpec {
        key: SequenceKey(key),
        tokens: prompt.to_vec(),
        prompt_tokens: prompt.len(),
        computed: 0,
        blocks: Vec::new(),
        max_new,
        until: u32::MAX,
        sampling: Sampling::default(),
        ignore_eos: false,
        goal: Goal::Answer,
        priority: 0,
    }
}

/// A mock with this many blocks of this many tokens, of more than one layer and head.
pub(crate) fn small(blocks: u32, block_tokens: usize) -> MockConfig {
    let shape = PoolShape {
        blocks,
        block_tokens,
        layers: 2,
        kv_heads: 2,
        head_dim: 3,
    };
    MockConfig {
        shape,
        ..MockConfig::default()
    }
}

/// `len` tokens that depend on `seed`.
pub(crate) fn prompt(seed: u32, len: usize) -> Vec<Token> {
    (0..len)
        .map(|i| (seed * 131 + u32::try_from(i).unwrap() * 17) % 999 + 1)
        .collect()
}

/// An engine on a mock, and what it said.
pub(crate) struct Drive {
    pub(crate) engine: Engine,
    pub(crate) pool: Arc<KvPool>,
    pub(crate) canary: Arc<Canary>,
    pub(crate) events: Vec<EngineEvent>,
    pub(crate) blocks: BTreeMap<SequenceKey, Vec<BlockIndex>>,
    next_block: BlockIndex,
}

impl Drive {
    pub(crate) fn new(mock: MockConfig, config: EngineConfig) -> Self {
        let backend = MockBackend::new(mock, no_sleep()).unwrap();
        let (pool, canary) = (engine::Backend::pool(&backend), backend.canary());
        let engine = Engine::new(Box::new(backend), config);
        Self {
            engine,
            pool,
            canary,
            events: Vec::new(),
            blocks: BTreeMap::new(),
            next_block: 0,
        }
    }

    /// Starts a sequence with blocks for its tokens.
    pub(crate) fn start(&mut self, mut spec: SequenceSpec) {
        if spec.blocks.is_empty() {
            let count = spec.tokens.len().div_ceil(self.pool.shape().block_tokens);
            spec.blocks = self.fresh(count);
        }
        self.blocks.insert(spec.key, spec.blocks.clone());
        self.apply(Command::Start(spec));
    }

    pub(crate) fn apply(&mut self, command: Command) {
        self.events.extend(self.engine.apply(command));
    }

    /// One step; its wants are answered. False when there was nothing to do.
    pub(crate) fn step(&mut self) -> bool {
        let Some(event) = self.engine.step() else {
            return false;
        };
        let wants = match &event {
            EngineEvent::Step(report) => report.wants.clone(),
            _ => Vec::new(),
        };
        self.events.push(event);
        for (key, count) in wants {
            let blocks = self.fresh(count as usize);
            self.blocks.get_mut(&key).unwrap().extend(&blocks);
            self.apply(Command::Grow { key, blocks });
        }
        !self.engine.is_down()
    }

    pub(crate) fn run(&mut self) {
        for _ in 0..100_000 {
            if !self.step() {
                return;
            }
        }
        panic!("it never ends");
    }

    pub(crate) fn reports(&self) -> impl Iterator<Item = &StepReport> {
        self.events.iter().filter_map(|event| match event {
            EngineEvent::Step(report) => Some(report),
            _ => None,
        })
    }

    /// The tokens sampled for a sequence.
    pub(crate) fn answer(&self, key: u64) -> Vec<Token> {
        let tokens = self.reports().flat_map(|report| &report.tokens);
        tokens
            .filter(|event| event.key == SequenceKey(key))
            .map(|event| event.token)
            .collect()
    }

    pub(crate) fn fresh(&mut self, count: usize) -> Vec<BlockIndex> {
        let first = self.next_block;
        self.next_block += u32::try_from(count).unwrap();
        (first..self.next_block).collect()
    }
}

/// The answer of a sequence that is alone in a fresh engine.
pub(crate) fn alone(mock: &MockConfig, spec: SequenceSpec) -> Vec<Token> {
    let mut drive = Drive::new(mock.clone(), EngineConfig::default());
    let key = spec.key.0;
    drive.start(spec);
    drive.run();
    drive.answer(key)
}
