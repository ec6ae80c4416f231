//! What a cluster needs before it can start: the program, and a cache with the model and UCX in it.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use kv_ucx::Ucx;
use model::{FetchOptions, ModelSource};

/// The folder of this build: of this program, or one above that of the tests.
fn profile() -> PathBuf {
    let own = std::env::current_exe().expect("this program has a file");
    let folder = own.parent().expect("target/PROFILE, or deps in it");
    let of_tests = folder.file_name().is_some_and(|name| name == "deps");
    let profile = if of_tests { folder.parent() } else { Some(folder) };
    profile.expect("target/PROFILE").to_owned()
}

/// Cargo's target folder.
///
/// # Panics
/// If this program is not in it.
#[must_use]
pub fn target() -> PathBuf {
    profile().parent().expect("target").to_owned()
}

/// The program.
///
/// # Panics
/// If it has not been built.
pub(crate) fn program() -> PathBuf {
    let program = profile().join(format!("innkeeper{}", std::env::consts::EXE_SUFFIX));
    assert!(
        program.is_file(),
        "{} is not built: run `cargo test --workspace`, or `cargo test -p innkeeper -p innkeeper-integration-tests --test it`",
        program.display()
    );
    program
}

/// What the program says when it is run with these arguments, and whether it succeeds: for commands that end by themselves.
///
/// # Panics
/// If it cannot be run.
#[must_use]
pub fn innkeeper(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(program()).args(arguments).output();
    let output = output.expect("the program can be run");
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

/// The user's cache, with model and UCX in it: fetched once for all clusters, which might else all fetch them at a time.
fn shared_cache() -> &'static Path {
    static CACHE: OnceLock<PathBuf> = OnceLock::new();
    CACHE.get_or_init(|| {
        let cache = dirs::cache_dir().expect("a cache folder").join("innkeeper");
        model_in(&cache);
        let ucx = cache.join("ucx");
        if Ucx::load(None, Some(&ucx)).is_err() {
            kv_ucx::fetch_wheel(&ucx, &mut |_, _| ()).expect("UCX is here or can be fetched");
        }
        cache
    })
}

fn model_in(cache: &Path) -> PathBuf {
    let options = FetchOptions::new(cache.join("models"));
    let file = model::fetch(&ModelSource::Default, &options, &mut |_| ());
    file.expect("the model can be fetched")
}

/// Where the program finds UCX if the machine has none.
pub(crate) fn ucx_cache() -> PathBuf {
    shared_cache().join("ucx")
}

/// The file of the default model, in the user's cache.
pub(crate) fn model_file() -> PathBuf {
    model_in(shared_cache())
}

/// The cache folder in `folder`.
pub(crate) fn cache_of(folder: &Path) -> PathBuf {
    folder.join("cache")
}

/// A cache folder in `folder` with certificates and run files of its own, but the user's model and UCX.
pub(crate) fn cache_in(folder: &Path) -> PathBuf {
    let cache = cache_of(folder);
    std::fs::create_dir(&cache).expect("a folder");
    for part in ["models", "ucx"] {
        let shared = shared_cache().join(part);
        // UCX may be the system's.
        std::fs::create_dir_all(&shared).expect("a folder");
        symlink(shared, cache.join(part)).expect("a link");
    }
    cache
}
