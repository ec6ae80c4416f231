//! The pool, as a transfer and as a kernel see it.

use engine::{Half, KvMemory, KvPool, OutOfRange, PoolShape};

use crate::world::SHAPE;

#[test]
fn an_empty_or_absurd_shape_is_an_error() {
    for shape in [
        PoolShape { blocks: 0, ..SHAPE },
        PoolShape { head_dim: 0, ..SHAPE },
        PoolShape {
            layers: usize::MAX,
            ..SHAPE
        },
        PoolShape {
            blocks: u32::MAX,
            block_tokens: 1 << 30,
            ..SHAPE
        },
    ] {
        assert!(KvPool::new(shape).is_err(), "{shape:?}");
    }
}

#[test]
fn addresses_are_where_the_layout_says() {
    let pool = KvPool::new(SHAPE).unwrap();
    for block in 0..SHAPE.blocks {
        for (layer, half, head) in [(0, Half::Keys, 0), (1, Half::Values, 2), (0, Half::Values, 1)] {
            let numbers = block as usize * SHAPE.block_len() + SHAPE.head_offset(layer, half, head);
            let address = pool.ptr(block, layer, half, head) as usize;
            assert_eq!(address, pool.base() as usize + 4 * numbers);
        }
    }
}

#[test]
#[should_panic(expected = "block 3 of 3")]
fn an_address_outside_is_a_panic() {
    let pool = KvPool::new(SHAPE).unwrap();
    let _ = pool.ptr(3, 0, Half::Keys, 0);
}

/// Writes `len` bytes at `offset` of `block` and reads them back; nothing but them may have changed.
#[track_caller]
fn check_round_trip(block: u32, offset: usize, len: usize) {
    let pool = KvPool::new(SHAPE).unwrap();
    let bytes: Vec<u8> = (1..=u8::try_from(len).unwrap()).collect();
    pool.write_from(block, offset, &bytes).unwrap();
    for other in 0..SHAPE.blocks {
        let mut found = vec![0; pool.block_bytes()];
        pool.read_into(other, 0, &mut found).unwrap();
        let mut expected = vec![0; pool.block_bytes()];
        if other == block {
            expected[offset..offset + len].copy_from_slice(&bytes);
        }
        assert_eq!(found, expected, "block {other}");
    }
}

#[test]
fn bytes_land_where_they_are_put() {
    let block_bytes = SHAPE.block_bytes();
    for block in 0..3 {
        check_round_trip(block, 0, 9);
        check_round_trip(block, 5, 0);
        check_round_trip(block, block_bytes - 7, 7);
    }
}

#[test]
fn neighbours_are_touched_by_threads_at_the_same_time() {
    // A transfer writes one block while the engine is in the next: no byte of a copy lies outside of its block.
    let pool = KvPool::new(SHAPE).unwrap();
    let work = |block: u32| {
        for round in 0..200_u8 {
            let fill = vec![round ^ u8::try_from(block).unwrap(); pool.block_bytes()];
            let mut found = vec![0; pool.block_bytes()];
            pool.write_from(block, 0, &fill).unwrap();
            pool.read_into(block, 0, &mut found).unwrap();
            assert_eq!(found, fill, "block {block}, round {round}");
        }
    };
    std::thread::scope(|scope| {
        for block in 0..SHAPE.blocks {
            scope.spawn(move || work(block));
        }
    });
}

/// Neither read nor written, and the error says what was asked.
#[track_caller]
fn check_outside(block: u32, offset: usize, len: usize) {
    let pool = KvPool::new(SHAPE).unwrap();
    let (blocks, block_bytes) = (pool.blocks(), pool.block_bytes());
    let error = OutOfRange {
        block,
        offset,
        len,
        blocks,
        block_bytes,
    };
    let mut bytes = vec![1; len];
    assert_eq!(pool.write_from(block, offset, &bytes), Err(error));
    assert_eq!(pool.read_into(block, offset, &mut bytes), Err(error));
    assert_eq!(bytes, vec![1; len], "nothing was copied");
}

#[test]
fn nothing_outside_a_block_is_touched() {
    let block_bytes = SHAPE.block_bytes();
    check_outside(3, 0, 1);
    check_outside(u32::MAX, 0, 1);
    check_outside(0, block_bytes, 1);
    check_outside(0, block_bytes - 3, 4);
    check_outside(1, usize::MAX, 2);
}
