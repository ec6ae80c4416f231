//! A tokenizer from GGUF metadata (`tokenizer.ggml.*`).

use engine::Token;

use super::bpe::Pairs;
use super::bytes::Alphabet;
use super::ends::ends;
use super::pre::Pre;
use super::specials::Specials;
use super::spm::{SPACE, Spm, byte_of, spelled};
use super::{Kind, Plain, Tokenizer, TokenizerError};
use crate::gguf::{Gguf, GgufError, Value};

/// Names the end token.
const EOS: &str = "tokenizer.ggml.eos_token_id";

impl From<GgufError> for TokenizerError {
    fn from(e: GgufError) -> Self {
        Self::Vocabulary(e.to_string())
    }
}

/// A file's vocabulary.
struct Entries<'a> {
    texts: Vec<&'a str>,
    kinds: Vec<Kind>,
}

impl<'a> Entries<'a> {
    fn of(file: &'a Gguf) -> Result<Self, TokenizerError> {
        let texts = texts(file, "tokenizer.ggml.tokens")?;
        let kinds = kinds(file, texts.len())?;
        Ok(Self { texts, kinds })
    }

    /// The tokens of some kinds.
    fn of_kind(&self, wanted: &[Kind]) -> impl Iterator<Item = (&'a str, Token)> {
        let all = self.texts.iter().copied().zip(0..).zip(&self.kinds);
        all.filter(|(_, kind)| wanted.contains(kind))
            .map(|(token, _)| token)
    }

    /// The tokens that end an answer, ascending.
    fn ends(&self, file: &Gguf) -> Vec<Token> {
        let named = [EOS, "tokenizer.ggml.eot_token_id"].into_iter();
        let named = named.filter_map(|key| id(file, key, self.texts.len()));
        ends(named, self.of_kind(&[Kind::Control, Kind::Unused]))
    }
}

impl Tokenizer {
    /// Builds the tokenizer a GGUF file describes: byte-level BPE (`tokenizer.ggml.model` = `gpt2`) or SentencePiece's (`llama`).
    ///
    /// # Errors
    /// When the vocabulary is missing, inconsistent or of a kind that is not supported.
    pub fn from_gguf(file: &Gguf) -> Result<Self, TokenizerError> {
        let model = file.text("tokenizer.ggml.model")?;
        let (byte_level, add_bos) = match model {
            "gpt2" => (true, false),
            "llama" => (false, true),
            other => {
                let what = format!(
                    "vocabulary of kind `{other}` is not supported; supported are byte-level BPE (`gpt2`) and SentencePiece's (`llama`)"
                );
                return Err(TokenizerError::Vocabulary(what));
            }
        };
        let entries = Entries::of(file)?;
        let (plain, bytes) = if byte_level {
            (byte_pairs(file, &entries)?, bytes_of_alphabet(&entries)?)
        } else {
            (scored_pieces(file, &entries)?, bytes_of_pieces(&entries)?)
        };
        let controls: Vec<_> = entries.of_kind(&[Kind::Control]).collect();
        // Such files write spaces as they are here, and as marks everywhere else.
        let defined = entries.of_kind(&[Kind::UserDefined]);
        let defined: Vec<_> = defined
            .map(|(text, token)| {
                (
                    if byte_level {
                        text.to_owned()
                    } else {
                        text.replace(SPACE, " ")
                    },
                    token,
                )
            })
            .collect();
        let defined: Vec<_> = defined
            .iter()
            .map(|(text, token)| (text.as_str(), *token))
            .collect();
        let id = |key| id(file, key, entries.texts.len());
        Ok(Self {
            plain,
            specials: Specials::new(&controls, &defined)?,
            bytes,
            bos: id("tokenizer.ggml.bos_token_id"),
            eos: id(EOS),
            add_bos: flag(file, "tokenizer.ggml.add_bos_token").unwrap_or(add_bos),
            end_tokens: entries.ends(file),
            kinds: entries.kinds,
        })
    }

    /// What [`end_tokens`](Self::end_tokens) will be, without building the tokenizer.
    ///
    /// # Errors
    /// When the vocabulary is missing or inconsistent.
    pub(crate) fn end_tokens_of(file: &Gguf) -> Result<Vec<Token>, TokenizerError> {
        Ok(Entries::of(file)?.ends(file))
    }
}

fn flag(file: &Gguf, key: &str) -> Option<bool> {
    file.value(key).and_then(Value::as_bool)
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
        Some(6) => Kind::Byte,
        _ => Kind::Text,
    }
}

/// Byte-level BPE.
fn byte_pairs(file: &Gguf, entries: &Entries<'_>) -> Result<Plain, TokenizerError> {
    let pre = Pre::named(file.text("tokenizer.ggml.pre")?)?;
    let pairs = Pairs {
        vocabulary: entries.texts.iter().copied().zip(0..).collect(),
        merges: texts_of_merges(file)?,
        normalizer: pre.normalizer,
        words: Some(pre.words),
        ignore_merges: pre.ignore_merges,
        ..Pairs::default()
    };
    Ok(Plain::Words {
        library: Box::new(pairs.build()?),
        prefix: false,
    })
}

fn bytes_of_alphabet(entries: &Entries<'_>) -> Result<Vec<Box<[u8]>>, TokenizerError> {
    let alphabet = Alphabet::new();
    let all = entries.texts.iter().zip(&entries.kinds);
    all.map(|(text, kind)| match kind {
        Kind::Text | Kind::Byte => alphabet.decode(text),
        _ => Ok(text.as_bytes().into()),
    })
    .collect()
}

/// SentencePiece's BPE.
fn scored_pieces(file: &Gguf, entries: &Entries<'_>) -> Result<Plain, TokenizerError> {
    let scores = file.array("tokenizer.ggml.scores")?;
    if scores.len() != entries.texts.len() {
        let what = format!("{} scores for {} tokens", scores.len(), entries.texts.len());
        return Err(TokenizerError::Vocabulary(what));
    }
    let pieces = entries.of_kind(&[Kind::Text]).map(|(text, token)| {
        let score = scores.get(token as usize).and_then(Value::as_float);
        (text, token, score.unwrap_or(f32::NAN))
    });
    let bytes = entries.of_kind(&[Kind::Byte]);
    let bytes: Vec<_> = bytes
        .filter_map(|(text, token)| Some((byte_of(text)?, token)))
        .collect();
    let unknown = id(file, "tokenizer.ggml.unknown_token_id", entries.texts.len());
    let prefix = flag(file, "tokenizer.ggml.add_space_prefix").unwrap_or(true);
    Ok(Plain::Pieces(Spm::new(pieces, &bytes, unknown, prefix)?))
}

fn bytes_of_pieces(entries: &Entries<'_>) -> Result<Vec<Box<[u8]>>, TokenizerError> {
    let all = entries.texts.iter().zip(&entries.kinds);
    all.map(|(text, kind)| match kind {
        Kind::Text | Kind::UserDefined => Ok(spelled(text)),
        Kind::Byte => byte_of(text).map(|byte| [byte].into()).ok_or_else(|| {
            TokenizerError::Vocabulary(format!("`{text}` should be a byte, such as `<0x0A>`"))
        }),
        Kind::Control | Kind::Unused => Ok(text.as_bytes().into()),
    })
    .collect()
}
