//! The fields of a JSON request, taken one by one by name; what nobody took is unknown, and refused by name.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_json::value::RawValue;

use super::error::ApiError;

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
        let Some(number) = self.opt::<Number>(name)? else {
            return Ok(None);
        };
        match whole(&number).filter(|value| range.contains(value)) {
            Some(value) => Ok(Some(value)),
            None => Err(wrong_number(name, &number, "a whole number ", &range)),
        }
    }

    /// Takes a number within a range.
    pub(crate) fn number(&mut self, name: &str, range: RangeInclusive<f32>) -> Result<Option<f32>, ApiError> {
        let Some(number) = self.opt::<Number>(name)? else {
            return Ok(None);
        };
        // To the nearest: beyond the range of the type it is infinite, and refused.
        #[allow(clippy::cast_possible_truncation)]
        let value = number.as_f64().map(|value| value as f32);
        match value.filter(|value| range.contains(value)) {
            Some(value) => Ok(Some(value)),
            None => Err(wrong_number(name, &number, "", &range)),
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

/// The number, where it is a whole one: some clients write every number with a point.
fn whole(number: &Number) -> Option<i64> {
    // Up to here a float tells every whole number from the next.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[allow(clippy::cast_possible_truncation)]
    let rounded = |value: f64| (value.fract() == 0.0 && value.abs() <= EXACT).then_some(value as i64);
    number.as_i64().or_else(|| number.as_f64().and_then(rounded))
}

/// Says the number as the client wrote it.
fn wrong_number<T: fmt::Display>(
    name: &str,
    number: &Number,
    kind: &str,
    range: &RangeInclusive<T>,
) -> ApiError {
    let message = format!(
        "`{name}` is {number}: it must be {kind}from {} to {}",
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
