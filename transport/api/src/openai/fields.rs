//! The fields of a JSON request, taken one by one by name; what nobody took is unknown, and refused by name.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::error::ApiError;
use crate::limits::Limits;

/// Reads a whole JSON body within the limits of size and of time.
pub(crate) async fn read_body(
    headers: &HeaderMap,
    body: axum::body::Body,
    limits: &Limits,
) -> Result<Bytes, ApiError> {
    check_content_type(headers)?;
    let reading = Limited::new(body, limits.body_bytes).collect();
    match tokio::time::timeout(limits.body_read_timeout, reading).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "invalid_request_error",
            Some("request_too_large"),
            format!("the request's body is larger than {} bytes", limits.body_bytes),
        )),
        Ok(Err(error)) => Err(ApiError::bad_request(format!(
            "the request's body broke off: {error}"
        ))),
        Err(_) => Err(ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            "timeout_error",
            Some("body_timeout"),
            format!(
                "the request's body did not arrive within {} s",
                limits.body_read_timeout.as_secs()
            ),
        )),
    }
}

fn check_content_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let given = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    let essence = given.split(';').next().unwrap_or("").trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    // A form's type is what a web page may send to any address without asking: refusing it keeps pages out.
    Err(ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "invalid_request_error",
        Some("unsupported_media_type"),
        format!("the content type is `{given}`: send JSON with `Content-Type: application/json`"),
    ))
}

/// The top-level fields of a request that have not been looked at yet.
pub(crate) struct Fields<'a> {
    left: BTreeMap<String, &'a RawValue>,
}

impl<'a> Fields<'a> {
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, ApiError> {
        let left = serde_json::from_slice(body)
            .map_err(|error| ApiError::bad_request(format!("the body is not a JSON object: {error}")))?;
        Ok(Self { left })
    }

    /// Takes a field; absent and `null` are the same.
    pub(crate) fn opt<T: Deserialize<'a>>(&mut self, name: &str) -> Result<Option<T>, ApiError> {
        let Some(raw) = self
            .left
            .remove(name)
            .map(RawValue::get)
            .filter(|raw| *raw != "null")
        else {
            return Ok(None);
        };
        let mut json = serde_json::Deserializer::from_str(raw);
        serde_path_to_error::deserialize(&mut json)
            .map(Some)
            .map_err(|error| {
                let path = error.path().to_string();
                let param = match path.as_str() {
                    "." => name.to_owned(),
                    inner if inner.starts_with('[') => format!("{name}{inner}"),
                    inner => format!("{name}.{inner}"),
                };
                let message = format!("`{param}` is wrong: {}", plain(&error.into_inner()));
                ApiError::invalid(param, message)
            })
    }

    /// Takes a field that must be there.
    pub(crate) fn required<T: Deserialize<'a>>(&mut self, name: &str) -> Result<T, ApiError> {
        self.opt(name)?
            .ok_or_else(|| ApiError::invalid(name, format!("`{name}` is missing: it is required")))
    }

    /// Takes a whole number within a range.
    pub(crate) fn whole(&mut self, name: &str, range: RangeInclusive<i64>) -> Result<Option<i64>, ApiError> {
        let value = self.opt::<i64>(name)?;
        match value {
            Some(value) if !range.contains(&value) => Err(out_of_range(name, &value, &range)),
            value => Ok(value),
        }
    }

    /// Takes a number within a range.
    pub(crate) fn number(&mut self, name: &str, range: RangeInclusive<f32>) -> Result<Option<f32>, ApiError> {
        let value = self.opt::<f32>(name)?;
        match value {
            Some(value) if !range.contains(&value) => Err(out_of_range(name, &value, &range)),
            value => Ok(value),
        }
    }

    /// Takes fields that change nothing about the answer, whatever they hold.
    pub(crate) fn ignore(&mut self, names: &[&str]) {
        for name in names {
            self.left.remove(*name);
        }
    }

    /// Takes a field that would change the answer and is not served: only its empty values are let through.
    pub(crate) fn absent(&mut self, name: &str, harmless: &[&str], why: &str) -> Result<(), ApiError> {
        let raw = self.left.get(name).map_or("null", |raw| raw.get());
        let squeezed: String = raw.chars().filter(|c| !c.is_whitespace()).collect();
        if NOTHING.contains(&squeezed.as_str()) || harmless.contains(&squeezed.as_str()) {
            self.left.remove(name);
            return Ok(());
        }
        Err(ApiError::invalid(
            name,
            format!("`{name}` is not supported: {why}"),
        ))
    }

    /// Refuses what is left.
    pub(crate) fn finish(self) -> Result<(), ApiError> {
        match self.left.into_keys().next() {
            None => Ok(()),
            Some(name) => {
                let message = format!("`{name}` is not a field of this request: leave it out");
                Err(ApiError {
                    code: Some("unknown_parameter"),
                    ..ApiError::invalid(name, message)
                })
            }
        }
    }
}

/// JSON that asks for nothing.
const NOTHING: [&str; 5] = ["null", "[]", "{}", "false", "\"\""];

fn out_of_range<T: fmt::Display>(name: &str, value: &T, range: &RangeInclusive<T>) -> ApiError {
    let message = format!(
        "`{name}` is {value}: it must be from {} to {}",
        range.start(),
        range.end()
    );
    ApiError::invalid(name, message)
}

/// The error without its position, which would be relative to the field.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

/// A nested field that would change the answer and is not served: `null` or empty, or an error.
#[derive(Debug, Default)]
pub(crate) struct Nothing;

impl<'de> Deserialize<'de> for Nothing {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Nothing {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("null, because this is not supported")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self, A::Error> {
        match seq.next_element::<serde::de::IgnoredAny>()? {
            None => Ok(self),
            Some(_) => Err(serde::de::Error::invalid_type(serde::de::Unexpected::Seq, &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        match map.next_key::<serde::de::IgnoredAny>()? {
            None => Ok(self),
            Some(_) => Err(serde::de::Error::invalid_type(serde::de::Unexpected::Map, &self)),
        }
    }
}
