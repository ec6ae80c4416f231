//! `POST /v1/completions`: the request.

use std::fmt;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::Request;
use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Unexpected, Visitor};

use super::common::{Caller, Common, to_u32};
use super::error::ApiError;
use super::fields::Fields;
use super::generate::{Job, serve};
use super::shape::Completion;
use crate::limits::Limits;
use crate::router::Door;
use crate::submit::Prompt;

pub(crate) async fn completions(
    State(door): State<Arc<Door>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    serve::<Completion>(&door, request, parse).await
}

/// What OpenAI's completions generate where the client does not say how much.
const DEFAULT_MAX_TOKENS: u32 = 16;

fn parse(body: &[u8], caller: &Caller, limits: &Limits) -> Result<Job, ApiError> {
    let mut fields = Fields::parse(body)?;
    let mut common = Common::take(&mut fields, limits)?;
    common.max_tokens.get_or_insert(DEFAULT_MAX_TOKENS);
    let prompts = prompts(&mut fields, &common, limits)?;
    let logprobs = to_u32(fields.whole("logprobs", 0..=20)?).and_then(|top| u8::try_from(top).ok());
    let echoes = echoes(&mut fields, &prompts, logprobs.is_some())?;
    fields.absent("suffix", &[], "text cannot be filled in between: leave it out")?;
    best_of(&mut fields, &common, limits)?;
    fields.finish()?;
    let requests = prompts
        .into_iter()
        .map(|prompt| common.request(caller, prompt, logprobs))
        .collect();
    Ok(Job {
        common,
        requests,
        echoes,
    })
}

fn best_of(fields: &mut Fields<'_>, common: &Common, limits: &Limits) -> Result<(), ApiError> {
    match fields.whole("best_of", 1..=i64::from(limits.choices))? {
        Some(best_of) if best_of != i64::from(common.n) => Err(ApiError::invalid(
            "best_of",
            format!("`best_of` is {best_of}: answers are not ranked here, leave it out or make it `n`"),
        )),
        _ => Ok(()),
    }
}

/// The text each prompt's continuations begin with, where the prompt is to be echoed; else nothing.
fn echoes(fields: &mut Fields<'_>, prompts: &[Prompt], logprobs: bool) -> Result<Vec<String>, ApiError> {
    if !fields.opt("echo")?.unwrap_or(false) {
        return Ok(Vec::new());
    }
    if logprobs {
        let message = "`echo` with `logprobs` is not supported: leave out one of them";
        return Err(ApiError::invalid("echo", message));
    }
    let echo = |prompt: &Prompt| match prompt {
        Prompt::Text(text) => Ok(text.clone()),
        Prompt::Chat(_) | Prompt::Tokens(_) => Err(ApiError::invalid(
            "echo",
            "`echo` needs a prompt of text, not of token ids",
        )),
    };
    prompts.iter().map(echo).collect()
}

fn prompts(fields: &mut Fields<'_>, common: &Common, limits: &Limits) -> Result<Vec<Prompt>, ApiError> {
    let Prompts(prompts) = fields.required("prompt")?;
    if prompts.is_empty() {
        return Err(ApiError::invalid(
            "prompt",
            "`prompt` is an empty list: it needs text or token ids",
        ));
    }
    if let Some(at) = prompts
        .iter()
        .position(|prompt| *prompt == Prompt::Tokens(Vec::new()))
    {
        let param = format!("prompt[{at}]");
        return Err(ApiError::invalid(
            param,
            "a prompt of token ids needs at least one",
        ));
    }
    let choices = prompts.len().saturating_mul(common.n as usize);
    if choices > limits.choices as usize {
        let message = format!(
            "{} prompts times `n` = {} make {choices} answers: one request may have {}",
            prompts.len(),
            common.n,
            limits.choices
        );
        return Err(ApiError::invalid("prompt", message));
    }
    Ok(prompts)
}

/// A string, a list of strings, a list of token ids, or a list of such lists.
struct Prompts(Vec<Prompt>);

/// An element of the outer list.
enum Element {
    Text(String),
    Token(u32),
    Tokens(Vec<u32>),
}

/// A token id; whether the model has it, only the model knows.
struct TokenId(u32);

impl<'de> Deserialize<'de> for Prompts {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(PromptsVisitor)
    }
}

impl<'de> Deserialize<'de> for Element {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(ElementVisitor)
    }
}

impl<'de> Deserialize<'de> for TokenId {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(TokenIdVisitor)
    }
}

struct PromptsVisitor;

impl<'de> Visitor<'de> for PromptsVisitor {
    type Value = Prompts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a list of strings, a list of token ids, or a list of lists of token ids")
    }

    fn visit_str<E>(self, text: &str) -> Result<Prompts, E> {
        Ok(Prompts(vec![Prompt::Text(text.to_owned())]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Prompts, A::Error> {
        let (mut texts, mut tokens, mut lists) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(element) = list.next_element()? {
            match element {
                Element::Text(text) => texts.push(Prompt::Text(text)),
                Element::Token(token) => tokens.push(token),
                Element::Tokens(tokens) => lists.push(Prompt::Tokens(tokens)),
            }
        }
        match (texts.is_empty(), tokens.is_empty(), lists.is_empty()) {
            (_, true, true) => Ok(Prompts(texts)),
            (true, false, true) => Ok(Prompts(vec![Prompt::Tokens(tokens)])),
            (true, true, false) => Ok(Prompts(lists)),
            _ => Err(A::Error::custom(
                "a list of prompts must hold one kind: all strings, all token ids, or all lists of token ids",
            )),
        }
    }
}

struct ElementVisitor;

impl<'de> Visitor<'de> for ElementVisitor {
    type Value = Element;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a token id (a whole number from 0 to 4294967295), or a list of token ids")
    }

    fn visit_str<E>(self, text: &str) -> Result<Element, E> {
        Ok(Element::Text(text.to_owned()))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Element, E> {
        TokenIdVisitor
            .visit_u64(number)
            .map(|TokenId(token)| Element::Token(token))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Element, A::Error> {
        let mut tokens = Vec::new();
        while let Some(TokenId(token)) = list.next_element()? {
            tokens.push(token);
        }
        Ok(Element::Tokens(tokens))
    }
}

struct TokenIdVisitor;

impl Visitor<'_> for TokenIdVisitor {
    type Value = TokenId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a token id: a whole number from 0 to 4294967295")
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<TokenId, E> {
        u32::try_from(number)
            .map(TokenId)
            .map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
    }
}
