//! The alphabet of byte-level vocabularies (GPT-2's): every byte has a printable character.

use super::TokenizerError;

/// The character of a byte.
fn char_of(byte: u8) -> char {
    let plain = |b: u8| matches!(b, 33..=126 | 161..=172 | 174..=255);
    if plain(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|&b| !plain(b)).count();
    u32::try_from(256 + before)
        .ok()
        .and_then(char::from_u32)
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The way back: characters to bytes.
pub(super) struct Alphabet {
    byte_of: [Option<u8>; 512],
}

impl Alphabet {
    pub(super) fn new() -> Self {
        let mut byte_of = [None; 512];
        for byte in 0..=255 {
            byte_of[char_of(byte) as usize] = Some(byte);
        }
        Self { byte_of }
    }

    /// The bytes a vocabulary entry stands for.
    pub(super) fn decode(&self, spelling: &str) -> Result<Box<[u8]>, TokenizerError> {
        spelling
            .chars()
            .map(|c| self.byte_of.get(c as usize).copied().flatten())
            .collect::<Option<_>>()
            .ok_or_else(|| TokenizerError::Vocabulary(format!("`{spelling}` is not in the byte alphabet")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_own_character_and_comes_back() {
        let alphabet = Alphabet::new();
        for byte in 0..=255 {
            assert_eq!(*alphabet.decode(&char_of(byte).to_string()).unwrap(), [byte]);
        }
        assert_eq!((char_of(b' '), char_of(b'\n'), char_of(b'a')), ('Ġ', 'Ċ', 'a'));
    }

    #[test]
    fn a_foreign_character_is_refused() {
        assert!(Alphabet::new().decode("a b").is_err());
        assert!(Alphabet::new().decode("日").is_err());
    }
}
