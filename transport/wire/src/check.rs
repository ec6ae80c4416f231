//! What the checks of content are made of.

use crate::error::Invalid;

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
