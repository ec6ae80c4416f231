//! The pool, as a transfer and as a kernel see it.

use engine::{Half, KvPool, PoolShape};

const SHAPE: PoolShape = PoolShape {
    blocks: 3,
    block_tokens: 4,
    layers: 2,
    kv_heads: 3,
    head_dim: 5,
};

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
