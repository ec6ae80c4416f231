//! A stand-in for Python, for tests.

use std::fs;
use std::path::Path;
use std::process::Command;

/// What stand-ins leave as a package: the word `weights`. Its SHA-256.
pub const WEIGHTS_SHA256: &str = "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c";

/// `script` as the command `python` in `folder`; its path.
///
/// # Panics
/// If it cannot be written.
#[must_use]
pub fn python(folder: &Path, script: &str) -> String {
    let (text, python) = (folder.join("text"), folder.join("python"));
    fs::write(&text, script).expect("a file");
    // Written by another process: what a test beside this one starts could still hold a file that was written here, and what is held
    // for writing cannot be run.
    let installed = Command::new("install")
        .args(["-m", "755"])
        .args([&text, &python])
        .status();
    assert!(installed.expect("install runs").success());
    python.display().to_string()
}
