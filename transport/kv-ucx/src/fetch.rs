//! UCX from PyPI, for machines that have none: the wheel `libucx-cu12`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use pypi::{Options, Package, PypiError};

const FOLDER: &str = "ucx-1.22.0";
/// None where no wheel is pinned for the processor.
const WHEEL: Option<Package<'_>> = if cfg!(target_arch = "x86_64") {
    Some(Package {
        requirement: "libucx-cu12==1.22.0",
        wheel_bytes: 43_362_786,
        wheel_sha256: "5cbbef0c140a0a158ae3486089af659b38822b2234cd3dc90ba40a5e6553402a",
    })
} else {
    None
};

/// Why the wheel could not be had.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// No wheel is pinned for this processor.
    #[error("no UCX wheel is known for this processor; install UCX 1.13 or later")]
    Unsupported,
    /// It could not be fetched.
    #[error(transparent)]
    Package(#[from] PypiError),
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
    match (cached_library(cache), WHEEL) {
        (Some(library), _) => Ok(library),
        (None, Some(wheel)) => fetch(wheel, cache, &Options::default(), progress),
        (None, None) => Err(FetchError::Unsupported),
    }
}

fn fetch(
    wheel: Package<'_>,
    cache: &Path,
    options: &Options,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<PathBuf, FetchError> {
    let here = || cached_library(cache);
    pypi::fetch(wheel, (cache, "ucx"), options, progress, here, |unpacked| {
        keep(unpacked, &cache.join(FOLDER))
    })
}

/// Moves UCX to its place, without what only a build needs.
fn keep(unpacked: &Path, target: &Path) -> Result<PathBuf, FetchError> {
    if !library_in(unpacked).is_file() {
        return Err(FetchError::Empty);
    }
    for folder in ["libucx/lib", "libucx/lib/ucx"] {
        for entry in fs::read_dir(unpacked.join(folder))?.flatten() {
            if entry.path().extension().is_some_and(|e| e == "a" || e == "la") {
                fs::remove_file(entry.path())?;
            }
        }
    }
    // What a wheel does not bring cannot be removed.
    let _ = fs::remove_dir_all(unpacked.join("libucx/bin"));
    // What is there without a library is of no use.
    let _ = fs::remove_dir_all(target);
    fs::rename(unpacked, target)?;
    Ok(library_in(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fetches with a stand-in for Python, which "unpacks" so: it makes these files.
    fn check(files: &str, then: impl FnOnce(&Path, Result<PathBuf, FetchError>)) {
        let dir = tempfile::tempdir().unwrap();
        let script = format!(
            "#!/bin/sh\ncase $2 in\npip) printf weights > ucx.whl ;;\nzipfile) mkdir -p libucx/lib/ucx libucx/bin && touch {files} ;;\nesac\n"
        );
        let options = Options {
            python: pypi::testing::python(dir.path(), &script),
            ..Options::default()
        };
        let wheel = Package {
            requirement: "ucx==1",
            wheel_bytes: 7,
            wheel_sha256: pypi::testing::WEIGHTS_SHA256,
        };
        let cache = dir.path().join("cache");
        then(&cache, fetch(wheel, &cache, &options, &mut |_, _| ()));
    }

    #[test]
    fn the_libraries_are_kept_and_what_a_build_needs_is_not() {
        let files = "libucx/lib/libucp.so.0 libucx/lib/libucp.a libucx/lib/ucx/libuct.so libucx/lib/ucx/libuct.la libucx/bin/ucx_info";
        check(files, |cache, fetched| {
            let library = fetched.unwrap();
            assert_eq!(cached_library(cache), Some(library));
            let ucx = cache.join(FOLDER).join("libucx");
            for (file, kept) in [
                ("lib/libucp.so.0", true),
                ("lib/libucp.a", false),
                ("lib/ucx/libuct.so", true),
                ("lib/ucx/libuct.la", false),
                ("bin", false),
            ] {
                assert_eq!(ucx.join(file).exists(), kept, "{file}");
            }
        });
    }

    #[test]
    fn a_wheel_without_the_library_is_not_kept() {
        check("libucx/lib/other.so", |cache, fetched| {
            assert!(matches!(fetched, Err(FetchError::Empty)), "{fetched:?}");
            assert!(cached_library(cache).is_none() && !cache.join(FOLDER).exists());
        });
    }
}
