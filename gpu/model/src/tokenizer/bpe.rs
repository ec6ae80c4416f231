//! Byte-pair encoding by the tokenizer library, of a vocabulary that has been looked through.

use std::collections::BTreeSet;

use engine::Token;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper};

use super::TokenizerError;

/// A vocabulary and what happens to a text before and in it.
#[derive(Default)]
pub(super) struct Pairs<'a> {
    pub(super) vocabulary: Vec<(&'a str, Token)>,
    /// Pairs of parts, best first.
    pub(super) merges: Vec<(String, String)>,
    pub(super) normalizer: Option<NormalizerWrapper>,
    pub(super) words: Option<PreTokenizerWrapper>,
    /// A word that is itself in the vocabulary is taken whole, whatever the merges say.
    pub(super) ignore_merges: bool,
    /// A character that is not in the vocabulary is spelled by tokens of its bytes.
    pub(super) byte_fallback: bool,
    /// Stands for a character that has neither.
    pub(super) unknown: Option<&'a str>,
    /// Several such in a row are one.
    pub(super) fuse_unknown: bool,
}

impl Pairs<'_> {
    /// The library's encoder.
    pub(super) fn build(self) -> Result<tokenizers::Tokenizer, TokenizerError> {
        let library = |e: tokenizers::Error| TokenizerError::Vocabulary(e.to_string());
        let wrong = |what: String| Err(TokenizerError::Vocabulary(what));
        let named = self
            .vocabulary
            .iter()
            .map(|&(text, token)| (text.to_owned(), token));
        let vocabulary = named.collect::<Vocab>();
        if vocabulary.len() != self.vocabulary.len() {
            return wrong("a token is in the vocabulary twice".to_owned());
        }
        let numbers: BTreeSet<Token> = vocabulary.values().copied().collect();
        if numbers.len() != vocabulary.len() {
            return wrong("two tokens of the vocabulary have the same number".to_owned());
        }
        // The library takes this for granted: it would write behind the end of a buffer, and panic.
        for (a, b) in &self.merges {
            if [a, b, &format!("{a}{b}")]
                .iter()
                .any(|part| !vocabulary.contains_key(*part))
            {
                return wrong(format!(
                    "merge `{a} {b}`: the parts or the whole are not in the vocabulary"
                ));
            }
        }
        if let Some(unknown) = self.unknown
            && !vocabulary.contains_key(unknown)
        {
            return wrong(format!("the unknown token `{unknown}` is not in the vocabulary"));
        }
        let mut model = BPE::builder()
            .vocab_and_merges(vocabulary, self.merges)
            .ignore_merges(self.ignore_merges)
            .byte_fallback(self.byte_fallback)
            .fuse_unk(self.fuse_unknown);
        if let Some(unknown) = self.unknown {
            model = model.unk_token(unknown.to_owned());
        }
        let mut plain = tokenizers::Tokenizer::new(model.build().map_err(library)?);
        plain.with_normalizer(self.normalizer).map_err(library)?;
        plain.with_pre_tokenizer(self.words);
        Ok(plain)
    }
}
