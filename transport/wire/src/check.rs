//! What the checks of content are made of.

use std::net::SocketAddr;

use crate::error::Invalid;
use crate::limits::{MAX_LISTENER_BYTES, MAX_NODE_BYTES};

/// Whether a value is within the bounds of [`limits`](crate::limits).
pub(crate) trait Check {
    /// The first thing that is wrong.
    fn check(&self) -> Result<(), Invalid>;
}

impl<T: Check> Check for [T] {
    fn check(&self) -> Result<(), Invalid> {
        self.iter().try_for_each(Check::check)
    }
}

impl<T: Check> Check for Option<T> {
    fn check(&self) -> Result<(), Invalid> {
        self.iter().try_for_each(Check::check)
    }
}

/// A list or text of at most `limit` entries or bytes.
pub(crate) fn at_most(field: &'static str, len: usize, limit: usize) -> Result<(), Invalid> {
    if len > limit {
        Err(Invalid::TooLong { field, len, limit })
    } else {
        Ok(())
    }
}

/// A list or text of 1 to `limit` entries or bytes.
pub(crate) fn some_at_most(field: &'static str, len: usize, limit: usize) -> Result<(), Invalid> {
    if len == 0 {
        Err(Invalid::Empty { field })
    } else {
        at_most(field, len, limit)
    }
}

/// A text of at most `limit` bytes on one line: it is shown in logs and labels, and must not look like something else there.
pub(crate) fn text(field: &'static str, text: &str, limit: usize) -> Result<(), Invalid> {
    at_most(field, text.len(), limit)?;
    characters(field, text, "without control characters", |c| !c.is_control())
}

/// A node's name: it is part of a DNS name in the node's certificate.
pub(crate) fn name(field: &'static str, name: &str) -> Result<(), Invalid> {
    some_at_most(field, name.len(), MAX_NODE_BYTES)?;
    let want = "ASCII letters, digits, `-`, `_` and `.`";
    characters(field, name, want, |c| {
        c.is_ascii_alphanumeric() || "-_.".contains(c)
    })
}

/// Where a listener is. It becomes part of what people are told to open.
pub(crate) fn listener(field: &'static str, address: &str) -> Result<(), Invalid> {
    at_most(field, address.len(), MAX_LISTENER_BYTES)?;
    match address.parse::<SocketAddr>() {
        Ok(_) => Ok(()),
        Err(_) => Err(Invalid::Text {
            field,
            text: address.to_owned(),
            want: "an address and a port",
        }),
    }
}

fn characters(
    field: &'static str,
    text: &str,
    want: &'static str,
    allowed: impl Fn(char) -> bool,
) -> Result<(), Invalid> {
    if text.chars().all(allowed) {
        Ok(())
    } else {
        let text = text.to_owned();
        Err(Invalid::Text { field, text, want })
    }
}

/// A number for which `holds` is true.
pub(crate) fn number(
    field: &'static str,
    value: impl ToString + Copy,
    holds: bool,
    want: &'static str,
) -> Result<(), Invalid> {
    if holds {
        Ok(())
    } else {
        Err(Invalid::OutOfRange {
            field,
            value: value.to_string(),
            want,
        })
    }
}
