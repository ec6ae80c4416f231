//! Finding control tokens in a text: leftmost first, and of those the longest.

use aho_corasick::{AhoCorasick, MatchKind};
use engine::Token;

use super::TokenizerError;

/// Part of a text.
#[derive(Debug, PartialEq)]
pub(super) enum Piece<'a> {
    /// Plain text; may be empty.
    Text(&'a str),
    /// A control token.
    Token(Token),
}

/// The control tokens of a vocabulary.
#[derive(Debug)]
pub(super) struct Specials {
    finder: AhoCorasick,
    tokens: Vec<Token>,
}

impl Specials {
    pub(super) fn new(specials: Vec<(&str, Token)>) -> Result<Self, TokenizerError> {
        let (patterns, tokens): (Vec<_>, _) = specials.into_iter().filter(|(s, _)| !s.is_empty()).unzip();
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(patterns)
            .map_err(|e| TokenizerError::Vocabulary(format!("control tokens: {e}")))?;
        Ok(Self { finder, tokens })
    }

    /// Cuts `text` at every control token.
    pub(super) fn split<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Piece<'a>> {
        let mut at = 0;
        let mut found = self.finder.find_iter(text).map(Some).chain(std::iter::once(None));
        std::iter::from_fn(move || {
            let next = found.next()?;
            let (start, end) = next
                .as_ref()
                .map_or((text.len(), text.len()), |m| (m.start(), m.end()));
            let before = Piece::Text(&text[at..start]);
            at = end;
            Some([
                Some(before),
                next.map(|m| Piece::Token(self.tokens[m.pattern().as_usize()])),
            ])
        })
        .flatten()
        .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[Piece<'_>]) {
        let specials = Specials::new(vec![("<a>", 1), ("<a><b>", 2), ("é", 3), ("", 4)]).unwrap();
        let pieces: Vec<_> = specials.split(text).filter(|p| *p != Piece::Text("")).collect();
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
}
