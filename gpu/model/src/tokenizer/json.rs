//! A tokenizer from a folder: `tokenizer.json`, and what `tokenizer_config.json` says of special tokens.
//!
//! Of `tokenizer.json` the vocabulary and what happens to a text before it is encoded go to the tokenizer library; special tokens and
//! decoding are this program's own, as with GGUF.

use std::collections::{BTreeMap, BTreeSet};

use engine::Token;
use serde::Deserialize;
use serde_json::Value;

use super::bpe::Pairs;
use super::bytes::Alphabet;
use super::ends::ends;
use super::specials::Specials;
use super::spm::{byte_of, spelled};
use super::{Kind, Plain, Tokenizer, TokenizerError};
use crate::folder::{Folder, FolderError};

impl From<FolderError> for TokenizerError {
    fn from(e: FolderError) -> Self {
        Self::Vocabulary(e.to_string())
    }
}

fn wrong<T>(what: impl std::fmt::Display) -> Result<T, TokenizerError> {
    Err(TokenizerError::Vocabulary(format!("tokenizer.json: {what}")))
}

/// `tokenizer.json`.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    added_tokens: Vec<Added>,
    normalizer: Option<Value>,
    pre_tokenizer: Option<Value>,
    post_processor: Option<Value>,
    model: Model,
}

/// The same, where only special tokens matter.
#[derive(Deserialize)]
struct AddedOnly {
    #[serde(default)]
    added_tokens: Vec<Added>,
}

/// A token that is found in texts by its spelling.
#[derive(Deserialize)]
struct Added {
    id: Token,
    content: String,
    #[serde(default)]
    special: bool,
    #[serde(default)]
    single_word: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
}

#[derive(Deserialize)]
struct Model {
    #[serde(rename = "type")]
    kind: Option<String>,
    vocab: BTreeMap<String, Token>,
    merges: Vec<Merge>,
    unk_token: Option<String>,
    dropout: Option<f32>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    #[serde(default)]
    fuse_unk: bool,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    ignore_merges: bool,
}

/// Older files write pairs as one text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Merge {
    Pair(String, String),
    Joined(String),
}

impl Merge {
    fn pair(self) -> Result<(String, String), TokenizerError> {
        match self {
            Self::Pair(a, b) => Ok((a, b)),
            Self::Joined(joined) => match joined.split_once(' ') {
                Some((a, b)) => Ok((a.to_owned(), b.to_owned())),
                None => wrong(format!("merge `{joined}` is not two parts")),
            },
        }
    }
}

impl Tokenizer {
    /// Builds the tokenizer that a folder describes, for a model of so many tokens: BPE, byte-level or with spaces as marks.
    ///
    /// # Errors
    /// When the vocabulary is missing, inconsistent or of a kind that is not supported.
    pub(crate) fn from_folder(folder: &Folder, vocabulary: usize) -> Result<Self, TokenizerError> {
        let json = folder.tokenizer_json()?;
        let file: File = serde_json::from_slice(&json).or_else(wrong)?;
        let added = known(file.added_tokens, vocabulary)?;
        let byte_level = is_byte_level(file.pre_tokenizer.as_ref());
        if !(byte_level || file.model.byte_fallback || file.model.unk_token.is_some()) {
            return wrong("the vocabulary is neither of bytes nor has any for what it does not know");
        }
        let (bytes, kinds) = meanings(&file.model, &added, byte_level, vocabulary)?;
        let of_kind = |special: bool| -> Vec<_> {
            let tokens = added.iter().filter(|token| token.special == special);
            tokens.map(|token| (token.content.as_str(), token.id)).collect()
        };
        let config = folder.tokenizer();
        let number = |spelling: &str| {
            let of_added = added.iter().find(|t| t.content == spelling).map(|t| t.id);
            of_added.or_else(|| file.model.vocab.get(spelling).copied())
        };
        let in_front = file.post_processor.as_ref().and_then(first_of_template);
        let named = config.token("bos_token").or(in_front);
        Ok(Self {
            specials: Specials::new(&of_kind(true), &of_kind(false))?,
            bytes,
            kinds,
            bos: named.and_then(number),
            eos: config.token("eos_token").and_then(number),
            add_bos: config.flag("add_bos_token")?.unwrap_or(in_front.is_some()),
            end_tokens: all_ends(folder, &added, vocabulary),
            plain: words(file.model, file.normalizer, file.pre_tokenizer)?,
        })
    }

    /// What [`end_tokens`](Self::end_tokens) will be, without building the tokenizer.
    ///
    /// # Errors
    /// When `tokenizer.json` is missing or damaged.
    pub(crate) fn end_tokens_of_folder(
        folder: &Folder,
        vocabulary: usize,
    ) -> Result<Vec<Token>, TokenizerError> {
        let json = folder.tokenizer_json()?;
        let file: AddedOnly = serde_json::from_slice(&json).or_else(wrong)?;
        Ok(all_ends(
            folder,
            &known(file.added_tokens, vocabulary)?,
            vocabulary,
        ))
    }
}

/// The added tokens that the model knows: some tokenizers have more. What the library would do around them is not done here.
fn known(added: Vec<Added>, vocabulary: usize) -> Result<Vec<Added>, TokenizerError> {
    let known = added.into_iter().filter(|token| (token.id as usize) < vocabulary);
    let known: Vec<_> = known.collect();
    match known.iter().find(|t| t.single_word || t.lstrip || t.rstrip) {
        Some(token) => wrong(format!(
            "the added token `{}` is `single_word`, `lstrip` or `rstrip`, which is not supported",
            token.content
        )),
        None => Ok(known),
    }
}

/// Those that any of the files names, and those that are spelled like one.
fn all_ends(folder: &Folder, added: &[Added], vocabulary: usize) -> Vec<Token> {
    let named = [folder.generation(), folder.config()].map(|file| file.numbers("eos_token_id"));
    let named = named.concat().into_iter().filter(|id| *id < vocabulary as u64);
    let named = named.filter_map(|id| Token::try_from(id).ok());
    let eos = folder.tokenizer().token("eos_token");
    let eos = added.iter().filter(|token| Some(token.content.as_str()) == eos);
    let controls = added.iter().filter(|token| token.special);
    ends(
        named.chain(eos.map(|token| token.id)),
        controls.map(|token| (token.content.as_str(), token.id)),
    )
}

/// The bytes that every token of the model stands for, and its kind.
type Meanings = (Vec<Box<[u8]>>, Vec<Kind>);

/// What every token of the model stands for.
fn meanings(
    model: &Model,
    added: &[Added],
    byte_level: bool,
    vocabulary: usize,
) -> Result<Meanings, TokenizerError> {
    let alphabet = Alphabet::new();
    let mut bytes = vec![Box::default(); vocabulary];
    let mut kinds = vec![Kind::Unused; vocabulary];
    // Their spelling is their own, whatever the alphabet.
    let special: BTreeSet<Token> = added.iter().map(|token| token.id).collect();
    let mut put = |id: Token, text: Box<[u8]>, kind| {
        (bytes[id as usize], kinds[id as usize]) = (text, kind);
    };
    for (text, &id) in &model.vocab {
        if id as usize >= vocabulary {
            return wrong(format!("`{text}` is token {id}, and the model has {vocabulary}"));
        }
        match byte_of(text) {
            _ if special.contains(&id) => {}
            _ if byte_level => put(id, alphabet.decode(text)?, Kind::Text),
            Some(byte) if model.byte_fallback => put(id, [byte].into(), Kind::Byte),
            _ => put(id, spelled(text), Kind::Text),
        }
    }
    for token in added {
        let kind = if token.special {
            Kind::Control
        } else {
            Kind::UserDefined
        };
        let text = match kind {
            Kind::UserDefined if !byte_level => spelled(&token.content),
            _ => token.content.as_bytes().into(),
        };
        put(token.id, text, kind);
    }
    Ok((bytes, kinds))
}

/// The library's encoder.
fn words(model: Model, normalizer: Option<Value>, words: Option<Value>) -> Result<Plain, TokenizerError> {
    if let Some(kind) = model.kind.as_deref().filter(|kind| *kind != "BPE") {
        return wrong(format!(
            "a vocabulary of type `{kind}` is not supported; supported is BPE"
        ));
    }
    let affixes = [&model.continuing_subword_prefix, &model.end_of_word_suffix];
    if affixes.into_iter().flatten().any(|affix| !affix.is_empty()) || model.dropout.is_some_and(|p| p != 0.0)
    {
        return wrong("affixes of words and dropout are not supported");
    }
    let normalizer = normalizer.map(|mut value| {
        checked(
            &mut value,
            &["NFC", "NFD", "NFKC", "NFKD", "Prepend", "Replace", "Sequence"],
        )?;
        serde_json::from_value(value).or_else(wrong)
    });
    let mut prefix = false;
    let words = words.map(|mut value| {
        prefix = checked(
            &mut value,
            &["ByteLevel", "Split", "Digits", "Metaspace", "Sequence"],
        )?;
        serde_json::from_value(value).or_else(wrong)
    });
    let merges: Result<_, _> = model.merges.into_iter().map(Merge::pair).collect();
    let pairs = Pairs {
        vocabulary: model
            .vocab
            .iter()
            .map(|(text, id)| (text.as_str(), *id))
            .collect(),
        merges: merges?,
        normalizer: normalizer.transpose()?,
        words: words.transpose()?,
        ignore_merges: model.ignore_merges,
        byte_fallback: model.byte_fallback,
        unknown: model.unk_token.as_deref(),
        fuse_unknown: model.fuse_unk,
    };
    Ok(Plain::Words {
        library: Box::new(pairs.build()?),
        prefix,
    })
}

/// Refuses steps that are not known to be harmless to a vocabulary of text. Gives whether a prompt begins as if a space were in front
/// of it, which is then no longer said: the library takes every piece of a text for its beginning.
fn checked(step: &mut Value, allowed: &[&str]) -> Result<bool, TokenizerError> {
    let kind = step
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or("without a type")
        .to_owned();
    if !allowed.contains(&kind.as_str()) {
        return wrong(format!(
            "a step `{kind}` is not supported; supported are {}",
            allowed.join(", ")
        ));
    }
    let mut first = false;
    if step.get("prepend_scheme").and_then(Value::as_str) == Some("first") {
        step["prepend_scheme"] = "never".into();
        if let Some(step) = step.as_object_mut() {
            step.remove("add_prefix_space");
        }
        first = true;
    }
    for key in ["normalizers", "pretokenizers"] {
        let steps = step.get_mut(key).and_then(Value::as_array_mut);
        for step in steps.into_iter().flatten() {
            first |= checked(step, allowed)?;
        }
    }
    Ok(first)
}

/// Whether texts are cut into bytes.
fn is_byte_level(step: Option<&Value>) -> bool {
    let Some(step) = step else { return false };
    let several = step.get("pretokenizers").and_then(Value::as_array);
    step.get("type").and_then(Value::as_str) == Some("ByteLevel")
        || several.is_some_and(|steps| steps.iter().any(|step| is_byte_level(Some(step))))
}

/// The special token that is put in front of a text.
fn first_of_template(step: &Value) -> Option<&str> {
    if let Some(steps) = step.get("processors").and_then(Value::as_array) {
        return steps.iter().find_map(first_of_template);
    }
    step.get("single")?
        .get(0)?
        .get("SpecialToken")?
        .get("id")?
        .as_str()
}
