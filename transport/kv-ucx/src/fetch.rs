//! UCX from PyPI, for machines that have none: the wheel `libucx-cu12`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use pypi::{Options, Package, PypiError, Unpacked};

const FOLDER: &str = "ucx-1.22.0";
const WHEEL: Package<'_> = Package {
    requirement: "libucx-cu12==1.22.0",
    wheel_bytes: 43_362_786,
};
#[cfg(target_arch = "x86_64")]
const WHEEL_SHA256: Option<&str> = Some("5cbbef0c140a0a158ae3486089af659b38822b2234cd3dc90ba40a5e6553402a");
#[cfg(not(target_arch = "x86_64"))]
const WHEEL_SHA256: Option<&str> = None;

/// Why the wheel could not be had.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// No wheel is pinned for this processor.
    #[error("no UCX wheel is known for this processor; install UCX 1.13 or later")]
    Unsupported,
    /// It could not be fetched.
    #[error(transparent)]
    Package(#[from] PypiError),
    /// The file is not the one expected.
    #[error("the wheel's SHA-256 is {got}, must be {want}")]
    Checksum {
        /// Of the file that came.
        got: String,
        /// Of the pinned file.
        want: &'static str,
    },
    /// The wheel does not hold what it should.
    #[error("the wheel has no libucx/lib/libucp.so.0")]
    Empty,
    /// The cache cannot be written.
    #[error("cannot write the cache: {0}")]
    Io(#[from] io::Error),
}

fn library_in(folder: &Path) -> PathBuf {
    folder.join("libucx/lib/libucp.so.0")
}

/// The library that [`fetch_wheel`] has put below `cache`, if it has.
pub fn cached_library(cache: &Path) -> Option<PathBuf> {
    let library = library_in(&cache.join(FOLDER));
    library.is_file().then_some(library)
}

/// Fetches the pinned wheel with pip, checks it, and unpacks it below `cache`, all or nothing. Returns the path of
/// `libucp`; at once if it is there already. Of several processes that want it one fetches it, and the others wait.
/// `progress` is told (bytes so far, bytes in all).
pub fn fetch_wheel(cache: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<PathBuf, FetchError> {
    let want = WHEEL_SHA256.ok_or(FetchError::Unsupported)?;
    let here = || cached_library(cache);
    pypi::fetch(
        WHEEL,
        (cache, "ucx"),
        &Options::default(),
        progress,
        here,
        |unpacked| {
            let got = pypi::sha256(&unpacked.wheel)?;
            if got != want {
                return Err(FetchError::Checksum { got, want });
            }
            keep(unpacked, &cache.join(FOLDER))
        },
    )
}

/// Moves UCX to its place, without what only a build needs.
fn keep(unpacked: &Unpacked, target: &Path) -> Result<PathBuf, FetchError> {
    if !library_in(&unpacked.folder).is_file() {
        return Err(FetchError::Empty);
    }
    let ucx = unpacked.folder.join("libucx");
    for folder in ["lib", "lib/ucx"] {
        for entry in fs::read_dir(ucx.join(folder))?.flatten() {
            if entry.path().extension().is_some_and(|e| e == "a" || e == "la") {
                fs::remove_file(entry.path())?;
            }
        }
    }
    // What a wheel does not bring cannot be removed.
    let _ = fs::remove_dir_all(ucx.join("bin"));
    let whole = unpacked.folder.join("whole");
    fs::create_dir(&whole)?;
    fs::rename(ucx, whole.join("libucx"))?;
    // What is there without a library is of no use.
    let _ = fs::remove_dir_all(target);
    fs::rename(whole, target)?;
    Ok(library_in(target))
}
