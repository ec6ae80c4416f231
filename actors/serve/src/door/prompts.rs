//! Prompts become tokens: through the chat template, through the tokenizer, within the context.
//!
//! A long prompt takes the tokenizer a while. It is encoded beside the runtime's threads, a few at a time: these carry the heartbeats
//! too, and a gateway that is busy with a client's text must not look dead to its workers.

mod places;

use std::sync::Arc;
use std::time::{Duration, Instant};

use api::{Message, Prompt, SubmitError};
use model::{ChatError, ChatMessage, Model, TemplateError};
use places::{Places, Undone};

/// Text up to this length is encoded at once: it takes less time than handing it to another thread is worth.
const SHORT_BYTES: usize = 8 << 10;
/// Long prompts that are encoded at the same time; more wait.
const AT_ONCE: usize = 2;

/// A prompt's tokens, and how long they took to make.
pub(super) struct Encoded {
    pub(super) tokens: Vec<u32>,
    /// Making a text of the conversation.
    pub(super) render: Duration,
    /// After that: making tokens of the text.
    pub(super) tokenise: Duration,
}

/// What encodes prompts.
pub(super) struct Prompts {
    model: Arc<Model>,
    name: String,
    /// Bytes of text that can fit the context at the very most.
    most_bytes: usize,
    places: Places,
}

impl Prompts {
    pub(super) fn new(model: Arc<Model>, name: String) -> Self {
        let tokenizer = model.tokenizer();
        let tokens = 0..u32::try_from(tokenizer.vocabulary()).unwrap_or(u32::MAX);
        let longest = tokens
            .map(|token| tokenizer.token_bytes(token).len())
            .max()
            .unwrap_or(1);
        let most_bytes = longest.saturating_mul(model.config().context_tokens as usize);
        Self {
            model,
            name,
            most_bytes,
            places: Places::new(AT_ONCE),
        }
    }

    /// The tokens of a prompt that leaves room for an answer.
    ///
    /// # Errors
    /// What is wrong with the prompt; or that `patience` ended before it was encoded.
    pub(super) async fn encoded(&self, prompt: &Prompt, patience: Duration) -> Result<Encoded, SubmitError> {
        let (field, bytes) = size(prompt);
        if bytes > self.most_bytes {
            let message = format!(
                "the prompt has {bytes} bytes; a context of {} tokens holds {} at the very most: shorten it",
                self.model.config().context_tokens,
                self.most_bytes
            );
            return Err(invalid(field, message));
        }
        if bytes <= SHORT_BYTES {
            return encode(&self.model, &self.name, prompt);
        }
        let (model, name, prompt) = (Arc::clone(&self.model), self.name.clone(), prompt.clone());
        let encoding = move || encode(&model, &name, &prompt);
        match self.places.run(patience, encoding).await {
            Ok(encoded) => encoded,
            Err(Undone::TooLate) => Err(SubmitError::Expired {
                phase: "encoding the prompt".to_owned(),
            }),
            Err(Undone::Failed) => Err(SubmitError::Internal {
                message: "the prompt could not be encoded".to_owned(),
            }),
        }
    }
}

/// The field that a prompt came in, and the length of its text.
fn size(prompt: &Prompt) -> (&'static str, usize) {
    match prompt {
        Prompt::Chat(messages) => (
            "messages",
            // Roles too: a great many empty messages are a long text.
            messages
                .iter()
                .map(|message| message.role.as_str().len() + message.content.len())
                .sum(),
        ),
        Prompt::Text(text) => ("prompt", text.len()),
        // No text to encode: what is too long is seen by its count.
        Prompt::Tokens(_) => ("prompt", 0),
    }
}

fn encode(model: &Model, name: &str, prompt: &Prompt) -> Result<Encoded, SubmitError> {
    let tokenizer = model.tokenizer();
    let (field, _) = size(prompt);
    let began = Instant::now();
    let mut render = Duration::ZERO;
    let tokens = match prompt {
        Prompt::Chat(messages) => {
            let failed = |error| chat_failed(name, &error);
            let rendered = model.render_chat(&conversation(messages)).map_err(failed)?;
            render = began.elapsed();
            model.encode_rendered(&rendered).map_err(failed)?
        }
        Prompt::Text(text) => tokenizer
            .encode_prompt(text)
            .map_err(|error| invalid(field, error.to_string()))?,
        Prompt::Tokens(tokens) => {
            let vocabulary = tokenizer.vocabulary();
            if let Some(token) = tokens.iter().find(|token| **token as usize >= vocabulary) {
                return Err(invalid(
                    field,
                    format!("token {token} is outside the vocabulary of {vocabulary} tokens"),
                ));
            }
            tokens.clone()
        }
    };
    if tokens.is_empty() {
        return Err(invalid(
            field,
            "the prompt is empty: give at least one token".to_owned(),
        ));
    }
    let prompt_tokens = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
    let context_tokens = model.config().context_tokens;
    if prompt_tokens >= context_tokens {
        return Err(SubmitError::PromptTooLong {
            prompt_tokens,
            context_tokens,
        });
    }
    Ok(Encoded {
        tokens,
        render,
        tokenise: began.elapsed().saturating_sub(render),
    })
}

fn conversation(messages: &[Message]) -> Vec<ChatMessage> {
    let message = |message: &Message| ChatMessage {
        role: message.role.as_str().to_owned(),
        content: message.content.clone(),
    };
    messages.iter().map(message).collect()
}

fn chat_failed(name: &str, error: &ChatError) -> SubmitError {
    match error {
        ChatError::NoTemplate => invalid(
            "messages",
            format!("`{name}` has no chat template: use /v1/completions"),
        ),
        ChatError::Template(TemplateError::Refused(_) | TemplateError::TooLong(_))
        | ChatError::Tokenizer(_) => invalid("messages", error.to_string()),
        ChatError::Template(_) => SubmitError::Internal {
            message: error.to_string(),
        },
    }
}

fn invalid(field: &str, message: String) -> SubmitError {
    SubmitError::Invalid {
        param: Some(field.to_owned()),
        message,
    }
}
