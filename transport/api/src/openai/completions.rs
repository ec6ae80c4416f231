//! `POST /v1/completions`: the request.

use std::fmt;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::Request;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};

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

fn parse(body: &[u8], caller: &Caller, limits: &Limits) -> Result<Job, ApiError> {
    let mut fields = Fields::parse(body)?;
    let common = Common::take(&mut fields, limits)?;
    let prompts = prompts(&mut fields, &common, limits)?;
    let logprobs = to_u32(fields.whole("logprobs", 0..=20)?).and_then(|top| u8::try_from(top).ok());
    let echoes = echoes(&mut fields, &prompts, logprobs.is_some())?;
    fields.absent("suffix", &[], "text cannot be filled in between: leave it out")?;
    best_of(&mut fields, &common)?;
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

fn best_of(fields: &mut Fields<'_>, common: &Common) -> Result<(), ApiError> {
    match fields.opt::<u32>("best_of")? {
        Some(best_of) if best_of != common.n => Err(ApiError::invalid(
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
#[derive(Deserialize)]
#[serde(untagged)]
enum Element {
    Text(String),
    Token(u32),
    Tokens(Vec<u32>),
}

impl<'de> Deserialize<'de> for Prompts {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(PromptsVisitor)
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
        let mixed =
            || A::Error::custom("a list of prompts must hold one kind: all strings, or all token ids");
        let mut prompts = Vec::new();
        let mut tokens = Vec::new();
        while let Some(element) = list.next_element()? {
            match element {
                Element::Token(token) => tokens.push(token),
                Element::Text(text) => prompts.push(Prompt::Text(text)),
                Element::Tokens(tokens) => prompts.push(Prompt::Tokens(tokens)),
            }
        }
        let texts = prompts
            .iter()
            .filter(|prompt| matches!(prompt, Prompt::Text(_)))
            .count();
        match (prompts.is_empty(), tokens.is_empty()) {
            (true, false) => Ok(Prompts(vec![Prompt::Tokens(tokens)])),
            (false, false) => Err(mixed()),
            (_, true) if texts == 0 || texts == prompts.len() => Ok(Prompts(prompts)),
            (_, true) => Err(mixed()),
        }
    }
}
