//! Standard output, whose reader may leave: `innkeeper rooms | head`.

use std::io::{self, ErrorKind, Write};

/// Writes text to standard output, at once.
///
/// # Errors
/// As the system says; see [`reader_left`].
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Whether the error is only that nobody reads any more, which is no failure.
pub(crate) fn reader_left(error: &anyhow::Error) -> bool {
    let io_error = error.downcast_ref::<io::Error>();
    io_error.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}
