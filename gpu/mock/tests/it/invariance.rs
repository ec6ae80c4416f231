//! A sequence's tokens depend on the sequence alone: not on chunks, budget, company or block size.

use crate::drive::{Drive, alone, prompt, small, spec};
use engine::{EngineConfig, SequenceSpec, Token};
use mock::{Answer, END_TOKEN, MockConfig, Verify, undisturbed};

const SEQUENCES: u32 = 7;

fn sequence(key: u32) -> SequenceSpec {
    spec(u64::from(key), &prompt(key, 5 + 11 * key as usize), 20)
}

/// Each sequence's answer when it is alone.
fn expected() -> Vec<Vec<Token>> {
    (0..SEQUENCES)
        .map(|key| alone(&small(2000, 16), sequence(key)))
        .collect()
}

/// All sequences at once under `config` answer as each does alone, and no foreign byte is met.
#[track_caller]
fn check(block_tokens: usize, config: EngineConfig, expected: &[Vec<Token>]) {
    let mut drive = Drive::new(small(2000, block_tokens), config);
    for key in 0..SEQUENCES {
        drive.start(sequence(key));
        drive.step();
    }
    drive.run();
    assert_eq!(drive.canary.found(), 0, "{:?}", drive.canary.foreign());
    assert!(drive.canary.checked() > 1000);
    for (key, expected) in (0..).zip(expected) {
        assert_eq!(expected.len(), 20);
        assert_eq!(
            &drive.answer(key),
            expected,
            "sequence {key}, blocks of {block_tokens}, {config:?}"
        );
    }
}

#[test]
fn every_chunk_size() {
    let expected = expected();
    for chunk_tokens in 1..=72 {
        check(
            16,
            EngineConfig {
                chunk_tokens,
                ..EngineConfig::default()
            },
            &expected,
        );
    }
}

#[test]
fn every_budget_and_block_size() {
    let expected = expected();
    for step_tokens in [1, 2, 5, 9, 30] {
        for block_tokens in [1, 2, 3, 16, 64] {
            check(
                block_tokens,
                EngineConfig {
                    step_tokens,
                    ..EngineConfig::default()
                },
                &expected,
            );
        }
    }
}

/// What is told of an answer without running anything is what an engine gives, up to the end token.
#[test]
fn an_undisturbed_answer_can_be_told() {
    let check = |answer, temperature, ignore_eos, max_new, expected_len| {
        let mock = MockConfig {
            answer,
            ..small(2000, 16)
        };
        let mut sequence = spec(1, &prompt(3, 21), max_new);
        sequence.ignore_eos = ignore_eos;
        sequence.sampling.temperature = temperature;
        sequence.sampling.seed = 7;
        let told = undisturbed(&mock, &sequence.tokens, &sequence.sampling, max_new, ignore_eos);
        let mut given = alone(&mock, sequence);
        given.retain(|&token| token != END_TOKEN);
        assert_eq!(told, given);
        assert_eq!(told.len(), expected_len);
    };
    for temperature in [0.0, 1.0] {
        check(Answer::Never, temperature, false, 20, 20);
        check(Answer::After(9), temperature, false, 20, 9);
        check(Answer::After(9), temperature, false, 4, 4);
        check(Answer::After(9), temperature, true, 20, 20);
    }
}

/// A mock that looks at nothing but the latest position gives the same answers, as long as its KV is its own.
#[test]
fn an_answer_that_follows_from_the_kv_is_that_which_follows_from_the_tokens() {
    let expected = expected();
    for chunk_tokens in [1, 7, 72] {
        let cheap = MockConfig {
            verify: Verify::Latest,
            ..small(2000, 16)
        };
        let config = EngineConfig {
            chunk_tokens,
            ..EngineConfig::default()
        };
        let mut drive = Drive::new(cheap, config);
        for key in 0..SEQUENCES {
            drive.start(sequence(key));
            drive.step();
        }
        drive.run();
        assert_eq!(drive.canary.found(), 0, "{:?}", drive.canary.foreign());
        for (key, expected) in (0..).zip(&expected) {
            assert_eq!(
                &drive.answer(key),
                expected,
                "sequence {key}, chunks of {chunk_tokens}"
            );
        }
    }
}
