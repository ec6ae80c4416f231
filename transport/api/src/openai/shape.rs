//! The two shapes of an answer: chat completions and completions, in pieces and whole.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::submit::{FinishReason, TokenLogprob, TopLogprob};

/// How OpenAI spells minus infinity.
const LEAST_LOGPROB: f32 = -9999.0;

/// The shape of an answer: what a choice looks like, as a piece of a stream and whole.
pub(crate) trait Shape: Send + 'static {
    /// The field of the request that holds the prompt.
    const PROMPT: &'static str;
    /// What the ids of answers begin with.
    const ID_PREFIX: &'static str;
    /// `object` of a piece.
    const PIECE: &'static str;
    /// `object` of a whole answer.
    const WHOLE: &'static str;
    /// A choice within a stream.
    type Piece: Serialize;
    /// A choice of a whole answer.
    type Choice: Serialize;

    /// The piece every continuation begins with, if any.
    fn opening(index: u32) -> Option<Self::Piece>;
    /// A piece of text that begins `offset` characters into its continuation.
    fn text(index: u32, text: String, logprobs: Option<&[TokenLogprob]>, offset: usize) -> Self::Piece;
    /// The last piece of a continuation.
    fn closing(index: u32, finish: FinishReason) -> Self::Piece;
    /// A complete continuation.
    fn whole(
        index: u32,
        text: String,
        logprobs: Option<&[TokenLogprob]>,
        finish: FinishReason,
    ) -> Self::Choice;
}

/// Tokens used, over all prompts and continuations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) prompt_tokens: u32,
    pub(crate) completion_tokens: u32,
    pub(crate) cached_tokens: u32,
}

impl Serialize for Usage {
    fn serialize<S: Serializer>(&self, json: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Details {
            cached_tokens: u32,
        }
        #[derive(Serialize)]
        struct Body {
            prompt_tokens: u32,
            completion_tokens: u32,
            total_tokens: u64,
            prompt_tokens_details: Details,
        }
        let Self {
            prompt_tokens,
            completion_tokens,
            cached_tokens,
        } = *self;
        let total_tokens = u64::from(prompt_tokens) + u64::from(completion_tokens);
        let prompt_tokens_details = Details { cached_tokens };
        Body {
            prompt_tokens,
            completion_tokens,
            total_tokens,
            prompt_tokens_details,
        }
        .serialize(json)
    }
}

/// `chat.completion`.
pub(crate) struct Chat;

#[derive(Serialize)]
pub(crate) struct ChatPiece {
    index: u32,
    delta: Delta,
    logprobs: Option<ChatLogprobs>,
    finish_reason: Option<&'static str>,
}

#[derive(Serialize, Default)]
struct Delta {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct ChatChoice {
    index: u32,
    message: Said,
    logprobs: Option<ChatLogprobs>,
    finish_reason: &'static str,
}

#[derive(Serialize)]
struct Said {
    role: &'static str,
    content: String,
    refusal: Option<&'static str>,
}

#[derive(Serialize)]
struct ChatLogprobs {
    content: Vec<ChatToken>,
    refusal: Option<&'static str>,
}

#[derive(Serialize)]
struct ChatToken {
    #[serde(flatten)]
    chosen: Candidate,
    top_logprobs: Vec<Candidate>,
}

#[derive(Serialize)]
struct Candidate {
    token: String,
    logprob: f32,
    bytes: Vec<u8>,
}

impl Candidate {
    fn new(token: &str, logprob: f32, bytes: &[u8]) -> Self {
        Self {
            token: token.to_owned(),
            logprob: finite(logprob),
            bytes: bytes.to_vec(),
        }
    }
}

fn chat_logprobs(tokens: Option<&[TokenLogprob]>) -> Option<ChatLogprobs> {
    let top = |t: &TopLogprob| Candidate::new(&t.token, t.logprob, &t.bytes);
    let token = |t: &TokenLogprob| ChatToken {
        chosen: Candidate::new(&t.token, t.logprob, &t.bytes),
        top_logprobs: t.top.iter().map(top).collect(),
    };
    tokens.map(|tokens| ChatLogprobs {
        content: tokens.iter().map(token).collect(),
        refusal: None,
    })
}

impl Shape for Chat {
    const PROMPT: &'static str = "messages";
    const ID_PREFIX: &'static str = "chatcmpl-";
    const PIECE: &'static str = "chat.completion.chunk";
    const WHOLE: &'static str = "chat.completion";
    type Piece = ChatPiece;
    type Choice = ChatChoice;

    fn opening(index: u32) -> Option<ChatPiece> {
        let delta = Delta {
            role: Some("assistant"),
            content: Some(String::new()),
        };
        Some(ChatPiece {
            index,
            delta,
            logprobs: None,
            finish_reason: None,
        })
    }

    fn text(index: u32, text: String, logprobs: Option<&[TokenLogprob]>, _offset: usize) -> ChatPiece {
        let delta = Delta {
            role: None,
            content: Some(text),
        };
        ChatPiece {
            index,
            delta,
            logprobs: chat_logprobs(logprobs),
            finish_reason: None,
        }
    }

    fn closing(index: u32, finish: FinishReason) -> ChatPiece {
        ChatPiece {
            index,
            delta: Delta::default(),
            logprobs: None,
            finish_reason: Some(word(finish)),
        }
    }

    fn whole(
        index: u32,
        text: String,
        logprobs: Option<&[TokenLogprob]>,
        finish: FinishReason,
    ) -> ChatChoice {
        let message = Said {
            role: "assistant",
            content: text,
            refusal: None,
        };
        ChatChoice {
            index,
            message,
            logprobs: chat_logprobs(logprobs),
            finish_reason: word(finish),
        }
    }
}

/// `text_completion`.
pub(crate) struct Completion;

/// The same in pieces and whole, but for the reason, which only the last piece has.
#[derive(Serialize)]
pub(crate) struct CompletionChoice {
    index: u32,
    text: String,
    logprobs: Option<LegacyLogprobs>,
    finish_reason: Option<&'static str>,
}

#[derive(Serialize, Default)]
struct LegacyLogprobs {
    tokens: Vec<String>,
    token_logprobs: Vec<f32>,
    top_logprobs: Vec<BTreeMap<String, f32>>,
    text_offset: Vec<usize>,
}

fn legacy_logprobs(tokens: Option<&[TokenLogprob]>, mut offset: usize) -> Option<LegacyLogprobs> {
    let mut legacy = LegacyLogprobs::default();
    for token in tokens? {
        legacy.tokens.push(token.token.clone());
        legacy.token_logprobs.push(finite(token.logprob));
        legacy.top_logprobs.push(
            token
                .top
                .iter()
                .map(|top| (top.token.clone(), finite(top.logprob)))
                .collect(),
        );
        legacy.text_offset.push(offset);
        offset += token.token.chars().count();
    }
    Some(legacy)
}

impl Shape for Completion {
    const PROMPT: &'static str = "prompt";
    const ID_PREFIX: &'static str = "cmpl-";
    const PIECE: &'static str = "text_completion";
    const WHOLE: &'static str = "text_completion";
    type Piece = CompletionChoice;
    type Choice = CompletionChoice;

    fn opening(_index: u32) -> Option<CompletionChoice> {
        None
    }

    fn text(index: u32, text: String, logprobs: Option<&[TokenLogprob]>, offset: usize) -> CompletionChoice {
        CompletionChoice {
            index,
            text,
            logprobs: legacy_logprobs(logprobs, offset),
            finish_reason: None,
        }
    }

    fn closing(index: u32, finish: FinishReason) -> CompletionChoice {
        CompletionChoice {
            index,
            text: String::new(),
            logprobs: None,
            finish_reason: Some(word(finish)),
        }
    }

    fn whole(
        index: u32,
        text: String,
        logprobs: Option<&[TokenLogprob]>,
        finish: FinishReason,
    ) -> CompletionChoice {
        let logprobs = legacy_logprobs(logprobs, 0);
        CompletionChoice {
            index,
            text,
            logprobs,
            finish_reason: Some(word(finish)),
        }
    }
}

fn word(finish: FinishReason) -> &'static str {
    match finish {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
    }
}

/// JSON has no infinity.
fn finite(logprob: f32) -> f32 {
    if logprob.is_nan() {
        LEAST_LOGPROB
    } else {
        logprob.clamp(LEAST_LOGPROB, 0.0)
    }
}
