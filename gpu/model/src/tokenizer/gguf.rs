//! A tokenizer from GGUF metadata (`tokenizer.ggml.*`).

use std::collections::BTreeSet;

use engine::Token;
use tokenizers::models::bpe::{BPE, Vocab};

use super::bytes::Alphabet;
use super::pre::Pre;
use super::specials::Specials;
use super::{Kind, Tokenizer, TokenizerError};
use crate::gguf::{Gguf, GgufError, Value};

/// Spellings of tokens that end an answer, whatever the file says about them: files name one end token, chat models use several.
const ENDS: [&str; 7] = [
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "</s>",
];

impl From<GgufError> for TokenizerError {
    fn from(e: GgufError) -> Self {
        Self::Vocabulary(e.to_string())
    }
}

impl Tokenizer {
    /// Builds the tokenizer a GGUF file describes: byte-level BPE (`tokenizer.ggml.model` = `gpt2`).
    ///
    /// # Errors
    /// When the vocabulary is missing, inconsistent or of a kind that is not supported.
    pub fn from_gguf(file: &Gguf) -> Result<Self, TokenizerError> {
        let model = file.text("tokenizer.ggml.model")?;
        if model != "gpt2" {
            let what = format!(
                "vocabulary of kind `{model}` is not supported; supported is byte-level BPE (`gpt2`)"
            );
            return Err(TokenizerError::Vocabulary(what));
        }
        let texts = texts(file, "tokenizer.ggml.tokens")?;
        let kinds = kinds(file, texts.len())?;
        let pre = Pre::named(file.text("tokenizer.ggml.pre")?)?;
        let plain = byte_pairs(&texts, &texts_of_merges(file)?, pre)?;

        let alphabet = Alphabet::new();
        let bytes = texts.iter().zip(&kinds).map(|(text, kind)| match kind {
            Kind::Text => alphabet.decode(text),
            _ => Ok(text.as_bytes().into()),
        });
        let spelled = |wanted: &[Kind]| -> Vec<(&str, Token)> {
            let all = texts.iter().copied().zip(0..).zip(&kinds);
            all.filter(|(_, kind)| wanted.contains(kind))
                .map(|(token, _)| token)
                .collect()
        };
        let controls: Vec<_> = spelled(&[Kind::Control])
            .into_iter()
            .map(|(text, _)| text)
            .collect();
        let specials = Specials::new(spelled(&[Kind::Control, Kind::UserDefined]), &controls)?;
        let id = |key: &str| {
            file.unsigned(key)
                .ok()
                .and_then(|n| u32::try_from(n).ok())
                .filter(|&n| (n as usize) < texts.len())
        };
        let eos = id("tokenizer.ggml.eos_token_id");
        let ends = spelled(&[Kind::Control, Kind::Unused]).into_iter();
        let ends = ends
            .filter(|(text, _)| ENDS.contains(text))
            .map(|(_, token)| token);
        let named = eos.into_iter().chain(id("tokenizer.ggml.eot_token_id"));
        let end_tokens: BTreeSet<Token> = named.chain(ends).collect();
        Ok(Self {
            plain,
            specials,
            bytes: bytes.collect::<Result<_, _>>()?,
            bos: id("tokenizer.ggml.bos_token_id"),
            eos,
            add_bos: file
                .value("tokenizer.ggml.add_bos_token")
                .and_then(Value::as_bool)
                .unwrap_or(false),
            end_tokens: end_tokens.into_iter().collect(),
            kinds,
        })
    }
}

fn texts<'a>(file: &'a Gguf, key: &str) -> Result<Vec<&'a str>, TokenizerError> {
    let wrong = || TokenizerError::Vocabulary(format!("`{key}` holds something that is not text"));
    file.array(key)?
        .iter()
        .map(|v| v.as_text().ok_or_else(wrong))
        .collect()
}

/// Pairs of parts, best first.
fn texts_of_merges(file: &Gguf) -> Result<Vec<(String, String)>, TokenizerError> {
    let pair = |merge: &str| merge.split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned()));
    let wrong = |merge: &str| TokenizerError::Vocabulary(format!("merge `{merge}` is not two parts"));
    texts(file, "tokenizer.ggml.merges")?
        .into_iter()
        .map(|m| pair(m).ok_or_else(|| wrong(m)))
        .collect()
}

/// The kinds of all tokens, from GGML's numbers.
fn kinds(file: &Gguf, len: usize) -> Result<Vec<Kind>, TokenizerError> {
    let Some(value) = file.value("tokenizer.ggml.token_type") else {
        return Ok(vec![Kind::Text; len]);
    };
    let kinds: Vec<_> = value.as_array().unwrap_or_default().iter().map(kind).collect();
    if kinds.len() == len {
        return Ok(kinds);
    }
    Err(TokenizerError::Vocabulary(format!(
        "{} token types for {len} tokens",
        kinds.len()
    )))
}

fn kind(value: &Value) -> Kind {
    match value.as_unsigned() {
        Some(2 | 3) => Kind::Control,
        Some(4) => Kind::UserDefined,
        Some(5) => Kind::Unused,
        _ => Kind::Text,
    }
}

/// The library's byte-pair encoder.
fn byte_pairs(
    texts: &[&str],
    merges: &[(String, String)],
    pre: Pre,
) -> Result<tokenizers::Tokenizer, TokenizerError> {
    let library = |e: tokenizers::Error| TokenizerError::Vocabulary(e.to_string());
    let vocabulary = texts.iter().map(|&t| t.to_owned()).zip(0..).collect::<Vocab>();
    if vocabulary.len() != texts.len() {
        return Err(TokenizerError::Vocabulary(
            "a token is in the vocabulary twice".to_owned(),
        ));
    }
    // The library takes this for granted: it would write behind the end of a buffer, and panic.
    for (a, b) in merges {
        if [a, b, &format!("{a}{b}")]
            .iter()
            .any(|part| !vocabulary.contains_key(*part))
        {
            let what = format!("merge `{a} {b}`: the parts or the whole are not in the vocabulary");
            return Err(TokenizerError::Vocabulary(what));
        }
    }
    let model = BPE::builder()
        .vocab_and_merges(vocabulary, merges.to_vec())
        .ignore_merges(pre.ignore_merges)
        .build()
        .map_err(library)?;
    let mut plain = tokenizers::Tokenizer::new(model);
    plain.with_normalizer(pre.normalizer).map_err(library)?;
    plain.with_pre_tokenizer(Some(pre.words));
    Ok(plain)
}
