//! What the scheduler does not take, and that it says why.

use engine::{BackendError, EngineConfig, Refusal, Sampled, SequenceKey, SequenceSpec};

use crate::world::{World, spec};

#[track_caller]
fn check(change: impl FnOnce(&mut SequenceSpec), expected: Refusal) {
    let mut world = World::new(EngineConfig::default());
    let mut changed = spec(1, 8, 4);
    changed.blocks = vec![0, 1, 2];
    change(&mut changed);
    assert_eq!(world.scheduler.add(changed), Err(expected));
    assert_eq!(world.scheduler.sequences(), 0);
}

#[test]
fn malformed_sequences() {
    check(|spec| spec.tokens.clear(), Refusal::NoTokens);
    check(|spec| spec.max_new = 0, Refusal::NothingToGenerate);
    let longer = Refusal::PromptLongerThanTokens {
        prompt_tokens: 9,
        tokens: 8,
    };
    check(|spec| spec.prompt_tokens = 9, longer);
    for tokens in [400, 401] {
        let context = 400;
        check(
            |spec| spec.tokens = vec![1; tokens],
            Refusal::TooLong { tokens, context },
        );
    }
    check(
        |spec| spec.tokens[3] = 50,
        Refusal::UnknownToken {
            token: 50,
            vocabulary: 50,
        },
    );
    check(
        |spec| spec.blocks[1] = 100_000,
        Refusal::UnknownBlock {
            block: 100_000,
            blocks: 100_000,
        },
    );
    check(
        |spec| spec.computed = 9,
        Refusal::ComputedTooMuch {
            computed: 9,
            tokens: 8,
            blocks: 3,
        },
    );
    let beyond_blocks = |spec: &mut SequenceSpec| {
        spec.computed = 5;
        spec.blocks.truncate(1);
    };
    check(
        beyond_blocks,
        Refusal::ComputedTooMuch {
            computed: 5,
            tokens: 8,
            blocks: 1,
        },
    );
}

#[test]
fn a_refusal_is_proof_that_no_sequence_of_the_key_is_in() {
    // Its owner takes the blocks back; the sequence that had the key before must not go on in them.
    for again in [spec(1, 3, 1), spec(1, 0, 0)] {
        let mut world = World::new(EngineConfig::default());
        world.add(spec(1, 8, 4), 12);
        assert_eq!(world.scheduler.add(again), Err(Refusal::DuplicateKey));
        assert_eq!(world.scheduler.sequences(), 0);
        assert_eq!(world.scheduler.next_step(), None);
    }
}

#[test]
fn a_sequence_too_many() {
    let mut world = World::new(EngineConfig {
        max_sequences: 2,
        ..EngineConfig::default()
    });
    world.add(spec(1, 8, 4), 12);
    world.add(spec(2, 8, 4), 12);
    assert_eq!(world.scheduler.add(spec(3, 3, 1)), Err(Refusal::Full { max: 2 }));
    world.drain();
    assert!(world.lives.values().all(|life| life.left), "{:?}", world.lives);
}

#[test]
fn a_foreign_block_ends_the_sequence_it_was_given_to() {
    let mut world = World::new(EngineConfig::default());
    world.add(spec(1, 8, 4), 12);
    let why = Refusal::UnknownBlock {
        block: 100_000,
        blocks: 100_000,
    };
    assert_eq!(world.scheduler.grow(SequenceKey(1), &[5, 100_000]), Err(why));
    assert_eq!(world.scheduler.sequences(), 0);
    assert_eq!(
        world.scheduler.grow(SequenceKey(1), &[100_000]),
        Ok(()),
        "it has left: nothing to end"
    );
}

#[test]
fn a_backend_that_answers_something_else() {
    let mut world = World::new(EngineConfig::default());
    world.add(spec(1, 8, 4), 12);
    let plan = world.scheduler.next_step().unwrap();
    let sampled = |slice, token| {
        vec![Sampled {
            slice,
            token: Ok(token),
            logprobs: None,
        }]
    };
    for wrong in [
        Vec::new(),
        sampled(1, 3),
        sampled(0, 50),
        [sampled(0, 1), sampled(0, 1)].concat(),
    ] {
        let result = world.scheduler.complete(&plan, wrong.clone());
        assert!(matches!(result, Err(BackendError(_))), "{wrong:?}: {result:?}");
    }
    assert!(world.scheduler.complete(&plan, sampled(0, 49)).is_ok());
}
