//! Finding and loading `libucp` at run time: one binary serves machines with and without UCX.

#![allow(unsafe_code)]

use std::{
    ffi::{CStr, OsStr},
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::sys::{Functions, Status};

const SONAME: &str = "libucp.so.0";
/// The oldest UCX whose interface this crate knows.
const OLDEST: (u32, u32) = (1, 13);

/// A loaded UCX library. Cloning shares it; it is never unloaded.
#[derive(Clone)]
pub struct Ucx {
    functions: Arc<Functions>,
    version: (u32, u32, u32),
    path: PathBuf,
}

/// Why UCX cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No place had a library that loads.
    #[error("no UCX: {}", tried.join("; "))]
    NotFound {
        /// Each place tried with what the loader said.
        tried: Vec<String>,
    },
    /// A library was found that lacks a function.
    #[error("{path} is no usable UCX: {why}", path = path.display())]
    Unusable {
        /// The library.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// The library is too old.
    #[error("{path} is UCX {major}.{minor}; 1.13 or later is needed", path = path.display())]
    TooOld {
        /// The library.
        path: PathBuf,
        /// Its major version.
        major: u32,
        /// Its minor version.
        minor: u32,
    },
}

impl Ucx {
    /// Loads UCX from `path` if given, else from the loader's own search, else from the library that
    /// [`crate::fetch_wheel`] has put below `cache`.
    ///
    /// Call it early, before other threads read the environment from C: it sets, where unset, the variables that
    /// keep UCX from installing signal handlers, which it reads while it is being loaded.
    pub fn load(path: Option<&Path>, cache: Option<&Path>) -> Result<Self, LoadError> {
        quiet_environment();
        let mut tried = Vec::new();
        let candidates = match path {
            Some(path) => vec![path.to_owned()],
            None => [PathBuf::from(SONAME)]
                .into_iter()
                .chain(cache.and_then(crate::cached_library))
                .collect(),
        };
        for candidate in candidates {
            match open(&candidate) {
                Ok(library) => return Self::from_library(library, &candidate),
                Err(why) => tried.push(format!("{}: {why}", candidate.display())),
            }
        }
        Err(LoadError::NotFound { tried })
    }

    fn from_library(library: Library, path: &Path) -> Result<Self, LoadError> {
        let unusable = |why: String| LoadError::Unusable {
            path: path.to_owned(),
            why,
        };
        // SAFETY: the library was found under libucp's name or named by the user as libucp.
        let functions = unsafe { Functions::resolve(library.into()) }.map_err(|e| unusable(e.to_string()))?;
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        // SAFETY: three valid out-pointers.
        unsafe { (functions.ucp_get_version)(&raw mut major, &raw mut minor, &raw mut patch) };
        if (major, minor) < OLDEST || major != OLDEST.0 {
            return Err(LoadError::TooOld {
                path: path.to_owned(),
                major,
                minor,
            });
        }
        let functions = Arc::new(functions);
        Ok(Self {
            functions,
            version: (major, minor, patch),
            path: path.to_owned(),
        })
    }

    /// Version, as "1.22.0".
    pub fn version(&self) -> String {
        let (major, minor, patch) = self.version;
        format!("{major}.{minor}.{patch}")
    }

    /// Where it came from: a path, or the bare name if the loader found it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn functions(&self) -> &Functions {
        &self.functions
    }

    /// UCX's words for a status.
    pub(crate) fn describe(&self, status: Status) -> String {
        // SAFETY: takes any status and returns a static string or one per thread; copied at once.
        let text = unsafe { (self.functions.ucs_status_string)(status) };
        if text.is_null() {
            return format!("UCX status {}", status.0);
        }
        // SAFETY: not null, and a C string by the interface.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

impl fmt::Debug for Ucx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UCX {} ({})", self.version(), self.path.display())
    }
}

fn open(path: &Path) -> Result<Library, libloading::Error> {
    // SAFETY: loading runs UCX's initialisers, which with `quiet_environment` only read the environment.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
}

/// UCX must neither catch this process's signals, nor warn about variables of other programs, nor print what is told
/// as an error of the API.
fn quiet_environment() {
    let defaults = [
        ("UCX_ERROR_SIGNALS", ""),
        ("UCX_HANDLE_ERRORS", "none"),
        ("UCX_WARN_UNUSED_ENV_VARS", "n"),
        ("UCX_LOG_LEVEL", "fatal"),
    ];
    for (name, value) in defaults {
        if std::env::var_os(OsStr::new(name)).is_none() {
            // SAFETY: Rust's readers are locked out; C readers are the caller's matter, as `load` documents.
            unsafe { std::env::set_var(name, value) };
        }
    }
}
