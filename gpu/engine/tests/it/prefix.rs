//! Names of prefix blocks.

use engine::prefix::block_hashes;
use proptest::prelude::*;

#[test]
fn is_what_it_was() {
    // Workers of different builds share caches by name, so a change must be on purpose. The numbers are from another implementation
    // of SHA-256, over the bytes that the module describes.
    let expected = [
        333313861183855095359102517037316957842,
        239968300679717108988439205953369576843,
    ];
    assert_eq!(block_hashes(&[1, 2, 3, 4, 5], 2, 0), expected);
}

#[test]
fn salts_and_block_sizes_share_nothing() {
    let plain = block_hashes(&[9; 8], 4, 0);
    for other in [block_hashes(&[9; 8], 4, 1), block_hashes(&[9; 8], 2, 0)] {
        assert!(other.iter().all(|hash| !plain.contains(hash)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_name_covers_everything_before_it(
        mut tokens in prop::collection::vec(0..100_u32, 1..60),
        block_tokens in 1..9_usize,
        change in any::<prop::sample::Index>(),
    ) {
        let before = block_hashes(&tokens, block_tokens, 5);
        prop_assert_eq!(before.len(), tokens.len() / block_tokens);
        prop_assert_eq!(&block_hashes(&tokens[..tokens.len() - 1], block_tokens, 5)[..],
            &before[..(tokens.len() - 1) / block_tokens]);
        let at = change.index(tokens.len());
        tokens[at] += 1;
        let after = block_hashes(&tokens, block_tokens, 5);
        let (unchanged, changed) = (at / block_tokens, before.len());
        for block in 0..changed {
            prop_assert_eq!(before[block] == after[block], block < unchanged, "block {}", block);
        }
    }
}
