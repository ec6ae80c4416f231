//! SentencePiece's byte-pair encoding: neighbours are joined while the vocabulary has what they make, the best score first.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use engine::Token;

use super::TokenizerError;

/// How SentencePiece writes a space.
pub(super) const SPACE: char = '▁';

/// A vocabulary of scored pieces.
#[derive(Debug)]
pub(super) struct Spm {
    /// Pieces of text, with their scores.
    pieces: HashMap<Box<str>, (Token, f32)>,
    /// What spells a character that is no piece: a token a byte.
    bytes: Option<Box<[Token; 256]>>,
    /// Stands for such a character where there are none.
    unknown: Option<Token>,
    /// A text begins as if a space were in front of it.
    prefix: bool,
}

impl Spm {
    /// Of the pieces with their scores, the tokens of bytes as far as there are any, and the unknown token.
    ///
    /// # Errors
    /// When a piece is there twice, a score is no number, or some bytes have a token and others have not.
    pub(super) fn new<'a>(
        pieces: impl Iterator<Item = (&'a str, Token, f32)>,
        bytes: &[(u8, Token)],
        unknown: Option<Token>,
        prefix: bool,
    ) -> Result<Self, TokenizerError> {
        let mut known = HashMap::new();
        for (text, token, score) in pieces {
            if !score.is_finite() {
                return Err(TokenizerError::Vocabulary(format!(
                    "the score of `{text}` is {score}"
                )));
            }
            if known.insert(text.into(), (token, score)).is_some() {
                return Err(TokenizerError::Vocabulary(format!(
                    "`{text}` is in the vocabulary twice"
                )));
            }
        }
        Ok(Self {
            pieces: known,
            bytes: all_bytes(bytes)?,
            unknown,
            prefix,
        })
    }

    /// Adds the tokens of a text that is not empty.
    pub(super) fn encode(&self, text: &str, out: &mut Vec<Token>) {
        let mut escaped = String::with_capacity(text.len() * 2);
        if self.prefix {
            escaped.push(SPACE);
        }
        escaped.extend(text.chars().map(|c| if c == ' ' { SPACE } else { c }));
        for symbol in self.joined(&escaped) {
            match self.pieces.get(symbol) {
                Some(&(token, _)) => out.push(token),
                None => self.spell(symbol, out),
            }
        }
    }

    /// A character that is no piece.
    fn spell(&self, symbol: &str, out: &mut Vec<Token>) {
        match &self.bytes {
            Some(bytes) => out.extend(symbol.bytes().map(|byte| bytes[usize::from(byte)])),
            None => out.extend(self.unknown),
        }
    }

    /// `text` cut into what is left when no two neighbours can be joined.
    fn joined<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let places = text.char_indices().enumerate();
        let mut symbols: Vec<Symbol> = places
            .map(|(index, (start, c))| Symbol {
                start,
                end: start + c.len_utf8(),
                before: index.wrapping_sub(1),
                next: index + 1,
            })
            .collect();
        let mut pairs = BinaryHeap::new();
        for left in 1..symbols.len() {
            pairs.extend(self.pair(text, &symbols, left - 1, left));
        }
        while let Some(Pair { left, right, end, .. }) = pairs.pop() {
            // One of the two may have been joined with another meanwhile.
            if symbols[left].is_gone() || symbols[left].next != right || symbols[right].end != end {
                continue;
            }
            let (before, next) = (symbols[left].before, symbols[right].next);
            symbols[left].end = end;
            symbols[left].next = next;
            symbols[right].end = symbols[right].start;
            if next < symbols.len() {
                symbols[next].before = left;
                pairs.extend(self.pair(text, &symbols, left, next));
            }
            if before < symbols.len() {
                pairs.extend(self.pair(text, &symbols, before, left));
            }
        }
        symbols
            .iter()
            .filter(|s| !s.is_gone())
            .map(|s| &text[s.start..s.end])
            .collect()
    }

    /// What two neighbours make, if the vocabulary has it.
    fn pair(&self, text: &str, symbols: &[Symbol], left: usize, right: usize) -> Option<Pair> {
        let end = symbols[right].end;
        let (_, score) = self.pieces.get(&text[symbols[left].start..end])?;
        Some(Pair {
            score: *score,
            left,
            right,
            end,
        })
    }
}

/// Part of a text. Its neighbours are those that are left; beyond the ends their numbers are those of none.
struct Symbol {
    start: usize,
    end: usize,
    before: usize,
    next: usize,
}

impl Symbol {
    /// Joined with the one before it.
    fn is_gone(&self) -> bool {
        self.start == self.end
    }
}

/// Two neighbours that can be joined.
struct Pair {
    score: f32,
    left: usize,
    right: usize,
    /// Where the right one ended when they were found.
    end: usize,
}

/// The best score first, of equal ones the leftmost.
impl Ord for Pair {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then_with(|| other.left.cmp(&self.left))
            .then_with(|| other.end.cmp(&self.end))
    }
}

impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pair {}

/// A token for every byte, or none at all.
fn all_bytes(bytes: &[(u8, Token)]) -> Result<Option<Box<[Token; 256]>>, TokenizerError> {
    let mut tokens = [None; 256];
    for &(byte, token) in bytes {
        tokens[usize::from(byte)] = Some(token);
    }
    let missing = tokens.iter().filter(|token| token.is_none()).count();
    if missing == 256 {
        return Ok(None);
    }
    if missing > 0 {
        let what = format!("{missing} of the 256 bytes have no token, the others have one");
        return Err(TokenizerError::Vocabulary(what));
    }
    Ok(Some(Box::new(tokens.map(Option::unwrap_or_default))))
}

/// The byte that a token spelled `<0x0A>` stands for.
pub(super) fn byte_of(spelling: &str) -> Option<u8> {
    let digits = spelling.strip_prefix("<0x")?.strip_suffix('>')?;
    let plain = digits.len() == 2 && digits.bytes().all(|d| d.is_ascii_hexdigit());
    plain.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

/// The bytes that a piece stands for.
pub(super) fn spelled(piece: &str) -> Box<[u8]> {
    piece.replace(SPACE, " ").into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `pieces` in order, best first; behind them bytes, where asked for.
    fn spm(pieces: &[&str], bytes: bool, prefix: bool) -> Spm {
        let scored = pieces.iter().zip(0_u8..);
        let scored = scored.map(|(text, i)| (*text, Token::from(i), -f32::from(i)));
        let byte_tokens: Vec<_> = (0..=255).map(|b| (b, 1000 + Token::from(b))).collect();
        Spm::new(scored, if bytes { &byte_tokens } else { &[] }, Some(99), prefix).unwrap()
    }

    #[track_caller]
    fn check(spm: &Spm, text: &str, expected: &[Token]) {
        let mut out = Vec::new();
        spm.encode(text, &mut out);
        assert_eq!(out, expected, "{text:?}");
    }

    #[test]
    fn the_best_pair_is_joined_first_and_of_equals_the_leftmost() {
        let plain = spm(&["bc", "ab", "?", "a", "b", "c", "aa", "aaaa"], false, false);
        check(&plain, "abc", &[3, 0]);
        check(&plain, "ab", &[1]);
        check(&plain, "aaa", &[6, 3]);
        check(&plain, "aaaaa", &[7, 3]);
        let whole = spm(&["abc", "ab", "bc", "a", "b", "c"], false, false);
        check(&whole, "abcab", &[0, 1]);
    }

    #[test]
    fn spaces_are_marks_and_what_is_no_piece_is_bytes() {
        check(&spm(&["▁a", "▁", "a"], true, false), "a a", &[2, 0]);
        check(&spm(&["▁a", "▁", "a"], true, true), "a a", &[0, 0]);
        check(&spm(&["a"], true, false), "aé", &[0, 1000 + 0xc3, 1000 + 0xa9]);
        check(&spm(&["a"], false, false), "aéa", &[0, 99, 0]);
    }

    #[test]
    fn vocabularies_that_make_no_sense_are_refused() {
        let check = |pieces: &[(&str, f32)], bytes: &[(u8, Token)], expected: &str| {
            let pieces = pieces.iter().map(|(text, score)| (*text, 0, *score));
            let error = Spm::new(pieces, bytes, None, false).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(&[("a", 0.0), ("a", 1.0)], &[], "`a` is in the vocabulary twice");
        check(&[("a", f32::NAN)], &[], "the score of `a` is NaN");
        check(&[], &[(7, 1)], "255 of the 256 bytes have no token");
    }

    #[test]
    fn bytes_are_named_by_two_digits() {
        for (spelling, byte) in [
            ("<0x0A>", Some(10)),
            ("<0xff>", Some(255)),
            ("<0x+1>", None),
            ("<0x1>", None),
            ("<0x001>", None),
            ("0x0A", None),
        ] {
            assert_eq!(byte_of(spelling), byte, "{spelling}");
        }
    }
}
