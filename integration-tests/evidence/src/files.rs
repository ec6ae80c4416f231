//! What is kept, and where.

use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use crate::page::page;
use crate::parts::{self, Part};

/// Where the repository is.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file that cannot be read, understood or written.
#[derive(Debug)]
pub struct Error {
    /// Which.
    pub path: PathBuf,
    /// Why.
    pub why: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.why)
    }
}

impl std::error::Error for Error {}

impl Error {
    pub(crate) fn new(path: &Path, why: &impl ToString) -> Self {
        Self {
            path: path.to_owned(),
            why: why.to_string(),
        }
    }
}

/// Keeps what was recorded below the target folder, each part in place of what was kept of it before, and makes the page.
///
/// # Errors
/// If a file cannot be read, understood or written.
pub fn make(target: &Path) -> Result<(), Error> {
    let docs = root().join("docs");
    let kept = docs.join("evidence");
    fs::create_dir_all(&kept).map_err(|error| Error::new(&kept, &error))?;
    parts::keep_all(target, &kept)?;
    write(&docs.join("evidence.md"), &page(&kept)?)
}

/// The text of a file, if there is one.
pub(crate) fn read(path: &Path) -> Result<Option<String>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::new(path, &error)),
    }
}

/// Writes a file.
///
/// # Errors
/// If it cannot be written.
pub fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(|error| Error::new(path, &error))
}

/// What is kept of a part, if anything is.
pub(crate) fn kept<P: Part>(folder: &Path) -> Result<Option<P>, Error> {
    let path = folder.join(P::KEPT);
    let Some(text) = read(&path)? else { return Ok(None) };
    let part = serde_json::from_str(&text).map_err(|error| Error::new(&path, &error))?;
    Ok(Some(part))
}

/// Keeps what was recorded of a part below the target folder, if anything was.
pub(crate) fn keep<P: Part>(target: &Path, folder: &Path) -> Result<(), Error> {
    let Some(part) = P::recorded(target)? else {
        return Ok(());
    };
    let path = folder.join(P::KEPT);
    let text = serde_json::to_string_pretty(&part).map_err(|error| Error::new(&path, &error))?;
    write(&path, &(text + "\n"))
}
