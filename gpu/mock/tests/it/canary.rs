//! Planted faults, each of which the mock must find (INV-01), and sound use, in which it must find nothing.

use engine::{Command, DownReason, EngineConfig, EngineEvent, KvMemory, SequenceKey};
use mock::{MockConfig, OnForeign, Verify};

use crate::drive::{Drive, prompt, small, spec};

fn mock() -> MockConfig {
    small(64, 4)
}

/// A sequence of 10 prompt tokens that has generated a few.
fn decoding(mock: MockConfig) -> Drive {
    let mut drive = Drive::new(mock, EngineConfig::default());
    drive.start(spec(1, &prompt(1, 10), 40));
    for _ in 0..3 {
        assert!(drive.step());
    }
    drive
}

/// The engine went down, and said where the foreign byte is.
#[track_caller]
fn check_found(drive: &Drive, position: u32, block: u32) {
    let first = drive.canary.foreign()[0];
    assert_eq!((first.position, first.block), (position, block));
    let why = DownReason::Backend(format!(
        "backend: INV-01: foreign KV at position {position} in block {block}"
    ));
    assert_eq!(drive.events.last(), Some(&EngineEvent::Down { why }));
}

#[test]
fn one_foreign_byte_anywhere_in_the_attended_positions() {
    let shape = mock().shape;
    for position in 0..12_u32 {
        for row in 0..shape.layers * 2 * shape.kv_heads {
            let mut drive = decoding(mock());
            let block = drive.blocks[&SequenceKey(1)][position as usize / 4];
            let number = row * shape.head_len() + position as usize % 4 * shape.head_dim;
            let offset = 4 * number + (position as usize + row) % (4 * shape.head_dim);
            let mut byte = [0];
            drive.pool.read_into(block, offset, &mut byte).unwrap();
            drive.pool.write_from(block, offset, &[byte[0] ^ 0x10]).unwrap();
            drive.run();
            check_found(&drive, position, block);
        }
    }
}

#[test]
fn one_row_of_the_same_tokens_after_another_beginning() {
    let shape = mock().shape;
    for row in 0..shape.layers * 2 * shape.kv_heads {
        let mut drive = decoding(mock());
        let mut other = prompt(1, 10);
        other[0] += 1;
        drive.start(spec(2, &other, 40));
        assert!(drive.step());
        let (block, donor) = (drive.blocks[&SequenceKey(1)][1], drive.blocks[&SequenceKey(2)][1]);
        let mut bytes = vec![0; 4 * shape.head_dim];
        let offset = 4 * row * shape.head_len();
        drive.pool.read_into(donor, offset, &mut bytes).unwrap();
        drive.pool.write_from(block, offset, &bytes).unwrap();
        drive.run();
        check_found(&drive, 4, block);
    }
}

#[test]
fn a_byte_beyond_what_is_attended_is_nobodys() {
    let mut drive = decoding(mock());
    let unused = drive.blocks[&SequenceKey(1)].iter().max().unwrap() + 20;
    drive.pool.write_from(unused, 0, &[1; 16]).unwrap();
    drive.run();
    assert_eq!(drive.canary.found(), 0);
    assert_eq!(drive.answer(1).len(), 40);
}

#[test]
fn a_block_given_to_another_while_in_use() {
    let mut drive = decoding(mock());
    let block = drive.blocks[&SequenceKey(1)][1];
    let mut thief = spec(2, &prompt(2, 3), 5);
    thief.blocks = vec![block];
    drive.start(thief);
    drive.run();
    check_found(&drive, 4, block);
}

#[test]
fn a_block_of_an_earlier_life() {
    // The blocks of a stopped sequence hold another's KV; a sequence that claims they are its own is found out.
    let mut drive = decoding(mock());
    drive.apply(Command::Stop { key: SequenceKey(1) });
    assert_eq!(
        drive.events.last(),
        Some(&EngineEvent::Stopped { key: SequenceKey(1) })
    );
    let mut stranger = spec(2, &prompt(2, 10), 5);
    stranger.blocks = drive.blocks[&SequenceKey(1)].clone();
    stranger.computed = 8;
    let block = stranger.blocks[0];
    drive.start(stranger);
    drive.run();
    check_found(&drive, 0, block);
}

#[test]
fn a_reused_block_is_sound_once_it_is_computed_anew() {
    let mut drive = decoding(mock());
    drive.apply(Command::Stop { key: SequenceKey(1) });
    let mut next = spec(2, &prompt(2, 10), 5);
    next.blocks = drive.blocks[&SequenceKey(1)].clone();
    drive.start(next);
    drive.run();
    assert_eq!(drive.canary.found(), 0);
    assert_eq!(drive.answer(2).len(), 5);
}

#[test]
fn a_shared_prefix_is_sound() {
    let mut drive = decoding(mock());
    let mut sibling = spec(2, &prompt(1, 10), 5);
    let own = drive.fresh(1);
    sibling.blocks = [&drive.blocks[&SequenceKey(1)][..2], &own[..]].concat();
    sibling.computed = 8;
    drive.start(sibling);
    drive.run();
    assert_eq!(drive.canary.found(), 0);
    assert_eq!(
        drive.answer(2),
        drive.answer(1)[..5],
        "the same prompt, the same answer"
    );
}

#[test]
fn a_foreign_block_in_the_middle_of_a_prompt_is_found_by_its_end() {
    let mut drive = Drive::new(
        mock(),
        EngineConfig {
            chunk_tokens: 4,
            ..EngineConfig::default()
        },
    );
    drive.start(spec(1, &prompt(1, 30), 5));
    for _ in 0..3 {
        drive.step();
    }
    // Another sequence's block, whole: each of its positions is consistent in itself.
    let (block, other) = (drive.blocks[&SequenceKey(1)][1], drive.fresh(1)[0]);
    let mut donor = spec(2, &prompt(2, 4), 1);
    donor.blocks = vec![other];
    drive.start(donor);
    drive.step();
    let mut bytes = vec![0; drive.pool.shape().block_bytes()];
    drive.pool.read_into(other, 0, &mut bytes).unwrap();
    drive.pool.write_from(block, 0, &bytes).unwrap();
    drive.run();
    check_found(&drive, 4, block);
    assert!(
        drive.answer(1).is_empty(),
        "no token of a poisoned prompt is said"
    );
}

#[test]
fn may_go_on_and_count() {
    let mut drive = decoding(MockConfig {
        on_foreign: OnForeign::Continue,
        ..mock()
    });
    let block = drive.blocks[&SequenceKey(1)][0];
    drive.pool.write_from(block, 0, &[0xee; 4]).unwrap();
    drive.run();
    assert_eq!(drive.answer(1).len(), 40);
    assert_eq!(drive.canary.found(), 37, "once in every later step");
}

#[test]
fn a_sample_of_positions_finds_a_whole_foreign_block_soon() {
    let mut drive = decoding(MockConfig {
        verify: Verify::Some(4),
        ..mock()
    });
    let block = drive.blocks[&SequenceKey(1)][0];
    drive.pool.write_from(block, 0, &[0xee; 4 * 3 * 4]).unwrap();
    drive.run();
    let first = drive.canary.foreign()[0];
    assert_eq!(first.block, block);
    assert!(first.step < 20, "{first:?}");
}

/// With the latest position alone looked at, a byte of it is found; and a foreign block that is whole shows in the answer.
#[test]
fn foreign_kv_that_is_not_looked_for_is_no_secret() {
    let cheap = MockConfig {
        verify: Verify::Latest,
        ..mock()
    };
    let mut drive = decoding(cheap.clone());
    // Three steps: the prompt, and two tokens at 10 and 11.
    let block = drive.blocks[&SequenceKey(1)][2];
    let offset = 4 * 3 * drive.pool.shape().head_dim + 9;
    drive.pool.write_from(block, offset, &[0xee]).unwrap();
    drive.run();
    check_found(&drive, 11, block);

    let mut sound = decoding(cheap.clone());
    sound.run();
    let mut drive = decoding(cheap);
    let other = drive.fresh(1)[0];
    let mut donor = spec(2, &prompt(2, 4), 1);
    donor.blocks = vec![other];
    drive.start(donor);
    drive.step();
    // The latest position is 12 now.
    let block = drive.blocks[&SequenceKey(1)][3];
    let mut bytes = vec![0; drive.pool.shape().block_bytes()];
    drive.pool.read_into(other, 0, &mut bytes).unwrap();
    drive.pool.write_from(block, 0, &bytes).unwrap();
    drive.run();
    let (given, right) = (drive.answer(1), sound.answer(1));
    assert_eq!(given.len(), right.len());
    assert_eq!(drive.canary.found(), 0);
    assert_ne!(given, right);
}
