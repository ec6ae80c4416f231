//! How a text is cut into words before byte-pair encoding, by the name a GGUF file gives it (`tokenizer.ggml.pre`).

use tokenizers::normalizers::NFC;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper, SplitDelimiterBehavior};

use super::TokenizerError;

/// Llama 3's words: numbers in groups of up to three digits.
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// Qwen 2's words: digits one by one.
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// What happens to a text before its words are encoded.
pub(super) struct Pre {
    pub(super) normalizer: Option<NormalizerWrapper>,
    pub(super) words: PreTokenizerWrapper,
    /// A word that is itself in the vocabulary is taken whole, whatever the merges say.
    pub(super) ignore_merges: bool,
}

impl Pre {
    /// The steps called `name`.
    pub(super) fn named(name: &str) -> Result<Self, TokenizerError> {
        let bytes = |regex: bool| PreTokenizerWrapper::from(ByteLevel::new(false, true, regex));
        let (normalizer, steps, ignore_merges) = match name {
            "gpt-2" => (None, vec![bytes(true)], false),
            "smollm" | "starcoder" | "refact" | "command-r" => {
                (None, vec![Digits::new(true).into(), bytes(true)], false)
            }
            "llama3" | "llama-v3" | "llama-bpe" => (None, vec![split(LLAMA3)?, bytes(false)], true),
            "qwen2" => (Some(NFC.into()), vec![split(QWEN2)?, bytes(false)], false),
            other => {
                let known = "gpt-2, smollm, starcoder, refact, command-r, llama-bpe, qwen2";
                let what = format!("pre-tokenizer `{other}` is not supported; supported are {known}");
                return Err(TokenizerError::Vocabulary(what));
            }
        };
        Ok(Self {
            normalizer,
            words: Sequence::new(steps).into(),
            ignore_merges,
        })
    }
}

/// Cuts a text into the matches of `regex` and what lies between them.
fn split(regex: &str) -> Result<PreTokenizerWrapper, TokenizerError> {
    Split::new(
        SplitPattern::Regex(regex.to_owned()),
        SplitDelimiterBehavior::Isolated,
        false,
    )
    .map(Into::into)
    .map_err(|e| TokenizerError::Vocabulary(format!("pre-tokenizer: {e}")))
}
