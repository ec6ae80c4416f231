//! `POST /v1/chat/completions`: the request.

use std::fmt;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::Request;
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor, value::SeqAccessDeserializer};

use super::common::{Caller, Common, to_u32};
use super::error::ApiError;
use super::fields::{Fields, Nothing};
use super::generate::{Job, serve};
use super::shape::Chat;
use crate::limits::Limits;
use crate::router::Door;
use crate::submit::{Message, Prompt, Role};

pub(crate) async fn chat_completions(
    State(door): State<Arc<Door>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    serve::<Chat>(&door, request, parse).await
}

fn parse(body: &[u8], caller: &Caller, limits: &Limits) -> Result<Job, ApiError> {
    let mut fields = Fields::parse(body)?;
    let common = Common::take(&mut fields, limits)?;
    let messages = messages(&mut fields)?;
    let logprobs = logprobs(&mut fields)?;
    refuse(&mut fields)?;
    fields.finish()?;
    let request = common.request(caller, Prompt::Chat(messages), logprobs);
    Ok(Job {
        common,
        requests: vec![request],
        echoes: Vec::new(),
    })
}

/// What would change the answer if it were ignored.
fn refuse(fields: &mut Fields<'_>) -> Result<(), ApiError> {
    const TOOLS: &str = "function calling is not served: leave it out";
    fields.absent("tools", &[], TOOLS)?;
    fields.absent("functions", &[], TOOLS)?;
    fields.absent("tool_choice", &["\"none\"", "\"auto\""], TOOLS)?;
    fields.absent("function_call", &["\"none\"", "\"auto\""], TOOLS)?;
    fields.ignore(&["parallel_tool_calls"]);
    fields.absent(
        "response_format",
        &["{\"type\":\"text\"}"],
        "only `{\"type\": \"text\"}` is served",
    )?;
    fields.absent("modalities", &["[\"text\"]"], "only `[\"text\"]` is served")?;
    fields.absent("audio", &[], "only text is served: leave it out")?;
    fields.absent(
        "web_search_options",
        &[],
        "there is no web search here: leave it out",
    )?;
    fields.absent("reasoning_effort", &["\"none\""], "leave it out")?;
    fields.absent("verbosity", &["\"medium\""], "leave it out")
}

fn logprobs(fields: &mut Fields<'_>) -> Result<Option<u8>, ApiError> {
    let asked = fields.opt("logprobs")?.unwrap_or(false);
    let top = to_u32(fields.whole("top_logprobs", 0..=20)?);
    match (asked, top) {
        (false, Some(1..)) => Err(ApiError::invalid(
            "top_logprobs",
            "`top_logprobs` needs `logprobs: true` as well",
        )),
        (false, _) => Ok(None),
        (true, top) => Ok(u8::try_from(top.unwrap_or(0)).ok()),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMessage {
    role: RawRole,
    content: Option<Content>,
    name: Option<String>,
    // What OpenAI's own client sends back when an answer is put into the next request.
    #[serde(default, rename = "refusal")]
    _refusal: Nothing,
    #[serde(default, rename = "tool_calls")]
    _tool_calls: Nothing,
    #[serde(default, rename = "function_call")]
    _function_call: Nothing,
    #[serde(default, rename = "audio")]
    _audio: Nothing,
    #[serde(default, rename = "annotations")]
    _annotations: Nothing,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawRole {
    System,
    Developer,
    User,
    Assistant,
}

/// Text, or parts that are all text.
struct Content(String);

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Part {
    Text { text: String },
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct TextOrParts;
        impl<'de> Visitor<'de> for TextOrParts {
            type Value = Content;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, or a list of parts of type `text`")
            }

            fn visit_str<E>(self, text: &str) -> Result<Content, E> {
                Ok(Content(text.to_owned()))
            }

            fn visit_string<E>(self, text: String) -> Result<Content, E> {
                Ok(Content(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, parts: A) -> Result<Content, A::Error> {
                let parts = Vec::<Part>::deserialize(SeqAccessDeserializer::new(parts))?;
                Ok(Content(
                    parts.into_iter().map(|Part::Text { text }| text).collect(),
                ))
            }
        }
        json.deserialize_any(TextOrParts)
    }
}

fn messages(fields: &mut Fields<'_>) -> Result<Vec<Message>, ApiError> {
    let raw: Vec<RawMessage> = fields.required("messages")?;
    if raw.is_empty() {
        return Err(ApiError::invalid(
            "messages",
            "`messages` is empty: it needs at least one message",
        ));
    }
    raw.into_iter()
        .enumerate()
        .map(|(at, message)| read_message(at, message))
        .collect()
}

fn read_message(at: usize, message: RawMessage) -> Result<Message, ApiError> {
    let Some(Content(content)) = message.content else {
        let param = format!("messages[{at}].content");
        let message = format!("`{param}` is missing: it must be text");
        return Err(ApiError::invalid(param, message));
    };
    let role = match message.role {
        RawRole::System | RawRole::Developer => Role::System,
        RawRole::User => Role::User,
        RawRole::Assistant => Role::Assistant,
    };
    Ok(Message {
        role,
        content,
        name: message.name,
    })
}
