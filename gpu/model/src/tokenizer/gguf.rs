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

/// Names the end token.
const EOS: &str = "tokenizer.ggml.eos_token_id";

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
        let id = |key| id(file, key, texts.len());
        Ok(Self {
            plain,
            specials,
            bytes: bytes.collect::<Result<_, _>>()?,
            bos: id("tokenizer.ggml.bos_token_id"),
            eos: id(EOS),
            add_bos: file
                .value("tokenizer.ggml.add_bos_token")
                .and_then(Value::as_bool)
                .unwrap_or(false),
            end_tokens: ends(file, &texts, &kinds),
            kinds,
        })
    }

    /// What [`end_tokens`](Self::end_tokens) will be, without building the tokenizer.
    ///
    /// # Errors
    /// When the vocabulary is missing or inconsistent.
    pub(crate) fn end_tokens_of(file: &Gguf) -> Result<Vec<Token>, TokenizerError> {
        let texts = texts(file, "tokenizer.ggml.tokens")?;
        let kinds = kinds(file, texts.len())?;
        Ok(ends(file, &texts, &kinds))
    }
}

/// The tokens that end an answer, ascending: those that the file names, and those that are spelled like one.
fn ends(file: &Gguf, texts: &[&str], kinds: &[Kind]) -> Vec<Token> {
    let named = [EOS, "tokenizer.ggml.eot_token_id"].into_iter();
    let named = named.filter_map(|key| id(file, key, texts.len()));
    let all = texts.iter().zip(kinds).zip(0..);
    let spelled =
        all.filter(|((text, kind), _)| matches!(kind, Kind::Control | Kind::Unused) && ENDS.contains(*text));
    let ends: BTreeSet<Token> = named.chain(spelled.map(|(_, token)| token)).collect();
    ends.into_iter().collect()
}

/// A token that the file names, if its vocabulary has it.
fn id(file: &Gguf, key: &str, vocabulary: usize) -> Option<Token> {
    let id = file.unsigned(key).ok()?;
    u32::try_from(id).ok().filter(|&id| (id as usize) < vocabulary)
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
