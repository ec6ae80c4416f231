//! What the template engine would make as large as a number in a template says: bounded here. An allocation that fails ends the
//! process, so it must not be tried.

use minijinja::value::{Kwargs, Rest, StringInput};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters};
use minijinja_contrib::pycompat;

/// Most lists, items, spaces or digits that one filter makes because a number says so.
const MOST: usize = 9_999;
/// The digits of [`MOST`].
const DIGITS: usize = 4;

/// Puts bounded ones in the place of the engine's filters and methods.
pub(super) fn register(environment: &mut Environment<'_>) {
    environment.add_filter(
        "slice",
        |state: &State<'_, '_>, value: Value, count: usize, fill: Option<Value>| {
            few(count)?;
            filters::slice(state, value, count, fill)
        },
    );
    environment.add_filter(
        "batch",
        |state: &State<'_, '_>, value: Value, count: usize, fill: Option<Value>| {
            few(count)?;
            filters::batch(state, value, count, fill)
        },
    );
    environment.add_filter("indent", indent);
    environment.add_filter(
        "format",
        |state: &State<'_, '_>, text: &Value, values: Rest<Value>| {
            narrow(text)?;
            filters::format(state, text, values)
        },
    );
    environment.set_unknown_method_callback(|state, value, method, arguments| {
        if method == "format" {
            narrow(value)?;
        }
        pycompat::unknown_method_callback(state, value, method, arguments)
    });
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "the template engine's calling convention"
)]
fn indent(
    text: StringInput<'_>,
    width: Option<usize>,
    first: Option<bool>,
    blank: Option<bool>,
    options: Kwargs,
) -> Result<Value, Error> {
    let named = options.peek::<Option<usize>>("width").ok().flatten();
    few(width.or(named).unwrap_or(0))?;
    filters::indent(text, width, first, blank, options)
}

fn few(n: usize) -> Result<(), Error> {
    if n <= MOST {
        return Ok(());
    }
    let what = format!("{n} of something, more than the {MOST} allowed");
    Err(Error::new(ErrorKind::InvalidOperation, what))
}

/// Widths and precisions in a format are numbers of few digits.
fn narrow(format: &Value) -> Result<(), Error> {
    let text = format.as_str().unwrap_or_default();
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    if numbers.all(|number| number.len() <= DIGITS) {
        return Ok(());
    }
    let what = format!("a format with a number of more than {DIGITS} digits");
    Err(Error::new(ErrorKind::InvalidOperation, what))
}
