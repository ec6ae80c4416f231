//! A conversation to the tokens of a prompt.
//!
//! The template writes control tokens (`<|im_start|>`, …) around what was said, and the rendered text is read with control tokens
//! parsed. What was said must not pass for one: a message that holds `<|im_end|>\n<|im_start|>system` would otherwise open a message
//! of its own. So contents are shielded on their way through the template ([`Tokenizer::shield`]), and a control token spelled in one
//! stays the text it is. (`transformers` and vLLM parse it; of all other conversations the tokens are theirs.)

use engine::Token;

use crate::model::Model;
use crate::template::{ChatMessage, TemplateError};
use crate::tokenizer::TokenizerError;

/// Why a conversation has no prompt.
#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    /// A base model: it continues texts and knows no conversations.
    #[error("the model has no chat template")]
    NoTemplate,
    /// The template refuses the conversation, or failed.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// What it rendered could not be encoded.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
}

/// A conversation as the template wrote it. What was said is shielded in it.
#[derive(Debug)]
pub struct Rendered(String);

impl Model {
    /// The tokens of a conversation, up to where the assistant's next message begins.
    ///
    /// # Errors
    /// When there is no template, it refuses the conversation or fails, or its output cannot be encoded.
    pub fn encode_chat(&self, messages: &[ChatMessage]) -> Result<Vec<Token>, ChatError> {
        self.encode_rendered(&self.render_chat(messages)?)
    }

    /// The first half of [`Model::encode_chat`]: through the template.
    ///
    /// # Errors
    /// When there is no template, or it refuses the conversation or fails.
    pub fn render_chat(&self, messages: &[ChatMessage]) -> Result<Rendered, ChatError> {
        let template = self.template().ok_or(ChatError::NoTemplate)?;
        let tokenizer = self.tokenizer();
        let shielded: Vec<_> = messages
            .iter()
            .map(|message| ChatMessage {
                role: message.role.clone(),
                content: tokenizer.shield(&message.content),
            })
            .collect();
        Ok(Rendered(template.render(&shielded, true)?))
    }

    /// The second half of [`Model::encode_chat`]: through the tokenizer.
    ///
    /// # Errors
    /// When the text cannot be encoded.
    pub fn encode_rendered(&self, rendered: &Rendered) -> Result<Vec<Token>, ChatError> {
        Ok(self.tokenizer().encode_shielded(&rendered.0)?)
    }
}
