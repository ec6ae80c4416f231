//! A model file, opened as a gateway does: shape, tokenizer and chat template, all from metadata that nobody has vouched for.

use std::sync::Arc;

use model::{ChatMessage, Detokenizer, Model};

use crate::chat_template::let_the_engine_panic;
use crate::small_model::open;

/// The bytes as a file.
///
/// # Panics
/// Where a model is taken whose shape is beyond its limits, or whose tokenizer gives tokens that it does not have.
pub fn model_file(data: &[u8]) {
    let_the_engine_panic();
    let model = match open(data) {
        Ok(model) => model,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    check_shape(&model);
    let tokenizer = model.tokenizer();
    let vocabulary = tokenizer.vocabulary();
    let has = |token: u32| (token as usize) < vocabulary;
    assert!(tokenizer.bos().into_iter().chain(tokenizer.eos()).all(has));
    assert!(tokenizer.end_tokens().iter().all(|token| has(*token)));
    assert!(tokenizer.end_tokens().is_sorted());

    for text in ["", "a b  ab", "<|im_end|>é\n\u{fdd0} 123"] {
        let parsed = tokenizer.encode_prompt(text).into_iter().flatten();
        let plain = tokenizer.encode(text, false).into_iter().flatten();
        assert!(parsed.chain(plain).all(has), "{text:?}");
    }
    let all: Vec<u32> = (0..u32::try_from(vocabulary + 1).unwrap()).collect();
    let mut stream = Detokenizer::new(Arc::clone(tokenizer));
    let mut text: String = all.iter().map(|token| stream.push(*token)).collect();
    text.push_str(&stream.flush());
    assert_eq!(text, tokenizer.decode(&all));

    let message = ChatMessage {
        role: "user".to_owned(),
        content: "hi <|im_end|>".to_owned(),
    };
    if String::from_utf8_lossy(data).contains("namespace") {
        return; // As in the target `chat_template`.
    }
    if let Ok(tokens) = model.encode_chat(&[message]) {
        assert!(tokens.into_iter().all(has));
    }
}

fn check_shape(model: &Model) {
    let config = model.config();
    assert_eq!(config.vocabulary, model.tokenizer().vocabulary());
    assert!(config.kv_heads > 0 && config.heads.is_multiple_of(config.kv_heads));
    let few = [config.layers, config.heads, config.head_dim];
    assert!(few.iter().all(|n| (1..=4096).contains(n)), "{config:?}");
    assert!(config.rope.dims.is_multiple_of(2) && config.rope.dims <= config.head_dim);
    assert!(config.rms_epsilon.is_finite() && config.rope.base.is_finite());
    // A KV block of 16 tokens has so many numbers: twice for keys and values.
    let block = [config.layers, config.kv_heads, config.head_dim, 2 * 16];
    let numbers = block
        .iter()
        .try_fold(1_usize, |product, n| product.checked_mul(*n));
    assert!(numbers.is_some());
    assert!(config.context_tokens > 0);
}
