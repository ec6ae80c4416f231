//! An engine with the real model on the CPU, run by hand until its sequences have their answers.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use cpu::{Activations, CpuDevice, CpuOptions, Level};
use engine::{
    Backend, BlockIndex, Command, Engine, EngineConfig, EngineEvent, Goal, KvMemory, KvPool, Sampling,
    SequenceKey, SequenceSpec, StepReport, Token,
};
use model::{FetchOptions, Model, ModelSource, PoolOptions, default_cache_dir, fetch};

use super::tap::{Numbers, Tap};

/// Enough for every test; pages are committed when they are written.
const BLOCKS: u32 = 600;
const BLOCK_TOKENS: usize = 16;
/// The sequence whose logits are kept (and every sequence that runs alone).
const WATCHED: SequenceKey = SequenceKey(0);

/// The default model, fetched if it is not there.
pub(crate) fn model() -> &'static Model {
    static MODEL: OnceLock<Model> = OnceLock::new();
    MODEL.get_or_init(|| {
        let options = FetchOptions::new(default_cache_dir());
        let path = fetch(&ModelSource::Default, &options, &mut |_| {}).unwrap();
        Model::open(path).unwrap()
    })
}

/// A sequence to run.
pub(crate) struct Start {
    pub(crate) key: SequenceKey,
    pub(crate) tokens: Vec<Token>,
    pub(crate) prompt_tokens: usize,
    pub(crate) computed: u32,
    pub(crate) blocks: Vec<BlockIndex>,
    pub(crate) max_new: u32,
    pub(crate) goal: Goal,
}

impl Start {
    /// The answer to a prompt, from its beginning.
    pub(crate) fn new(key: u64, prompt: &[Token], max_new: u32) -> Self {
        Self {
            key: SequenceKey(key),
            tokens: prompt.to_vec(),
            prompt_tokens: prompt.len(),
            computed: 0,
            blocks: Vec::new(),
            max_new,
            goal: Goal::Answer,
        }
    }
}

/// What came out for a sequence.
#[derive(Default)]
pub(crate) struct Answer {
    pub(crate) tokens: Vec<Token>,
    /// Of every position that was sampled, if the sequence was watched.
    pub(crate) logits: Vec<Vec<f32>>,
}

impl Answer {
    pub(crate) fn extend(&mut self, rest: Self) {
        self.tokens.extend(rest.tokens);
        self.logits.extend(rest.logits);
    }

    /// Asserts that another run gave the same, bit for bit.
    #[track_caller]
    pub(crate) fn check_same(&self, other: &Self, what: &str) {
        assert_eq!(self.tokens, other.tokens, "{what}: tokens");
        assert_eq!(self.logits.len(), self.tokens.len(), "{what}: logits were kept");
        assert_eq!(self.logits.len(), other.logits.len(), "{what}: logits were kept");
        for (position, (a, b)) in self.logits.iter().zip(&other.logits).enumerate() {
            assert!(!a.is_empty() && a.len() == b.len(), "{what}: as many logits");
            let differing = a
                .iter()
                .zip(b)
                .filter(|(a, b)| a.to_bits() != b.to_bits())
                .count();
            assert_eq!(
                differing, 0,
                "{what}: logits of generated token {position} differ"
            );
        }
    }
}

pub(crate) struct Rig {
    engine: Engine,
    pool: Arc<KvPool>,
    logits: Numbers,
    vocabulary: usize,
    used_blocks: BlockIndex,
}

impl Rig {
    /// An engine that prefills in chunks of so many tokens, on the given instructions or the best ones.
    pub(crate) fn new(activations: Activations, chunk_tokens: u32, level: Option<Level>) -> Self {
        Self::of(model(), activations, chunk_tokens, level)
    }

    /// The same with another model.
    pub(crate) fn of(
        model: &Model,
        activations: Activations,
        chunk_tokens: u32,
        level: Option<Level>,
    ) -> Self {
        let device = CpuDevice::new(&CpuOptions {
            threads: None,
            level,
            activations,
        })
        .unwrap();
        let logits = Numbers::default();
        let read = Arc::clone(&logits);
        let pool = PoolOptions {
            blocks: BLOCKS,
            block_tokens: BLOCK_TOKENS,
        };
        let backend = model.backend(Tap { device, read }, pool).unwrap();
        let config = EngineConfig {
            chunk_tokens,
            ..EngineConfig::default()
        };
        Self {
            pool: backend.pool(),
            vocabulary: backend.spec().vocabulary as usize,
            engine: Engine::new(Box::new(backend), config),
            logits,
            used_blocks: 0,
        }
    }

    /// Never gives these out.
    pub(crate) fn skip_blocks(&mut self, blocks: BlockIndex) {
        self.used_blocks += blocks;
    }

    /// Fresh blocks for so many tokens, in descending order: neighbours in a sequence are no neighbours in memory.
    pub(crate) fn blocks_for(&mut self, tokens: usize) -> Vec<BlockIndex> {
        let count = u32::try_from(tokens.div_ceil(BLOCK_TOKENS)).unwrap();
        self.used_blocks += count;
        assert!(self.used_blocks <= BLOCKS, "the pool is too small for the test");
        (self.used_blocks - count..self.used_blocks).rev().collect()
    }

    /// Runs one sequence alone, and keeps its logits.
    pub(crate) fn one(&mut self, start: Start) -> Answer {
        let key = start.key;
        self.run_watching(vec![start], key).remove(&key).unwrap()
    }

    /// Runs all together until each has its answer; keeps the logits of sequence 0.
    pub(crate) fn run(&mut self, starts: Vec<Start>) -> BTreeMap<SequenceKey, Answer> {
        self.run_watching(starts, WATCHED)
    }

    fn run_watching(&mut self, starts: Vec<Start>, watched: SequenceKey) -> BTreeMap<SequenceKey, Answer> {
        let mut answers = BTreeMap::new();
        let mut running = starts.len();
        for start in starts {
            answers.insert(start.key, Answer::default());
            let refused = self.engine.apply(Command::Start(spec(start)));
            assert_eq!(refused, None);
        }
        while running > 0 {
            let report = match self.engine.step() {
                Some(EngineEvent::Step(report)) => report,
                other => panic!("{running} sequences wait, and the engine says {other:?}"),
            };
            for &(key, blocks) in &report.wants {
                let blocks = self.blocks_for(blocks as usize * BLOCK_TOKENS);
                assert_eq!(self.engine.apply(Command::Grow { key, blocks }), None);
            }
            running -= report.tokens.iter().filter(|token| token.left).count();
            self.keep(&report, watched, &mut answers);
        }
        answers
    }

    /// The logits of a step have a row for each of its tokens.
    fn keep(&self, report: &StepReport, watched: SequenceKey, answers: &mut BTreeMap<SequenceKey, Answer>) {
        let logits = self.logits.lock().unwrap();
        for (row, token) in report.tokens.iter().enumerate() {
            let answer = answers.get_mut(&token.key).unwrap();
            answer.tokens.push(token.token);
            if token.key == watched {
                answer
                    .logits
                    .push(logits[row * self.vocabulary..][..self.vocabulary].to_vec());
            }
        }
    }
}

fn spec(start: Start) -> SequenceSpec {
    SequenceSpec {
        key: start.key,
        tokens: start.tokens,
        prompt_tokens: start.prompt_tokens,
        computed: start.computed,
        blocks: start.blocks,
        max_new: start.max_new,
        until: u32::MAX,
        sampling: Sampling::default(),
        ignore_eos: false,
        goal: start.goal,
        priority: 0,
    }
}

/// What a transfer does: block `from[i]` of one pool into block `to[i]` of another.
pub(crate) fn copy_blocks(source: &Rig, from: &[BlockIndex], target: &Rig, to: &[BlockIndex]) {
    let mut bytes = vec![0; source.pool.block_bytes()];
    for (from, to) in from.iter().zip(to) {
        source.pool.read_into(*from, 0, &mut bytes).unwrap();
        target.pool.write_from(*to, 0, &bytes).unwrap();
    }
}
