//! The fields that chat completions and completions share, checked against their ranges.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Number;

use super::error::ApiError;
use super::fields::Fields;
use crate::limits::Limits;
use crate::submit::{GenerateRequest, Prompt, Sampling};

/// The longest name of a model, and the longest stop string, in bytes.
const NAME_BYTES: usize = 1024;

/// Accepted and without effect here: names, billing, caching hints.
const HARMLESS: [&str; 7] = [
    "user",
    "metadata",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prediction",
];

/// What both kinds of request say besides their prompt.
#[derive(Debug, Clone)]
pub(crate) struct Common {
    pub(crate) model: String,
    pub(crate) n: u32,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    pub(crate) timeout: Duration,
    pub(crate) max_tokens: Option<u32>,
    sampling: Sampling,
    stop: Vec<String>,
    ignore_eos: bool,
}

/// Who is asking: what the headers say.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) request_id: String,
    pub(crate) traceparent: Option<String>,
    pub(crate) received: Instant,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct StreamOptions {
    include_usage: Option<bool>,
    // Padding against eavesdroppers who measure chunks: has no effect on the text.
    #[serde(rename = "include_obfuscation")]
    _include_obfuscation: Option<bool>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string or a list of strings")]
enum Stop {
    One(String),
    Many(Vec<String>),
}

impl Common {
    pub(crate) fn take(fields: &mut Fields<'_>, limits: &Limits) -> Result<Self, ApiError> {
        let model: String = fields.required("model")?;
        if model.is_empty() || model.len() > NAME_BYTES {
            return Err(ApiError::invalid("model", "`model` must be the name of a model"));
        }
        fields.ignore(&HARMLESS);
        fields.absent(
            "store",
            &[],
            "answers are not stored here: leave it out or set it to false",
        )?;
        fields.absent("logit_bias", &[], "leave it out")?;
        let stream = fields.opt("stream")?.unwrap_or(false);
        Ok(Self {
            model,
            n: to_u32(fields.whole("n", 1..=i64::from(limits.choices))?).unwrap_or(1),
            stream,
            include_usage: include_usage(fields, stream)?,
            timeout: timeout(fields, limits)?,
            max_tokens: max_tokens(fields)?,
            sampling: sampling(fields)?,
            stop: stop(fields, limits)?,
            ignore_eos: fields.opt("ignore_eos")?.unwrap_or(false),
        })
    }

    /// The request for one prompt.
    pub(crate) fn request(&self, caller: &Caller, prompt: Prompt, logprobs: Option<u8>) -> GenerateRequest {
        GenerateRequest {
            request_id: caller.request_id.clone(),
            model: self.model.clone(),
            prompt,
            n: self.n,
            max_tokens: self.max_tokens,
            sampling: self.sampling.clone(),
            stop: self.stop.clone(),
            logprobs,
            ignore_eos: self.ignore_eos,
            timeout: self.timeout,
            traceparent: caller.traceparent.clone(),
            received: caller.received,
        }
    }
}

/// For numbers whose range has been checked already.
pub(crate) fn to_u32(value: Option<i64>) -> Option<u32> {
    value.and_then(|value| u32::try_from(value).ok())
}

fn include_usage(fields: &mut Fields<'_>, stream: bool) -> Result<bool, ApiError> {
    match fields.opt::<StreamOptions>("stream_options")? {
        Some(_) if !stream => Err(ApiError::invalid(
            "stream_options",
            "`stream_options` is only for requests with `stream: true`",
        )),
        options => Ok(options.unwrap_or_default().include_usage.unwrap_or(false)),
    }
}

fn timeout(fields: &mut Fields<'_>, limits: &Limits) -> Result<Duration, ApiError> {
    let Some(seconds) = fields.opt::<Number>("timeout")? else {
        return Ok(limits.default_timeout);
    };
    match Duration::try_from_secs_f64(seconds.as_f64().unwrap_or(f64::INFINITY)) {
        Ok(timeout) if !timeout.is_zero() && timeout <= limits.max_timeout => Ok(timeout),
        _ => {
            let max_s = limits.max_timeout.as_secs_f64();
            let message = format!("`timeout` is {seconds}: it must be seconds, above 0 and at most {max_s}");
            Err(ApiError::invalid("timeout", message))
        }
    }
}

fn max_tokens(fields: &mut Fields<'_>) -> Result<Option<u32>, ApiError> {
    let range = 1..=i64::from(u32::MAX);
    let old = to_u32(fields.whole("max_tokens", range.clone())?);
    let new = to_u32(fields.whole("max_completion_tokens", range)?);
    match (old, new) {
        (Some(old), Some(new)) if old != new => Err(ApiError::invalid(
            "max_tokens",
            format!("`max_tokens` is {old} and `max_completion_tokens` is {new}: give one of them"),
        )),
        (old, new) => Ok(new.or(old)),
    }
}

fn sampling(fields: &mut Fields<'_>) -> Result<Sampling, ApiError> {
    let top_p = fields.number("top_p", 0.0..=1.0)?;
    if top_p == Some(0.0) {
        return Err(ApiError::invalid(
            "top_p",
            "`top_p` is 0: it must be above 0 and at most 1",
        ));
    }
    // -1 is how vLLM spells "all", 0 how llama.cpp does.
    let top_k = fields.whole("top_k", -1..=i64::from(u32::MAX))?.map(|k| k.max(0));
    Ok(Sampling {
        temperature: fields.number("temperature", 0.0..=2.0)?,
        top_p,
        top_k: to_u32(top_k),
        min_p: fields.number("min_p", 0.0..=1.0)?,
        seed: seed(fields)?,
        presence_penalty: fields.number("presence_penalty", -2.0..=2.0)?.unwrap_or(0.0),
        frequency_penalty: fields.number("frequency_penalty", -2.0..=2.0)?.unwrap_or(0.0),
    })
}

fn seed(fields: &mut Fields<'_>) -> Result<Option<u64>, ApiError> {
    let Some(number) = fields.opt::<Number>("seed")? else {
        return Ok(None);
    };
    let seed = number
        .as_u64()
        .or_else(|| number.as_i64().map(i64::cast_unsigned));
    seed.map(Some).ok_or_else(|| {
        ApiError::invalid(
            "seed",
            format!("`seed` is {number}: it must be a whole number of at most 64 bits"),
        )
    })
}

fn stop(fields: &mut Fields<'_>, limits: &Limits) -> Result<Vec<String>, ApiError> {
    let (stop, listed) = match fields.opt::<Stop>("stop")? {
        None => (Vec::new(), false),
        Some(Stop::One(one)) => (vec![one], false),
        Some(Stop::Many(many)) => (many, true),
    };
    if stop.len() > limits.stop_strings {
        let message = format!(
            "`stop` has {} strings: it may have at most {}",
            stop.len(),
            limits.stop_strings
        );
        return Err(ApiError::invalid("stop", message));
    }
    let wrong = |one: &String| one.is_empty() || one.len() > NAME_BYTES;
    match stop.iter().position(wrong) {
        None => Ok(stop),
        Some(at) => Err(ApiError::invalid(
            if listed {
                format!("stop[{at}]")
            } else {
                "stop".to_owned()
            },
            format!("a stop string must have from 1 to {NAME_BYTES} bytes"),
        )),
    }
}
