//! How a block proves whose it is.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::TransferKey;

/// Checksum of a block's bytes, seeded by the transfer and the block's position in the sequence: right data of
/// another room, generation or position does not match.
pub fn block_checksum(key: TransferKey, index: u32, bytes: &[u8]) -> u64 {
    if planted!(ChecksumIgnored) {
        return 0;
    }
    let mut name = [0u8; 24];
    name[..8].copy_from_slice(&key.gateway.to_le_bytes());
    name[8..16].copy_from_slice(&key.seq.to_le_bytes());
    name[16..20].copy_from_slice(&key.generation.to_le_bytes());
    name[20..].copy_from_slice(&index.to_le_bytes());
    xxh3_64_with_seed(bytes, xxh3_64_with_seed(&name, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_name_counts() {
        let key = TransferKey {
            gateway: 1,
            seq: 2,
            generation: 3,
        };
        let base = block_checksum(key, 4, b"data");
        assert_eq!(base, block_checksum(key, 4, b"data"));
        let others = [
            block_checksum(TransferKey { gateway: 9, ..key }, 4, b"data"),
            block_checksum(TransferKey { seq: 9, ..key }, 4, b"data"),
            block_checksum(TransferKey { generation: 9, ..key }, 4, b"data"),
            block_checksum(key, 9, b"data"),
            block_checksum(key, 4, b"Data"),
        ];
        assert!(others.iter().all(|&c| c != base));
    }
}
