//! Names for KV blocks by what was computed into them: the chained hash of every token up to the block's end.
//!
//! A cached block is reused when its hash is met again, so a collision would hand one client's context to another. The hash is
//! therefore cryptographic (SHA-256, cut to 128 bits): nobody can construct two prompts that collide. With a salt per tenant, one
//! tenant cannot even ask whether another has sent a prompt.

use sha2::{Digest, Sha256};

use crate::backend::Token;

/// Name of a full block: the hash of the salt, the block size and all tokens of the sequence up to the block's end.
pub type BlockHash = u128;

/// Hashes of the full blocks of `tokens`, in order. A last block that is not full has none.
///
/// # Panics
/// When `block_tokens` is zero.
#[must_use]
pub fn block_hashes(tokens: &[Token], block_tokens: usize, salt: u64) -> Vec<BlockHash> {
    let mut parent = root(block_tokens, salt);
    tokens
        .chunks_exact(block_tokens)
        .map(|block| {
            parent = child(parent, block);
            parent
        })
        .collect()
}

fn root(block_tokens: usize, salt: u64) -> BlockHash {
    let mut hash = Sha256::new();
    hash.update(b"innkeeper kv block 1");
    hash.update((block_tokens as u64).to_le_bytes());
    hash.update(salt.to_le_bytes());
    first_half(hash)
}

fn child(parent: BlockHash, tokens: &[Token]) -> BlockHash {
    let mut hash = Sha256::new();
    hash.update(parent.to_le_bytes());
    for token in tokens {
        hash.update(token.to_le_bytes());
    }
    first_half(hash)
}

fn first_half(hash: Sha256) -> BlockHash {
    let mut half = [0_u8; 16];
    half.copy_from_slice(&hash.finalize()[..16]);
    BlockHash::from_le_bytes(half)
}
