//! Metadata values.

/// A metadata value; the widths of numbers are not kept.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Any unsigned integer.
    Unsigned(u64),
    /// Any signed integer.
    Signed(i64),
    /// `f32` or `f64`.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// UTF-8 text.
    Text(String),
    /// Values of one type.
    Array(Vec<Value>),
}

impl Value {
    /// What it is, for errors.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unsigned(_) => "an unsigned number",
            Self::Signed(_) => "a signed number",
            Self::Float(_) => "a floating-point number",
            Self::Bool(_) => "a truth value",
            Self::Text(_) => "a text",
            Self::Array(_) => "an array",
        }
    }

    /// The number, if it is an integer that is not negative.
    #[must_use]
    pub fn as_unsigned(&self) -> Option<u64> {
        match *self {
            Self::Unsigned(n) => Some(n),
            Self::Signed(n) => u64::try_from(n).ok(),
            _ => None,
        }
    }

    /// The number, if it is floating-point.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        reason = "model files store f32; a wider number is rounded"
    )]
    pub fn as_float(&self) -> Option<f32> {
        match *self {
            Self::Float(x) => Some(x as f32),
            _ => None,
        }
    }

    /// The truth value.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match *self {
            Self::Bool(b) => Some(b),
            _ => None,
        }
    }

    /// The text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(s) => Some(s),
            _ => None,
        }
    }

    /// The elements.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(v) => Some(v),
            _ => None,
        }
    }
}
