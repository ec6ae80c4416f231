//! What two workers must agree on.

use engine::{Half, PoolShape, layout_hash};

use crate::world::SHAPE;

#[test]
fn the_hash_is_of_everything_but_the_number_of_blocks() {
    let hash = |shape: PoolShape, model: &str, numerics: &str| layout_hash(&shape, model, numerics);
    let base = hash(SHAPE, "m", "n");
    assert_eq!(base, hash(PoolShape { blocks: 9, ..SHAPE }, "m", "n"));
    let others = [
        hash(
            PoolShape {
                block_tokens: 5,
                ..SHAPE
            },
            "m",
            "n",
        ),
        hash(PoolShape { layers: 3, ..SHAPE }, "m", "n"),
        hash(
            PoolShape {
                kv_heads: 5,
                head_dim: 3,
                ..SHAPE
            },
            "m",
            "n",
        ),
        hash(SHAPE, "m2", "n"),
        hash(SHAPE, "m", "n2"),
        hash(SHAPE, "mn", ""),
    ];
    assert!(!others.contains(&base), "{others:?}");
}

#[test]
fn heads_tile_a_block() {
    let halves = [Half::Keys, Half::Values];
    let mut next = 0;
    for layer in 0..SHAPE.layers {
        for half in halves {
            for head in 0..SHAPE.kv_heads {
                assert_eq!(
                    SHAPE.head_offset(layer, half, head),
                    next,
                    "{layer} {half:?} {head}"
                );
                next += SHAPE.head_len();
            }
        }
    }
    assert_eq!(next, SHAPE.block_len());
}
