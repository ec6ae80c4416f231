//! Tokens to text, one at a time: a character may be spread over several tokens, so bytes are held back until it is whole.

use std::sync::Arc;

use engine::Token;

use super::Tokenizer;

/// Turns a stream of tokens into a stream of text. All pieces together are what [`Tokenizer::decode`] gives.
#[derive(Clone, Debug)]
pub struct Detokenizer {
    tokenizer: Arc<Tokenizer>,
    /// The beginning of a character that is not whole yet: at most three bytes.
    held: Vec<u8>,
}

impl Detokenizer {
    /// For one stream.
    #[must_use]
    pub fn new(tokenizer: Arc<Tokenizer>) -> Self {
        Self {
            tokenizer,
            held: Vec::new(),
        }
    }

    /// Takes the next token; gives the text that is certain now, often empty. Control tokens have no text. Bytes that can never
    /// become a character are replaced by U+FFFD.
    pub fn push(&mut self, token: Token) -> String {
        if self.tokenizer.is_control(token) {
            return String::new();
        }
        self.held.extend_from_slice(self.tokenizer.token_bytes(token));
        let (text, rest) = certain(&self.held);
        let rest = self.held.len() - rest;
        self.held.drain(..rest);
        text
    }

    /// The stream has ended: what was held back, replaced by U+FFFD.
    pub fn flush(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.held)).into_owned()
    }
}

/// The text at the start of `bytes` that nothing behind it can change, and how many bytes are left over.
fn certain(bytes: &[u8]) -> (String, usize) {
    let mut text = String::with_capacity(bytes.len());
    let mut chunks = bytes.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        text.push_str(chunk.valid());
        let bad = chunk.invalid();
        if bad.is_empty() {
            continue;
        }
        // An unfinished character at the very end may still be completed.
        let unfinished = std::str::from_utf8(bad).is_err_and(|e| e.error_len().is_none());
        if chunks.peek().is_none() && unfinished {
            return (text, bad.len());
        }
        text.push(char::REPLACEMENT_CHARACTER);
    }
    (text, 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Feeds `bytes` cut into pieces; gives the certain texts and the held rest joined.
    fn stream(pieces: &[Vec<u8>]) -> String {
        let (mut held, mut out) = (Vec::new(), String::new());
        for piece in pieces {
            held.extend_from_slice(piece);
            let (text, rest) = certain(&held);
            assert!(rest <= 3);
            out.push_str(&text);
            held.drain(..held.len() - rest);
        }
        out + &String::from_utf8_lossy(&held)
    }

    proptest! {
        #[test]
        fn any_cut_of_any_bytes_gives_the_same_text(pieces: Vec<Vec<u8>>) {
            let whole = pieces.concat();
            prop_assert_eq!(stream(&pieces), String::from_utf8_lossy(&whole));
        }

        #[test]
        fn whole_texts_come_through_whole_however_cut(text: String, size in 1_usize..5) {
            let pieces: Vec<_> = text.as_bytes().chunks(size).map(<[u8]>::to_vec).collect();
            prop_assert_eq!(stream(&pieces), text);
        }
    }

    #[test]
    fn holds_back_only_what_may_still_become_a_character() {
        let check =
            |bytes: &[u8], text: &str, rest| assert_eq!(certain(bytes), (text.to_owned(), rest), "{bytes:?}");
        check(b"a\xc3", "a", 1);
        check(b"a\xc3\xa9", "aé", 0);
        check(b"\xf0\x9f\x99", "", 3);
        check(b"\xff", "\u{fffd}", 0);
        check(b"\xc3a", "\u{fffd}a", 0);
    }
}
