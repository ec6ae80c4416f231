//! What clients say, through a model's chat template.

use model::{ChatMessage, Model};

use crate::small_model::MODELS;

/// The code point by which contents are shielded; a content that holds it loses it, which is known.
const SHIELD: char = '\u{FDD0}';

/// The first byte chooses the template; messages are separated by the byte 30, and their first byte chooses who speaks.
///
/// # Panics
/// Where a conversation has other control tokens than one of the same shape that says nothing, or its tokens do not spell what the
/// template makes of it.
pub fn chat_content(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let model = &MODELS[usize::from(*first) % MODELS.len()];
    let messages: Vec<ChatMessage> = rest.split(|byte| *byte == 30).map(message).collect();
    let harmless: Vec<ChatMessage> = messages.iter().map(silenced).collect();
    let tokens = model.encode_chat(&messages).unwrap();
    let expected = model.encode_chat(&harmless).unwrap();
    assert_eq!(
        controls(model, &tokens),
        controls(model, &expected),
        "{messages:?}"
    );

    let spelled: Vec<u8> = tokens
        .iter()
        .flat_map(|token| model.tokenizer().token_bytes(*token))
        .copied()
        .collect();
    let text = std::str::from_utf8(&spelled).unwrap();
    if messages.iter().all(|message| !message.content.contains(SHIELD)) {
        let rendered = model.template().unwrap().render(&messages, true).unwrap();
        assert_eq!(text, rendered);
    }
    assert!(!text.contains(SHIELD), "a shield is left");
}

fn message(bytes: &[u8]) -> ChatMessage {
    let (role, content) = bytes.split_first().unwrap_or((&0, &[]));
    ChatMessage {
        role: ["user", "assistant", "system"][usize::from(*role) % 3].to_owned(),
        content: String::from_utf8_lossy(content).into_owned(),
    }
}

fn silenced(message: &ChatMessage) -> ChatMessage {
    ChatMessage {
        content: "x".to_owned(),
        ..message.clone()
    }
}

fn controls(model: &Model, tokens: &[u32]) -> Vec<u32> {
    let tokenizer = model.tokenizer();
    let controls = tokens.iter().filter(|token| tokenizer.is_control(**token));
    controls.copied().collect()
}
