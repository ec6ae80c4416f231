//! A sequence's tokens depend on the sequence alone: not on chunks, budget, company or block size.

use engine::{EngineConfig, PoolShape};
use mock::MockConfig;

use crate::drive::{Drive, alone, prompt, spec};

fn mock(block_tokens: usize) -> MockConfig {
    let shape = PoolShape {
        blocks: 2000,
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

/// Seven sequences at once under `config` answer as each does alone, and no foreign byte is met.
#[track_caller]
fn check(block_tokens: usize, config: EngineConfig) {
    let mut drive = Drive::new(mock(block_tokens), config);
    for key in 0..7 {
        drive.start(spec(
            key,
            &prompt(
                u32::try_from(key).unwrap(),
                5 + 11 * usize::try_from(key).unwrap(),
            ),
            20,
        ));
        drive.step();
    }
    drive.run();
    assert_eq!(drive.canary.found(), 0, "{:?}", drive.canary.foreign());
    assert!(drive.canary.checked() > 1000);
    for key in 0..7 {
        let len = 5 + 11 * usize::try_from(key).unwrap();
        let expected = alone(
            &mock(16),
            spec(key, &prompt(u32::try_from(key).unwrap(), len), 20),
        );
        assert_eq!(expected.len(), 20);
        assert_eq!(
            drive.answer(key),
            expected,
            "sequence {key}, blocks of {block_tokens}, {config:?}"
        );
    }
}

#[test]
fn every_chunk_size() {
    for chunk_tokens in 1..=80 {
        check(
            16,
            EngineConfig {
                chunk_tokens,
                ..EngineConfig::default()
            },
        );
    }
}

#[test]
fn every_budget_and_block_size() {
    for step_tokens in [1, 2, 5, 9, 30] {
        for block_tokens in [1, 2, 3, 16, 64] {
            check(
                block_tokens,
                EngineConfig {
                    step_tokens,
                    ..EngineConfig::default()
                },
            );
        }
    }
}
