//! Finding special tokens in a text: leftmost first, and of those the longest. And keeping them from being found.

use std::borrow::Cow;
use std::collections::BTreeSet;

use aho_corasick::{AhoCorasick, MatchKind};
use engine::Token;

use super::TokenizerError;

/// What breaks a control token in a text that is shielded: a code point that Unicode keeps from ever being a character.
const SHIELD: char = '\u{FDD0}';

/// Part of a text.
#[derive(Debug, PartialEq)]
pub(super) enum Piece<'a> {
    /// Plain text; may be empty.
    Text(&'a str),
    /// A special token.
    Token(Token),
}

/// The special tokens of a vocabulary: control tokens, and what a user has defined.
#[derive(Debug)]
pub(super) struct Specials {
    all: Finder,
    /// What is found where control tokens are text like any other.
    user_defined: Finder,
    /// Finds control tokens alone, one inside another too.
    controls: AhoCorasick,
}

/// Finds tokens by their spelling.
#[derive(Debug)]
struct Finder {
    spellings: AhoCorasick,
    tokens: Vec<Token>,
}

impl Finder {
    fn new<'a>(spelled: impl Iterator<Item = &'a (&'a str, Token)>) -> Result<Self, TokenizerError> {
        let (patterns, tokens): (Vec<_>, _) = spelled.copied().filter(|(s, _)| !s.is_empty()).unzip();
        Ok(Self {
            spellings: automaton(MatchKind::LeftmostLongest, patterns)?,
            tokens,
        })
    }
}

impl Specials {
    /// Of the spellings of both kinds.
    pub(super) fn new(
        controls: &[(&str, Token)],
        user_defined: &[(&str, Token)],
    ) -> Result<Self, TokenizerError> {
        let spellings = controls.iter().map(|(s, _)| *s).filter(|s| !s.is_empty());
        Ok(Self {
            all: Finder::new(controls.iter().chain(user_defined))?,
            user_defined: Finder::new(user_defined.iter())?,
            controls: automaton(MatchKind::Standard, spellings)?,
        })
    }

    /// `text`, with something inside every control token it spells that keeps it from being found; [`unshield`] takes it out again.
    pub(super) fn shield(&self, text: &str) -> String {
        let starts = self
            .controls
            .find_overlapping_iter(text)
            .map(|found| found.start());
        let behind_first = |start: usize| start + text[start..].chars().next().map_or(0, char::len_utf8);
        let breaks: BTreeSet<usize> = starts.map(behind_first).collect();
        let mut out = String::with_capacity(text.len() + breaks.len() * SHIELD.len_utf8());
        let mut at = 0;
        for next in breaks {
            out.push_str(&text[at..next]);
            out.push(SHIELD);
            at = next;
        }
        out + &text[at..]
    }

    /// Cuts `text` at every special token; without `controls`, only at what a user has defined.
    pub(super) fn split<'a>(&'a self, text: &'a str, controls: bool) -> impl Iterator<Item = Piece<'a>> {
        let finder = if controls { &self.all } else { &self.user_defined };
        let mut at = 0;
        let mut found = finder
            .spellings
            .find_iter(text)
            .map(Some)
            .chain(std::iter::once(None));
        std::iter::from_fn(move || {
            let next = found.next()?;
            let (start, end) = next
                .as_ref()
                .map_or((text.len(), text.len()), |m| (m.start(), m.end()));
            let before = Piece::Text(&text[at..start]);
            at = end;
            Some([
                Some(before),
                next.map(|m| Piece::Token(finder.tokens[m.pattern().as_usize()])),
            ])
        })
        .flatten()
        .flatten()
    }
}

fn automaton<T: AsRef<[u8]>>(
    kind: MatchKind,
    patterns: impl IntoIterator<Item = T>,
) -> Result<AhoCorasick, TokenizerError> {
    AhoCorasick::builder()
        .match_kind(kind)
        .build(patterns)
        .map_err(|e| TokenizerError::Vocabulary(format!("special tokens: {e}")))
}

/// The text that [`Specials::shield`] was given. (One that held the code point itself has lost it.)
pub(super) fn unshield(text: &str) -> Cow<'_, str> {
    if text.contains(SHIELD) {
        text.replace(SHIELD, "").into()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[Piece<'_>]) {
        let specials = Specials::new(&[("<a>", 1), ("", 4)], &[("<a><b>", 2), ("é", 3)]).unwrap();
        let pieces: Vec<_> = specials
            .split(text, true)
            .filter(|p| *p != Piece::Text(""))
            .collect();
        assert_eq!(pieces, expected, "{text}");
    }

    #[test]
    fn splits_leftmost_longest() {
        use Piece::{Text, Token};
        check("", &[]);
        check("x", &[Text("x")]);
        check("<a>", &[Token(1)]);
        check(
            "x<a>y<a><b>é",
            &[Text("x"), Token(1), Text("y"), Token(2), Token(3)],
        );
        check("<<a>>", &[Text("<"), Token(1), Text(">")]);
        check("<a", &[Text("<a")]);
    }

    #[test]
    fn what_a_user_has_defined_is_found_also_where_control_tokens_are_text() {
        let specials = Specials::new(&[("<a>", 1)], &[("<t>", 4)]).unwrap();
        let pieces: Vec<_> = specials.split("<a><t>", false).collect();
        assert_eq!(pieces, [Piece::Text("<a>"), Piece::Token(4), Piece::Text("")]);
    }

    #[test]
    fn what_is_shielded_is_text_and_comes_back() {
        let controls = [("<a>", 1), ("a>b", 2), ("éé", 3), ("", 5)];
        let specials = Specials::new(&controls, &[("<t>", 4)]).unwrap();
        for text in ["", "<a>", "x<a>b", "<<a>a>b>", "ééé", "<a><a>"] {
            let shielded = specials.shield(text);
            let pieces: Vec<_> = specials.split(&shielded, true).collect();
            assert_eq!(pieces, [Piece::Text(&shielded)], "{text}");
            assert_eq!(unshield(&shielded), text);
        }
        // Nothing that does not spell a control token is touched.
        for text in ["<a", "é", "<t>"] {
            assert_eq!(specials.shield(text), text);
        }
    }
}
