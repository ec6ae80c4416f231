//! Prefill on one worker, decode on another: the same tokens as on one, whether the KV was moved or computed again.

use crate::drive::{Drive, alone, prompt, small, spec};
use engine::{BlockIndex, EngineConfig, Goal, KvMemory, KvPool, SequenceKey, SequenceSpec};

/// Moves blocks as a transfer would: by bytes.
pub(crate) fn copy_blocks(from: &KvPool, blocks: &[BlockIndex], to: &KvPool, into: &[BlockIndex]) {
    let mut bytes = vec![0; from.shape().block_bytes()];
    assert_eq!(blocks.len(), into.len());
    for (&source, &destination) in blocks.iter().zip(into) {
        from.read_into(source, 0, &mut bytes).unwrap();
        to.write_from(destination, 0, &bytes).unwrap();
    }
}

/// Runs the prompt to its first token on a worker of its own.
fn prefill(whole: &SequenceSpec) -> (Drive, SequenceSpec) {
    let mut worker = Drive::new(
        small(60, 4),
        EngineConfig {
            chunk_tokens: 7,
            ..EngineConfig::default()
        },
    );
    worker.start(SequenceSpec {
        goal: Goal::FirstToken,
        ..whole.clone()
    });
    worker.run();
    let key = whole.key.0;
    let first = worker.answer(key);
    assert_eq!(first.len(), 1);
    let mut rest = whole.clone();
    rest.computed = u32::try_from(rest.tokens.len()).unwrap();
    rest.tokens.extend(first);
    rest.max_new -= 1;
    (worker, rest)
}

/// Hands a sequence with this prompt over, and checks the whole answer.
#[track_caller]
fn check(prompt_tokens: usize) {
    let whole = spec(5, &prompt(3, prompt_tokens), 30);
    let expected = alone(&small(60, 4), whole.clone());
    let (worker, mut rest) = prefill(&whole);
    let first = *rest.tokens.last().unwrap();

    let mut decode = Drive::new(small(90, 4), EngineConfig::default());
    decode.start(spec(1, &prompt(8, 33), 50));
    decode.step();
    let source = &worker.blocks[&SequenceKey(5)];
    rest.blocks = decode.fresh(source.len());
    copy_blocks(&worker.pool, source, &decode.pool, &rest.blocks);
    decode.start(rest);
    decode.run();

    let answer: Vec<_> = std::iter::once(first).chain(decode.answer(5)).collect();
    assert_eq!(answer, expected, "a prompt of {prompt_tokens}");
    assert_eq!(decode.canary.found(), 0, "{:?}", decode.canary.foreign());
    let computed = decode.reports().flat_map(|report| &report.computed);
    let first_step = computed
        .filter(|(key, _)| *key == SequenceKey(5))
        .map(|&(_, computed)| computed)
        .next();
    assert_eq!(
        first_step,
        Some(u32::try_from(prompt_tokens).unwrap() + 1),
        "only the first token was computed"
    );
}

#[test]
fn moved_blocks_give_the_same_tokens() {
    for prompt_tokens in [1, 3, 4, 5, 8, 40, 63] {
        check(prompt_tokens);
    }
}

#[test]
fn a_migrated_sequence_goes_on_as_it_would_have() {
    let whole = spec(5, &prompt(3, 21), 30);
    let expected = alone(&small(60, 4), whole.clone());
    for delivered in 1..30 {
        let mut again = whole.clone();
        again.tokens.extend(&expected[..delivered]);
        again.max_new -= u32::try_from(delivered).unwrap();
        assert_eq!(
            alone(&small(60, 4), again),
            expected[delivered..],
            "after {delivered} tokens"
        );
    }
}

#[test]
fn an_offered_prompt_is_whole() {
    // What a prefill worker publishes: every position of the prompt is in its blocks when the first token is said.
    let (worker, _) = prefill(&spec(5, &prompt(3, 22), 30));
    let last = worker.reports().last().unwrap();
    assert_eq!(last.computed, [(SequenceKey(5), 22)]);
    assert!(last.tokens[0].left);
    let used = |pool: &KvPool, block: u32| {
        let mut bytes = vec![0; pool.shape().block_bytes()];
        pool.read_into(block, 0, &mut bytes).unwrap();
        bytes.iter().any(|&byte| byte != 0)
    };
    assert!(
        worker.blocks[&SequenceKey(5)]
            .iter()
            .all(|&block| used(&worker.pool, block))
    );
}
