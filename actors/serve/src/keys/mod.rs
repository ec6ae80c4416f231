//! Keys of clients: who may come to their door, and how much each may use. Without a file of keys whoever reaches the door is served.
//!
//! [`file`] reads what operators wrote, [`meter`] decides (it has no clock), [`ring`] holds both while the program runs and takes over
//! changes of the file, and [`layer`] stands before the router. Limits are each gateway's own: they share nothing, and N of them
//! grant N times as much.

mod file;
mod layer;
mod meter;
mod mint;
mod ring;
mod visit;

use sha2::Digest as _;

pub(crate) use layer::guarded;
pub(crate) use mint::print;
pub(crate) use ring::Ring;
pub(crate) use visit::{Visit, current};

/// SHA-256 of a key as its client sends it. A key has 256 random bits: nobody finds it from this, or by how long a look-up takes.
#[derive(Copy, Clone, Eq, PartialEq, Hash, Debug)]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    /// Of a key.
    pub(crate) fn of(key: &str) -> Self {
        Self(sha2::Sha256::digest(key.as_bytes()).into())
    }

    /// What blocks of its prompts are called by, where nobody else is to find them: unlike anybody else's, and no part of the digest.
    fn salt(self) -> u64 {
        self.number(b"innkeeper salt")
    }

    /// What its holder is called by at the desk.
    fn tenant(self) -> u64 {
        self.number(b"innkeeper tenant")
    }

    fn number(self, of: &[u8]) -> u64 {
        let salted = sha2::Sha256::new()
            .chain_update(of)
            .chain_update(self.0)
            .finalize();
        let mut first = [0; 8];
        first.copy_from_slice(&salted[..8]);
        // Zero is what all those have who are not kept apart.
        u64::from_le_bytes(first).max(1)
    }

    fn from_hex(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        let nibble = |byte: u8| char::from(byte).to_digit(16);
        let mut bytes = [0; 32];
        if text.len() != 64 {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = u8::try_from((nibble(pair[0])? << 4) | nibble(pair[1])?).ok()?;
        }
        Some(Self(bytes))
    }

    fn to_hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;

    #[test]
    fn a_digest_survives_being_written() {
        let digest = Digest::of("ik-a");
        assert_eq!(Digest::from_hex(&digest.to_hex()), Some(digest));
        assert_eq!(Digest::from_hex(&digest.to_hex().to_uppercase()), Some(digest));
        // `printf abc | sha256sum`
        assert_eq!(
            Digest::of("abc").to_hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        for wrong in ["", "ab", &"g".repeat(64), &"a".repeat(63), &"é".repeat(32)] {
            assert_eq!(Digest::from_hex(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn salts_differ() {
        let (a, b) = (Digest::of("ik-a"), Digest::of("ik-b"));
        assert_eq!(a.salt(), a.salt());
        assert_ne!(a.salt(), b.salt());
        assert_ne!(a.salt(), 0);
    }
}
