//! The tokenizer agrees with the reference on every string, and text comes back.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Detokenizer, Gguf, Tokenizer};
use proptest::prelude::*;
use serde::Deserialize;

use crate::builder::Builder;
use crate::reference::{Encoding, Greedy, cases, model, path};

#[test]
fn every_reference_string_has_the_reference_tokens() {
    let model = model();
    for case in cases::<Encoding>("tokenizer.json") {
        let ids = model.tokenizer().encode(&case.text, case.special).unwrap();
        assert_eq!(ids, case.ids, "{:?} special {}", case.text, case.special);
    }
    for case in cases::<Greedy>("greedy.json") {
        assert_eq!(
            model.tokenizer().encode(&case.text, true).unwrap(),
            case.ids,
            "{:?}",
            case.text
        );
    }
}

/// A text and its tokens under another way of cutting texts into words.
#[derive(Deserialize)]
struct Words {
    pre: String,
    text: String,
    ids: Vec<u32>,
}

/// A model file with the default model's vocabulary and the pre-tokenizer `pre`.
fn with_words(pre: &str) -> Tokenizer {
    let original = Gguf::open(&path()).unwrap();
    let texts = |key: &str| -> Vec<String> {
        original
            .array(key)
            .unwrap()
            .iter()
            .map(|v| v.as_text().unwrap().to_owned())
            .collect()
    };
    let tokens = texts("tokenizer.ggml.tokens");
    let kinds: Vec<i32> = (0..tokens.len()).map(|i| if i < 17 { 3 } else { 1 }).collect();
    let bytes = Builder::default()
        .text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.ggml.pre", pre)
        .texts("tokenizer.ggml.tokens", &tokens)
        .texts("tokenizer.ggml.merges", &texts("tokenizer.ggml.merges"))
        .i32s("tokenizer.ggml.token_type", &kinds)
        .build();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    Tokenizer::from_gguf(&Gguf::open(file.path()).unwrap()).unwrap()
}

#[test]
fn every_way_of_cutting_words_is_the_references() {
    let mut tokenizers = BTreeMap::new();
    for case in cases::<Words>("words.json") {
        let tokenizer = tokenizers
            .entry(case.pre.clone())
            .or_insert_with(|| with_words(&case.pre));
        assert_eq!(
            tokenizer.encode(&case.text, true).unwrap(),
            case.ids,
            "{} {:?}",
            case.pre,
            case.text
        );
    }
    assert_eq!(tokenizers.len(), 4);
}

#[test]
fn answers_decode_to_the_reference_text_at_once_and_token_by_token() {
    let model = model();
    let tokenizer = model.tokenizer();
    for case in cases::<Greedy>("greedy.json") {
        assert_eq!(tokenizer.decode(&case.generated), case.answer);
        let mut stream = Detokenizer::new(Arc::clone(tokenizer));
        let mut text: String = case.generated.iter().map(|&t| stream.push(t)).collect();
        text += &stream.flush();
        assert_eq!(text, case.answer);
    }
}

#[test]
fn control_tokens_are_known_and_silent() {
    let model = model();
    let tokenizer = model.tokenizer();
    assert_eq!(tokenizer.end_tokens(), [0, 2]);
    assert_eq!(tokenizer.encode("<|im_start|>", true).unwrap(), [1]);
    assert_eq!((tokenizer.vocabulary(), tokenizer.bos()), (49_152, Some(1)));
    assert!(tokenizer.is_control(2) && !tokenizer.is_control(17));
    assert_eq!(tokenizer.decode(&[1, 2]), "");
    assert_eq!(
        (tokenizer.token_bytes(2), tokenizer.token_bytes(u32::MAX)),
        (&b"<|im_end|>"[..], &b""[..])
    );
    // No beginning-of-text token is added: the file says so.
    assert_eq!(tokenizer.encode_prompt("!").unwrap(), [17]);
}

#[test]
fn long_texts_of_one_kind_are_encoded_whole() {
    for pre in ["smollm", "gpt-2", "llama-bpe", "qwen2"] {
        let tokenizer = with_words(pre);
        for piece in [" ", "\n", "a", "1", "é", "<|im_end|>", " a", "'s"] {
            let text = piece.repeat(100_000);
            let ids = tokenizer.encode(&text, false).unwrap();
            assert_eq!(tokenizer.decode(&ids), text, "{pre} {piece:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_text_comes_back(text in "\\PC{0,40}|[ \\t\\n\\ra-c0-9'é🙂<|>_]{0,40}") {
        let model = model();
        let ids = model.tokenizer().encode(&text, false).unwrap();
        prop_assert!(ids.iter().all(|&t| !model.tokenizer().is_control(t)));
        prop_assert_eq!(model.tokenizer().decode(&ids), text);
    }
}
