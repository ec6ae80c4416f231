//! Text to tokens and back, from the vocabulary in a model file.
//!
//! The vocabulary's control tokens (`<|im_start|>`, …) are found by this module, not by the tokenizer library, so one tokenizer serves
//! both ways of reading a text: with control tokens parsed, or as plain text whatever it holds.
//!
//! In a bare prompt, which is all its sender's, control tokens are parsed; in a conversation, those that the template writes and not
//! those that a message spells (see the `chat` module).

mod bpe;
mod bytes;
mod detokenizer;
mod ends;
mod gguf;
mod json;
mod pre;
mod specials;
mod spm;

use std::borrow::Cow;

pub use detokenizer::Detokenizer;

use engine::Token;
use specials::{Piece, Specials, unshield};
use spm::{SPACE, Spm};

/// Why there is no tokenizer, or a text has no tokens.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// The model file's vocabulary is missing, damaged or of a kind that is not supported.
    #[error("the model's tokenizer cannot be used: {0}")]
    Vocabulary(String),
    /// The text could not be encoded.
    #[error("the text cannot be encoded: {0}")]
    Encode(String),
}

/// What a token of the vocabulary is for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// A piece of text.
    Text,
    /// One byte, for characters that no piece has.
    Byte,
    /// A control token: never part of an answer's text.
    Control,
    /// Matched in texts like a control token, but its text belongs to the answer.
    UserDefined,
    /// Not used.
    Unused,
}

/// What makes tokens of text that holds no special ones.
#[derive(Debug)]
enum Plain {
    /// Splits it into words and words into tokens.
    Words {
        library: Box<tokenizers::Tokenizer>,
        /// A prompt begins as if a space were in front of it; what stands behind a special token does not.
        prefix: bool,
    },
    /// Joins pieces of it by their scores.
    Pieces(Spm),
}

impl Plain {
    /// Adds the tokens of a text; `first` says that it is the beginning of the prompt.
    fn encode(&self, text: &str, first: bool, out: &mut Vec<Token>) -> Result<(), TokenizerError> {
        if text.is_empty() {
            return Ok(());
        }
        match self {
            Self::Pieces(spm) => spm.encode(text, out),
            Self::Words { library, prefix } => {
                let text = match *prefix && first && !text.starts_with([' ', SPACE]) {
                    true => Cow::Owned(format!("{SPACE}{text}")),
                    false => Cow::Borrowed(text),
                };
                let encoding = library.encode_fast(text, false);
                let encoding = encoding.map_err(|e| TokenizerError::Encode(e.to_string()))?;
                out.extend_from_slice(encoding.get_ids());
            }
        }
        Ok(())
    }
}

/// A model's tokenizer. Immutable; share it.
#[derive(Debug)]
pub struct Tokenizer {
    plain: Plain,
    /// Control tokens, in texts.
    specials: Specials,
    /// The bytes of every token.
    bytes: Vec<Box<[u8]>>,
    kinds: Vec<Kind>,
    bos: Option<Token>,
    eos: Option<Token>,
    add_bos: bool,
    end_tokens: Vec<Token>,
}

impl Tokenizer {
    /// The tokens of `text`. With `special`, control tokens spelled in it are parsed; without, they are plain text.
    ///
    /// Adds nothing: see [`Tokenizer::encode_prompt`].
    ///
    /// # Errors
    /// When the tokenizer library fails.
    pub fn encode(&self, text: &str, special: bool) -> Result<Vec<Token>, TokenizerError> {
        self.encode_pieces(text, special, |text| text.into())
    }

    /// The tokens of a bare prompt (not a chat): control tokens parsed, and the beginning-of-text token put in front where the model
    /// file asks for that and the text does not already have it.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_prompt(&self, text: &str) -> Result<Vec<Token>, TokenizerError> {
        let mut out = self.encode(text, true)?;
        if let Some(bos) = self.bos.filter(|&bos| self.add_bos && out.first() != Some(&bos)) {
            out.insert(0, bos);
        }
        Ok(out)
    }

    /// A text in which no control token will be found by [`Tokenizer::encode_shielded`], for templates to put where they like.
    pub(crate) fn shield(&self, text: &str) -> String {
        self.specials.shield(text)
    }

    /// The tokens of a text of which parts are shielded: control tokens are parsed in the others, and the shields taken away.
    pub(crate) fn encode_shielded(&self, text: &str) -> Result<Vec<Token>, TokenizerError> {
        self.encode_pieces(text, true, unshield)
    }

    /// Cuts `text` at its special tokens and encodes what `plain` makes of the pieces between.
    fn encode_pieces(
        &self,
        text: &str,
        controls: bool,
        plain: fn(&str) -> Cow<'_, str>,
    ) -> Result<Vec<Token>, TokenizerError> {
        let mut out = Vec::new();
        for piece in self.specials.split(text, controls) {
            match piece {
                Piece::Text(text) => self.plain.encode(&plain(text), out.is_empty(), &mut out)?,
                Piece::Token(token) => out.push(token),
            }
        }
        Ok(out)
    }

    /// The bytes a token stands for; a control token's spelling. Empty for a token outside the vocabulary.
    #[must_use]
    pub fn token_bytes(&self, token: Token) -> &[u8] {
        self.bytes.get(token as usize).map_or(&[], |b| b)
    }

    /// The text of `tokens`, control tokens left out, damaged UTF-8 replaced.
    #[must_use]
    pub fn decode(&self, tokens: &[Token]) -> String {
        let bytes: Vec<u8> = tokens
            .iter()
            .filter(|&&t| !self.is_control(t))
            .flat_map(|&t| self.token_bytes(t))
            .copied()
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Whether the token is a control token, never part of a text.
    #[must_use]
    pub fn is_control(&self, token: Token) -> bool {
        matches!(self.kinds.get(token as usize), Some(Kind::Control | Kind::Unused))
    }

    /// The beginning-of-text token, if the model has one.
    #[must_use]
    pub fn bos(&self) -> Option<Token> {
        self.bos
    }

    /// The end-of-text token that the file names, if it does. An answer may end with others: [`Tokenizer::end_tokens`].
    #[must_use]
    pub fn eos(&self) -> Option<Token> {
        self.eos
    }

    /// Tokens that end an answer, ascending.
    #[must_use]
    pub fn end_tokens(&self) -> &[Token] {
        &self.end_tokens
    }

    /// Number of tokens in the vocabulary.
    #[must_use]
    pub fn vocabulary(&self) -> usize {
        self.bytes.len()
    }
}
