//! Names of the things a transfer talks about.

use std::fmt;

/// Index of a block in a worker's pool.
pub type BlockIndex = u32;

/// One attempt of one room on the data path. A retry or migration is the same room with the next generation, so a
/// late reply of an earlier attempt can never match.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct TransferKey {
    /// Incarnation of the gateway node that owns the room.
    pub gateway: u64,
    /// Sequence number of the room at that gateway.
    pub seq: u64,
    /// Attempt of the room; only grows.
    pub generation: u32,
}

impl fmt::Display for TransferKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{}.{}", self.gateway, self.seq, self.generation)
    }
}

/// One read, minted by the reader and unique in its process.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct ReadId(pub u64);

impl fmt::Display for ReadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "read {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the texts of errors, for people: the incarnation in hexadecimal, as elsewhere.
    #[test]
    fn names_are_short_and_whole() {
        let key = TransferKey {
            gateway: 0xfeed_beef,
            seq: 12,
            generation: 3,
        };
        assert_eq!(key.to_string(), "feedbeef-12.3");
        assert_eq!(ReadId(7).to_string(), "read 7");
    }
}
